"""Posterior sampling of scaling laws: one NumPyro model, one compiled program for all laws.

Every law is ``y = s·[g(α + p·z) + c]`` in the standardised covariate z of the law, with link g
either exp or the identity (:mod:`sims.scaling.laws` says which is which). The measurement is

```
y ~ N(μ(θ), V + τ² D²),    V the known covariance of the measured y, D = diag(known scales)
α ~ N(0, σ_α²),  p ~ N(m_p, σ_p²),  c = σ_c·|N(0, 1)|,  τ = σ_τ·|N(0, 1)|
```

in units of s. A law without floor or scatter has σ_c = 0 or σ_τ = 0: its unused direction is
sampled from its own prior and ignored. So law, floor, scatter and priors are data, and only
the number of points selects a compilation. Problems go through in blocks of :data:`BLOCK`,
vectorised together with their chains.

V and D² are diagonalised together beforehand, ``T V Tᵀ = diag(λ)``, ``T D² Tᵀ = I``: then
``T(y − μ)`` has independent components of variance λ + τ², and a step of the sampler factorises
no matrix. Points left out are left out of T.
"""

import hashlib
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import NUTS

from sims.runtime import configure

configure()

CHAINS, WARMUP, DRAWS = 4, 400, 1000
BLOCK = 8


class Problem(NamedTuple):
    """One law and one data set, or several with a leading dimension; y in units of s."""

    covariate: Any  # (k,)
    exponential: Any  # bool: the link is exp
    y: Any  # (k,)
    rotation: Any  # (k, k): T, with a row of zeros for a point left out
    variance: Any  # (k,): λ
    present: Any  # (k,) bool: rows of T in use
    intercept_sd: Any
    slope_mean: Any
    slope_sd: Any
    floor_sd: Any
    scatter_sd: Any


Diagonal = tuple[np.ndarray, np.ndarray, np.ndarray]
FLOATS = tuple(name for name in Problem._fields if name not in ("exponential", "present"))


def diagonalise(covariance: Any, scales: Any, present: Any) -> Diagonal:
    """T (k, k), λ (k,) and the rows in use (k,), of V (k, k), D (k,) and points present."""
    keep = np.flatnonzero(present)
    size = len(present)
    inverse = 1 / np.asarray(scales, float)[keep]
    scaled = np.asarray(covariance, float)[np.ix_(keep, keep)] * np.outer(inverse, inverse)
    values, vectors = np.linalg.eigh(scaled)
    rotation, variance = np.zeros((size, size)), np.ones(size)
    rotation[np.ix_(np.arange(len(keep)), keep)] = vectors.T * inverse
    variance[: len(keep)] = values
    return rotation, variance, np.arange(size) < len(keep)


class Draws(NamedTuple):
    """Posterior draws (problem, chain, draw), and whether a draw diverged."""

    intercept: np.ndarray
    slope: np.ndarray
    floor: np.ndarray
    scatter: np.ndarray
    diverging: np.ndarray


def mean_of(problem: Problem, intercept: Any, slope: Any, floor: Any) -> Any:
    """μ/s at the points (k,)."""
    line = intercept + slope * problem.covariate
    return jnp.where(problem.exponential, jnp.exp(line), line) + floor


def _model(problem: Problem) -> None:
    intercept = numpyro.sample("intercept", dist.Normal(0.0, problem.intercept_sd))
    slope = numpyro.sample("slope", dist.Normal(problem.slope_mean, problem.slope_sd))
    floor = problem.floor_sd * numpyro.sample("unit_floor", dist.HalfNormal(1.0))
    scatter = problem.scatter_sd * numpyro.sample("unit_scatter", dist.HalfNormal(1.0))
    residual = problem.rotation @ (problem.y - mean_of(problem, intercept, slope, floor))
    density = dist.Normal(0.0, jnp.sqrt(problem.variance + scatter**2)).log_prob(residual)
    numpyro.factor("y", jnp.sum(jnp.where(problem.present, density, 0.0)))


UNIT_FLOOR, UNIT_SCATTER = 0.05, 0.3
"""Where chains start."""


def _start(problem: Problem, key: Any) -> tuple[dict[str, Any], Any]:
    """Unconstrained starting points (chain,) and the curvature (4, 4) there, inverted.

    Weighted least squares over a grid of slopes; chains start at slopes spread around the best, by
    three of its standard errors or 0.3, each with the best amplitude.
    """
    total = problem.variance + (problem.scatter_sd * UNIT_SCATTER) ** 2
    weight = jnp.where(problem.present, 1 / total, 0.0)
    turn = problem.rotation
    target = turn @ problem.y

    def profile(slope: Any) -> tuple[Any, Any]:
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
    gradient = turn @ jax.jacobian(lambda t: mean_of(problem, t[0], t[1], 0.0))(line)
    prior = jnp.stack([problem.intercept_sd, problem.slope_sd]) ** -2.0
    covariance = jnp.linalg.inv(gradient.T @ (weight[:, None] * gradient) + jnp.diag(prior))
    spread = jnp.minimum(3 * jnp.sqrt(covariance[1, 1]), 0.3)
    slopes = best + spread * jax.random.uniform(key, (CHAINS,), minval=-1.0, maxval=1.0)
    start = {
        "intercept": jax.vmap(profile)(slopes)[0],
        "slope": slopes,
        "unit_floor": jnp.full(CHAINS, jnp.log(UNIT_FLOOR)),
        "unit_scatter": jnp.full(CHAINS, jnp.log(UNIT_SCATTER)),
    }
    return start, jnp.eye(4).at[:2, :2].set(covariance)


@cache
def _program() -> Any:
    """One loop over warm-up and draws alike, so that the sampler's step is compiled once."""

    def chain(key: Any, start: Any, inverse_curvature: Any, problem: Problem) -> Any:
        names = ("intercept", "slope", "unit_floor", "unit_scatter")
        kernel = NUTS(
            _model,
            dense_mass=[names],
            inverse_mass_matrix={names: inverse_curvature},
            target_accept_prob=0.99,
            max_tree_depth=8,
        )
        state = kernel.init(key, WARMUP, start, (problem,), {})

        def step(state: Any, _: None) -> tuple[Any, Any]:
            state = kernel.sample(state, (problem,), {})
            return state, (state.z, state.diverging)

        drawn, diverging = jax.lax.scan(step, state, length=WARMUP + DRAWS)[1]
        drawn |= {name: jnp.exp(drawn[name]) for name in ("unit_floor", "unit_scatter")}
        return jax.tree.map(lambda a: a[WARMUP:], (drawn, diverging))

    def one(key: Any, problem: Problem) -> Any:
        start_key, run_key = jax.random.split(key)
        keys = jax.random.split(run_key, CHAINS)
        start, inverse_curvature = _start(problem, start_key)
        return jax.vmap(chain, (0, 0, None, None))(keys, start, inverse_curvature, problem)

    return jax.jit(jax.vmap(one))


def sample(problems: Problem, seed: int = 0) -> Draws:
    """Posterior draws of every problem, :data:`CHAINS` chains of :data:`DRAWS` draws each.

    Draws are kept: the same problems asked for again in a process are not sampled again.

    Args:
        problems: stacked along a leading dimension; all with the same number of points.
        seed: of the sampler. A problem's draws depend on it and on the problem's place.
    """
    name = repr([(a.shape, str(a.dtype), a.tobytes()) for a in map(np.asarray, problems)])
    asked = hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
    if asked not in _KNOWN:
        _KNOWN[asked] = _sampled(problems, seed)
    return _KNOWN[asked]


_KNOWN: dict[str, Draws] = {}


def _sampled(problems: Problem, seed: int) -> Draws:
    count = len(problems.y)
    floats = {name: np.asarray(getattr(problems, name), float) for name in FLOATS}
    problems = problems._replace(**floats)
    keys = jax.random.split(jax.random.key(seed), count)
    parts = []
    for start in range(0, count, BLOCK):
        # The last block is filled up, so that all blocks share one compilation.
        index = np.minimum(np.arange(start, start + BLOCK), count - 1)
        block = Problem(*(field[index] for field in map(np.asarray, problems)))
        samples, diverging = _program()(keys[index], block)
        parts.append((samples, diverging))
    samples, diverging = jax.tree.map(lambda *a: np.concatenate(a)[:count], *parts)
    return Draws(
        intercept=samples["intercept"],
        slope=samples["slope"],
        floor=np.asarray(problems.floor_sd)[:, None, None] * samples["unit_floor"],
        scatter=np.asarray(problems.scatter_sd)[:, None, None] * samples["unit_scatter"],
        diverging=diverging,
    )


@jax.jit
def pointwise(
    problem: Problem, covariance: Any, scales: Any, theta: tuple[Any, Any, Any, Any]
) -> tuple[Any, Any]:
    """log p(y_i | y_−i, θ) at every point and draw, and the misfit of every draw.

    With correlated points the predictive density of one given the others at θ is normal, with
    precision Q_ii and residual (Q r)_i / Q_ii, Q the inverse covariance and r = y − μ (Bürkner,
    Gabry & Vehtari 2021). For independent points it is the usual likelihood.

    Args:
        problem: one problem, of which law and y are used.
        covariance: V (k, k), in units of s².
        scales: D (k,), in units of s.
        theta: draws (S,) of α, p, c and τ.

    Returns:
        Densities (k, S), of y in units of s; misfits rᵀQr (S,).
    """

    def at(intercept: Any, slope: Any, floor: Any, scatter: Any) -> tuple[Any, Any]:
        precision = jnp.linalg.inv(covariance + jnp.diag((scatter * scales) ** 2))
        residual = problem.y - mean_of(problem, intercept, slope, floor)
        pulled = precision @ residual
        diagonal = jnp.diag(precision)
        density = 0.5 * (jnp.log(diagonal / (2 * jnp.pi)) - pulled**2 / diagonal)
        return density, residual @ pulled

    density, misfit = jax.vmap(at)(*theta)
    return density.T, misfit
