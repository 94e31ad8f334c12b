"""The exponent of a power law ``y = a x^p`` through measured points.

::

    log y ~ N(log a + p log x, V/(y yᵀ) + τ² I),    p ~ N(0, 3²),    τ ~ half-normal(σ_τ)

with V the known covariance of the points and τ an allowance for a law that holds only
approximately.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import summary
from numpyro.infer import MCMC, NUTS, init_to_value
from scipy.stats import chi2

from sims.runtime import configure

configure()

CHAINS, WARMUP, DRAWS = 4, 1000, 8000
"""32,000 draws resolve the p-value that Holm asks of the first of some 300 claims, 1.6·10⁻⁴."""
MAX_RHAT, MIN_ESS, DIVERGENT = 1.01, 400, 1e-3
"""R-hat at most, and effective draws at least, of every parameter (Vehtari et al. 2021); divergent
transitions at most, as a share of all."""
MISFIT = 1e-3
"""Posterior predictive p below which the law does not describe the points."""


def exponent(
    x: np.ndarray, y: np.ndarray, covariance: np.ndarray, scatter: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, str | None]:
    """Posterior draws of the exponent p, and why they cannot be used, or None.

    Sampled by NUTS. Estimate and interval are the median and quantiles of the draws.

    Args:
        x: > 0, (k,).
        y: > 0, (k,).
        covariance: of y, (k, k).
        scatter: σ_τ, a share of y; 0: the points follow the law but for their errors.
        seed: of the sampler.
    """
    centred, log_y = np.log(x) - np.log(x).mean(), np.log(y)
    start = dict(zip(("exponent", "level"), np.polyfit(centred, log_y, 1), strict=True))
    # Turned so that errors are independent: a step of the sampler factorises no matrix.
    variance, turn = np.linalg.eigh(covariance / np.outer(y, y))
    one, z, target = (turn.T @ column for column in (np.ones(len(x)), centred, log_y))

    def errors(draws: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Residuals of the turned points, and their variances."""
        residual = target - one * draws["level"] - z * draws["exponent"]
        square = variance + draws.get("scatter", 0.0) ** 2
        return jnp.asarray(residual), jnp.asarray(square)

    def model() -> None:
        draws = {
            "exponent": numpyro.sample("exponent", dist.Normal(0, 3)),
            "level": numpyro.sample("level", dist.Normal(start["level"], 2)),
        }
        if scatter:
            draws["scatter"] = numpyro.sample("scatter", dist.HalfNormal(scatter))
        residual, square = errors(draws)
        numpyro.factor("points", dist.Normal(0, jnp.sqrt(square)).log_prob(residual).sum())

    sampler = MCMC(
        NUTS(
            model,
            dense_mass=True,
            target_accept_prob=0.99,
            init_strategy=init_to_value(values=start),
        ),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(jax.random.key(seed))
    draws = sampler.get_samples()
    residual, square = jax.vmap(errors)(draws)
    misfit = chi2.sf(np.sum(residual**2 / square, axis=-1), len(z)).mean()
    statistics = summary(sampler.get_samples(group_by_chain=True)).values()
    rhat = max(np.max(of_one["r_hat"]) for of_one in statistics)
    size = min(np.min(of_one["n_eff"]) for of_one in statistics)
    diverged = float(sampler.get_extra_fields()["diverging"].mean())
    problem = None
    if not (rhat <= MAX_RHAT and size >= MIN_ESS and diverged <= DIVERGENT):
        problem = f"not converged: R-hat {rhat:.3f}, {size:.0f} draws, {diverged:.2%} divergent"
    elif misfit < MISFIT:
        problem = f"the power law does not describe the points (p = {misfit:.1g})"
    return np.asarray(draws["exponent"]), problem
