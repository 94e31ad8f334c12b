"""The exponent of power laws ``y = a x^p`` through one or several series of measured points.

::

    log y ~ N(a_s + p_s log x, V_s/(y yᵀ) + τ² I),    p_s ~ N(p, ω²),    τ ~ half-normal(σ_τ)

for series s, with V_s the known covariance of its points and τ an allowance for laws that hold only
approximately. One series has p_s = p. Priors are weak: p ~ N(0, 3²), ω ~ half-normal(1).
"""

from collections.abc import Sequence

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

Series = tuple[np.ndarray, np.ndarray, np.ndarray]
"""x > 0 (k,), y > 0 (k,) and the covariance (k, k) of y."""


def exponent(
    series: Sequence[Series], scatter: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, str | None]:
    """Posterior draws of the common exponent p, and why they cannot be used, or None.

    Sampled by NUTS. Estimate and interval are the median and quantiles of the draws.

    Args:
        series: at least one.
        scatter: σ_τ, a share of y; 0: the points follow the law but for their errors.
        seed: of the sampler.
    """
    parts, lines = [], []
    for x, y, covariance in series:
        # Turned so that errors are independent: a step of the sampler factorises no matrix.
        variance, turn = np.linalg.eigh(covariance / np.outer(y, y))
        columns = np.ones(len(x)), np.log(x) - np.log(x).mean(), np.log(y)
        lines.append(np.polyfit(columns[1], columns[2], 1))
        parts.append((*(turn.T @ column for column in columns), variance))
    one, z, target, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
    of = np.repeat(np.arange(len(series)), [len(x) for x, _, _ in series])
    slopes, levels = np.transpose(lines)

    def errors(draws: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Residuals of the turned points, and their variances."""
        slopes = draws.get("slopes", jnp.full(len(series), draws["exponent"]))
        mean = one * draws["levels"][of] + z * slopes[of]
        return target - mean, jnp.asarray(variance + draws.get("scatter", 0.0) ** 2)

    def model() -> None:
        draws = {"exponent": numpyro.sample("exponent", dist.Normal(0, 3))}
        draws["levels"] = numpyro.sample("levels", dist.Normal(levels, 2).to_event(1))
        if len(series) > 1:
            spread = numpyro.sample("spread", dist.HalfNormal(1))
            own = dist.Normal(draws["exponent"], spread).expand([len(series)]).to_event(1)
            draws["slopes"] = numpyro.sample("slopes", own)
        if scatter:
            draws["scatter"] = numpyro.sample("scatter", dist.HalfNormal(scatter))
        residual, square = errors(draws)
        numpyro.factor("points", dist.Normal(0, jnp.sqrt(square)).log_prob(residual).sum())

    start = {"exponent": slopes.mean(), "levels": levels, "slopes": slopes}
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
