"""Exponents of power laws ``y = a x^p`` over many problems, from one hierarchical model.

For problem i::

    log y_ij ~ N(a_i + p_i log x_ij, e_ij² + ν²),    p_i ~ N(mean, spread²),    a_i flat

with known relative errors e and an unknown scatter ν; mean ~ N(0, 3²), spread and ν ~
half-normal(1). Levels and exponents are integrated out in closed form.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.typing import ArrayLike
from numpyro.diagnostics import summary
from numpyro.infer import MCMC, NUTS

from sims.base.arrays import real_numbers
from sims.base.runtime import configure

configure()

CHAINS = 4
CLOSEST, STEEPEST = 1e-6, 9.0
"""Points of a problem are no farther apart in log x than this are one; exponents, at most: three
standard deviations of their law."""
MAX_RHAT, MIN_ESS, DIVERGENT = 1.01, 400, 1e-3
"""R-hat at most, and effective draws at least, of every parameter (Vehtari et al. 2021); divergent
transitions at most, as a share of all."""


class Exponents(NamedTuple):
    """Posterior of the exponents of many problems.

    Attributes:
        mean: median of their mean.
        interval: its central 95 %.
        spread: median of their standard deviation between problems, errors of points apart.
        squares: least-squares exponent of each problem, (N,); NaN with fewer than two points.
        fault: reason why the posterior is unusable; "" if there is none.
    """

    mean: float
    interval: tuple[float, float]
    spread: float
    squares: np.ndarray
    fault: str


def exponents(x: ArrayLike, y: ArrayLike, error: ArrayLike = 0.0, seed: int = 0) -> Exponents:
    """Mean and spread of the problems' exponents, each with separate points, by NUTS.

    Args:
        x: > 0, (K,) or (N, K).
        y: > 0, (N, K); NaN where a point is missing. Problems of fewer than two points are left
            out.
        error: standard errors of y, an array of its shape or a number.
        seed: random seed for the sampler.
    """
    y = real_numbers("y", y)
    present, squares = ~np.isnan(y), np.full(len(y), np.nan)
    unknown = Exponents(np.nan, (np.nan, np.nan), np.nan, squares, "")
    given = np.broadcast_arrays(real_numbers("x", x), y, real_numbers("error", error))
    x, y, sigma = np.where(present, given, 1.0)
    if not (
        np.isfinite([x, y, sigma]).all() and (np.minimum(x, y) > 0).all() and (sigma >= 0).all()
    ):
        return unknown._replace(fault="x, y or errors that are no positive numbers")
    log_x, log_y = np.log(x), np.log(y)
    first = np.take_along_axis(log_x, present.argmax(1)[:, None], 1)
    rows = (present & (np.abs(log_x - first) > CLOSEST)).any(1)
    points = log_x[rows], log_y[rows], (sigma / y)[rows], present[rows]
    if not rows.any():
        return unknown._replace(fault="no problem has two points")
    lines = [np.polyfit(a[k], b[k], 1)[0] for a, b, k in zip(*points[:2], points[3], strict=True)]
    squares[rows] = lines
    if (steepest := np.abs(lines).max()) > STEEPEST:
        fault = f"an exponent of size {steepest:.3g}, where {STEEPEST:g} is thought possible"
        return unknown._replace(fault=fault)
    chains = [_hierarchical(key, *points) for key in jax.random.split(jax.random.key(seed), CHAINS)]
    draws, diverging = jax.tree.map(lambda *each: np.stack(each), *chains)
    low, middle, high = map(float, np.quantile(draws["mean"], [0.025, 0.5, 0.975]))
    fault = _fault(draws, diverging) or ""
    if high - low > STEEPEST:
        fault = "errors so large that exponents may be anything"
    return Exponents(middle, (low, high), float(np.median(draws["spread"])), squares, fault)


@jax.jit
def _hierarchical(
    key: jax.Array, log_x: jax.Array, log_y: jax.Array, error: jax.Array, present: jax.Array
) -> tuple[dict[str, jax.Array], jax.Array]:
    """A chain's draws of the problems' common law, and which of them diverged."""

    def model() -> None:
        mean = numpyro.sample("mean", dist.Normal(0, 3))
        spread = numpyro.sample("spread", dist.HalfNormal(1))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        weight = present / (error**2 + noise**2)
        total = weight.sum(-1, keepdims=True)
        u, v = (z - (weight * z).sum(-1, keepdims=True) / total for z in (log_x, log_y))
        square = (weight * u**2).sum(-1)
        slope = (weight * u * v).sum(-1) / square
        residual = (weight * (v - slope[:, None] * u) ** 2).sum()
        logs = jnp.log(jnp.where(present, weight, 1)).sum() - jnp.log(total[:, 0] * square).sum()
        numpyro.factor("points", (logs - residual) / 2)
        slope_law = dist.Normal(mean, jnp.sqrt(spread**2 + 1 / square))
        numpyro.factor("slopes", slope_law.log_prob(slope).sum())

    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1000, progress_bar=False)
    sampler.run(key)
    return sampler.get_samples(), sampler.get_extra_fields()["diverging"]


def _fault(draws: dict[str, jax.Array], diverging: jax.Array) -> str | None:
    """Reason why draws (chain, draw) are unusable, or None."""
    statistics = summary(draws).values()
    rhat = max(np.max(parameter["r_hat"]) for parameter in statistics)
    size = min(np.min(parameter["n_eff"]) for parameter in statistics)
    diverged = float(diverging.mean())
    if rhat <= MAX_RHAT and size >= MIN_ESS and diverged <= DIVERGENT:
        return None
    return f"not converged: R-hat {rhat:.3f}, {size:.0f} draws, {diverged:.2%} divergent"
