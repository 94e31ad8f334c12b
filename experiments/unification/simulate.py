"""Pools of three kinds of agents by simulation: errors and variances of a pool and of one agent."""

import numpy as np
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

from sims.montecarlo import Draw, HostBatches, Sampler
from sims.simulation.many import averages_sampler

from .problems import Problem

NAMES = ("mse", "mean_head_mse", "ensemble_variance", "variance")
"""Mean squared error of the plain average and of one agent, and their variances, as of heads."""


def pools_sampler(problem: Problem, precision: str) -> Sampler:
    """Both pools of a problem; ``problem`` or ``pool`` is their dimension."""
    if problem["kind"] == "heads":
        return averages_sampler(problem.heads, [(), ()], precision)
    batch = forests if problem["kind"] == "trees" else colonies
    return HostBatches(batch, constants=problem, dims=dict.fromkeys(NAMES, ("problem",)))


def moments(estimates: np.ndarray, truth: np.ndarray | float) -> dict[str, np.ndarray]:
    """Unbiased :data:`NAMES` of estimates (R, pool, M, Q), averaged over queries."""
    errors = estimates - truth
    moved = estimates - estimates.mean(0)
    spread = len(estimates) / (len(estimates) - 1)
    return {
        "mse": (errors.mean(2) ** 2).mean((0, 2)),
        "mean_head_mse": (errors**2).mean((0, 2, 3)),
        "ensemble_variance": spread * (moved.mean(2) ** 2).mean((0, 2)),
        "variance": spread * (moved**2).mean((0, 2, 3)),
    }


def forests(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Two forests on every training set (Breiman 2001, doi:10.1023/A:1010933404324)."""
    rng = draw.rng()
    queries = problem.queries.astype(np.float32)
    estimates = np.empty((replicates, 2, problem["agents"], len(queries)))
    for pools in estimates:
        x = rng.normal(size=(problem["points"], problem.dimension)).astype(np.float32)
        y = values(problem, x) + problem.noise_sd * rng.normal(size=len(x))
        seeds = rng.integers(2**31, size=problem["agents"])
        for pool, options in zip(pools, problem.forests, strict=True):
            for agent, seed in enumerate(seeds):
                tree = grow_tree(x, y, int(seed), **options)
                pool[agent] = tree.tree_.predict(queries)[:, 0]
    return moments(estimates, values(problem, queries))


def grow_tree(
    x: np.ndarray, y: np.ndarray, seed: int, bootstrap: bool, max_features: int | float = 1.0
) -> DecisionTreeRegressor:
    """A tree of a random forest, grown without the checks that take as long as a small tree."""
    rows = np.arange(len(x))
    if bootstrap:
        rows = np.random.default_rng(seed).integers(len(x), size=len(x))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        rule = DecisionTreeRegressor(max_features=max_features, random_state=seed)
        return rule.fit(x[rows], y[rows, None], check_input=False)


def values(problem: Problem, points: np.ndarray) -> np.ndarray:
    """The target at points (N, d), without compiling: that takes longer for a few."""
    series = problem.target
    return np.asarray(np.cos(points @ series.frequency.T + series.phase) @ series.amplitude)


def colonies(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Colonies of ants, of every pool; θ is 0."""
    rng = draw.rng()
    pools = [draw_readings(rng, replicates, problem, *options) for options in problem.colonies]
    return moments(np.stack(pools, 1)[..., None], 0.0)


def draw_readings(
    rng: np.random.Generator, replicates: int, problem: Problem, initial: float, evaporation: float
) -> np.ndarray:
    """Readings (R, M) of ants that come one after another.

    Each picks a patch with probability linear in its pheromone, reads its deviation, of variance 1,
    with independent noise, and deposits 1; before, a share of all pheromone evaporates.
    """
    patch = rng.normal(size=(replicates, problem["patches"]))
    pheromone = np.full(patch.shape, initial)
    rows = np.arange(replicates)
    out = np.empty((replicates, problem["agents"]))
    for ant in range(problem["agents"]):
        level = np.cumsum(pheromone, axis=1)
        picked = (rng.random((replicates, 1)) * level[:, -1:] > level).sum(1)
        out[:, ant] = patch[rows, picked] + problem["reading_sd"] * rng.normal(size=replicates)
        pheromone *= 1 - evaporation
        pheromone[rows, picked] += 1.0
    return out
