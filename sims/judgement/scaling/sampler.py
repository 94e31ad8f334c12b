"""Posterior sampling of scaling laws: one NumPyro model, one compiled program for all laws.

Every law is ``y = s·[g(α + p·z) + c]`` in the standardised covariate z of the law, with link g
either exp or the identity (:mod:`sims.judgement.scaling.laws` says which is which). The measurement
is

```
y ~ N(μ(θ), V + τ² D²),    V the known covariance of the measured y, D = diag(known scales)
α ~ N(0, σ_α²),  p ~ N(m_p, σ_p²),  c = σ_c·|N(0, 1)|,  τ = σ_τ·|N(0, 1)|
```

in units of s. A law without floor or scatter has σ_c = 0 or σ_τ = 0: its unused direction is
sampled from its own prior and ignored. So law, floor, scatter and priors are data, and only
the number of points selects a compilation, which takes as long as sampling dozens of problems. A
chain of a problem is a *lane*, and :data:`LANES` of them run side by side.

V and D² are diagonalised together beforehand, ``T V Tᵀ = diag(λ)``, ``T D² Tᵀ = I``: then
``T(y − μ)`` has independent components of variance λ + τ², and a step of the sampler factorises
no matrix. Points left out are left out of T.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array
from numpyro.infer import MCMC, NUTS

from sims.identity import digest
from sims.runtime import configure

configure()

CHAINS, WARMUP, DRAWS = 4, 400, 1000
"""Chains of a problem, and the steps of each that adapt the sampler and that are kept: R-hat needs
several chains, and 400 effective draws (``laws.MIN_ESS``) come from 4000 even where a draw in ten
counts."""
LANES = 8 * CHAINS
"""Chains sampled side by side: four laws and then their refits fill one such block each."""
TARGET_ACCEPTANCE, TREE_DEPTH = 0.99, 8
"""Small steps, so that none diverges where τ is near 0; at most 2⁸ of them in a trajectory."""
START_FLOOR, START_SCATTER = 0.05, 0.3
"""c/σ_c and τ/σ_τ where chains start: a small floor, and a scatter inside its prior."""
NAMES = ("intercept", "slope", "unit_floor", "unit_scatter")
"""Sites of the model: α, p, c/σ_c and τ/σ_τ."""

Values = np.ndarray | Array | float


class Problem(NamedTuple):
    """One law and one data set, or several with a leading dimension; y in units of s.

    Attributes:
        covariate: z (k,).
        exponential: bool, whether the link is exp.
        y: (k,).
        rotation: T (k, k), with a row of zeros for a point left out.
        variance: λ (k,).
        present: (k,) bool, rows of T in use.
        intercept_sd: σ_α.
        slope_mean: m_p.
        slope_sd: σ_p.
        floor_sd: σ_c; 0: no floor.
        scatter_sd: σ_τ; 0: no scatter.
    """

    covariate: np.ndarray | Array
    exponential: np.ndarray | Array | bool
    y: np.ndarray | Array
    rotation: np.ndarray | Array
    variance: np.ndarray | Array
    present: np.ndarray | Array
    intercept_sd: Values
    slope_mean: Values
    slope_sd: Values
    floor_sd: Values
    scatter_sd: Values


class Draws(NamedTuple):
    """Posterior draws (problem, chain, draw) of α, p, c and τ, and whether a draw diverged."""

    intercept: np.ndarray
    slope: np.ndarray
    floor: np.ndarray
    scatter: np.ndarray
    diverging: np.ndarray


def diagonalise(
    covariance: np.ndarray, scales: np.ndarray, present: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T (k, k), λ (k,) and the rows in use (k,), of V (k, k), D (k,) and points present (k,)."""
    keep, size = np.flatnonzero(present), len(present)
    inverse = 1 / scales[keep]
    values, vectors = np.linalg.eigh(covariance[np.ix_(keep, keep)] * np.outer(inverse, inverse))
    rotation, variance = np.zeros((size, size)), np.ones(size)
    rotation[np.ix_(np.arange(len(keep)), keep)] = vectors.T * inverse
    variance[: len(keep)] = values
    return rotation, variance, np.arange(size) < len(keep)


def mean_of(problem: Problem, intercept: Values, slope: Values, floor: Values) -> Array:
    """μ/s at the points, (k,); or (S, k), from parameters (S, 1)."""
    line = intercept + slope * problem.covariate
    return jnp.where(problem.exponential, jnp.exp(line), line) + floor


def _model(problem: Problem) -> None:
    intercept = numpyro.sample("intercept", dist.Normal(0.0, problem.intercept_sd))
    slope = numpyro.sample("slope", dist.Normal(problem.slope_mean, problem.slope_sd))
    floor = problem.floor_sd * numpyro.sample("unit_floor", dist.HalfNormal(1.0))
    scatter = problem.scatter_sd * numpyro.sample("unit_scatter", dist.HalfNormal(1.0))
    residual = problem.rotation @ (problem.y - mean_of(problem, intercept, slope, floor))
    spread = jnp.sqrt(problem.variance + scatter**2)
    numpyro.sample("y", dist.Normal(0.0, spread).mask(problem.present), obs=residual)


def _start(problem: Problem, prng_key: Array) -> tuple[dict[str, Array], Array]:
    """The unconstrained point where a chain starts, and the inverse curvature (4, 4) there.

    Weighted least squares over a grid of slopes; a chain starts at a slope drawn around the best,
    within three of its standard errors or 0.3, with the best amplitude at that slope. From random
    starts, some chain stays far off where errors are 0.1 %.
    """
    total = problem.variance + (problem.scatter_sd * START_SCATTER) ** 2
    weight = jnp.where(problem.present, 1 / total, 0.0)
    turn = problem.rotation
    target = turn @ problem.y

    def profile(slope: Array) -> tuple[Array, Array]:
        # The best α at that slope: a logarithm of the amplitude, or a level.
        basis = turn @ jnp.exp(slope * problem.covariate)
        amplitude = jnp.sum(weight * basis * target) / jnp.sum(weight * basis**2)
        log_amplitude = jnp.log(jnp.maximum(amplitude, 1e-3))
        ones = turn @ jnp.ones_like(problem.y)
        level = jnp.sum(weight * ones * (target - slope * (turn @ problem.covariate)))
        level /= jnp.sum(weight * ones**2)
        intercept = jnp.where(problem.exponential, log_amplitude, level)
        residual = turn @ (problem.y - mean_of(problem, intercept, slope, 0.0))
        return intercept, jnp.sum(weight * residual**2)

    # Slopes at which exp spans more than 300 e-folds say nothing.
    reach = jnp.maximum(jnp.max(jnp.abs(problem.covariate)), 1e-9)
    grid = problem.slope_mean + 4 * problem.slope_sd * jnp.linspace(-1, 1, 1601)
    grid = jnp.clip(grid, -300 / reach, 300 / reach)
    misfit = jax.vmap(profile)(grid)[1]
    best = grid[jnp.argmin(jnp.where(jnp.isfinite(misfit), misfit, jnp.inf))]
    line = jnp.stack([profile(best)[0], best])
    # Gauss–Newton curvature of the likelihood in (α, p), and that of the prior.
    gradient = turn @ jax.jacobian(lambda t: mean_of(problem, t[0], t[1], 0.0))(line)
    prior = jnp.stack([problem.intercept_sd, problem.slope_sd]) ** -2.0
    covariance = jnp.linalg.inv(gradient.T @ (weight[:, None] * gradient) + jnp.diag(prior))
    spread = jnp.minimum(3 * jnp.sqrt(covariance[1, 1]), 0.3)
    slope = best + spread * jax.random.uniform(prng_key, minval=-1.0, maxval=1.0)
    start = {
        "intercept": profile(slope)[0],
        "slope": slope,
        "unit_floor": jnp.log(START_FLOOR),
        "unit_scatter": jnp.log(START_SCATTER),
    }
    return start, jnp.eye(4).at[:2, :2].set(covariance)


@jax.jit
@jax.vmap
def _lanes(prng_key: Array, problem: Problem) -> tuple[dict[str, Array], Array]:
    """A chain a lane: draws (lane, draw) of every site, and whether they diverged.

    One chain to each ``MCMC``, and lanes outside: chains inside it would be vectorised twice over,
    which triples the tracing.
    """
    start_key, run_key = jax.random.split(prng_key)
    start, inverse_curvature = _start(problem, start_key)
    kernel = NUTS(
        _model,
        dense_mass=[NAMES],
        inverse_mass_matrix={NAMES: inverse_curvature},
        target_accept_prob=TARGET_ACCEPTANCE,
        max_tree_depth=TREE_DEPTH,
    )
    chain = MCMC(kernel, num_warmup=WARMUP, num_samples=DRAWS, progress_bar=False)
    chain.run(run_key, problem, init_params=start)
    return chain.get_samples(), chain.get_extra_fields()["diverging"]


def sample(problems: Problem, seed: int = 0) -> Draws:
    """Posterior draws of every problem, :data:`CHAINS` chains of :data:`DRAWS` draws each.

    Draws are kept: the same problems are not sampled again in a process.

    Args:
        problems: stacked along a leading dimension; all with the same number of points.
        seed: of the sampler. A problem's draws depend on it and on the problem's place.
    """
    name = digest(seed, *problems)
    if name not in _SAMPLED:
        _SAMPLED[name] = _sample(problems, seed)
    return _SAMPLED[name]


_SAMPLED: dict[str, Draws] = {}


def _sample(problems: Problem, seed: int) -> Draws:
    lanes = np.repeat(np.arange(len(np.asarray(problems.y))), CHAINS)
    keys = jax.random.split(jax.random.key(seed), len(lanes))
    parts = []
    for start in range(0, len(lanes), LANES):
        # The last block is filled up, so that all blocks share one compilation.
        block = np.minimum(np.arange(start, start + LANES), len(lanes) - 1)
        parts.append(_lanes(keys[block], jax.tree.map(lambda a, i=lanes[block]: a[i], problems)))
    samples, diverging = jax.tree.map(
        lambda *a: np.concatenate(a)[: len(lanes)].reshape(-1, CHAINS, DRAWS), *parts
    )
    return Draws(
        intercept=samples["intercept"],
        slope=samples["slope"],
        floor=np.asarray(problems.floor_sd)[:, None, None] * samples["unit_floor"],
        scatter=np.asarray(problems.scatter_sd)[:, None, None] * samples["unit_scatter"],
        diverging=diverging,
    )


def pointwise(problem: Problem, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """log p(y_i | y_−i, θ) at every point and draw, and the misfit of every draw.

    With correlated points the predictive density of one given the others at θ is normal, with
    precision Q_ii and residual (Q r)_i / Q_ii, where r = y − μ and
    ``Q = (V + τ²D²)⁻¹ = Tᵀ diag(1/(λ + τ²)) T`` (Bürkner, Gabry & Vehtari 2021). For independent
    points it is the usual likelihood.

    Args:
        problem: one problem with all its points present.
        draws: of that problem, or of the same without a point; any shape, S of them in all.

    Returns:
        Densities (k, S), of y in units of s; misfits rᵀQr (S,).
    """
    intercept, slope, floor, scatter = (values.reshape(-1, 1) for values in draws[:4])
    variance = np.asarray(problem.variance) + scatter**2
    residual = np.asarray(problem.y - mean_of(problem, intercept, slope, floor))
    rotation = np.asarray(problem.rotation)
    turned = residual @ rotation.T
    precision = (1 / variance) @ rotation**2
    pulled = (turned / variance) @ rotation
    density = 0.5 * (np.log(precision / (2 * np.pi)) - pulled**2 / precision)
    return density.T, np.sum(turned**2 / variance, axis=1)
