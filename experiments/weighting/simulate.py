"""Risk matrices of the heads, and the error under weights estimated from held-out pairs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.montecarlo import Draw, HostReplicates
from sims.problem import Heads, Target, Task
from sims.simulation import draw as training_set
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit, grid_units
from sims.weighting import WEIGHTINGS, risk


def units(experiment: Experiment) -> dict[str, Unit]:
    """The terms of every regime, by the grid's names, and ``cost``.

    A replicate of ``cost`` is a target and a training set.
    """
    settings = experiment.settings["cost"]
    place = experiment.settings["regimes"].index(settings["regime"])
    spec = experiment.points[place].spec
    task, heads, n, _ = spec.build()
    sampler = HostReplicates(
        cost,
        constants=(task, spec.family(), heads, n, settings),
        dims={"error": ("pairs", "rule"), "oracle": ("rule",)},
        coords={"pairs": settings["pairs"], "rule": list(WEIGHTINGS)},
    )
    unit = SampledUnit(sampler, replicates=settings["training_sets"])
    return grid_units(experiment) | {"cost": unit}


def cost(
    draw: Draw, shared: tuple[Task, Callable[..., Target], Heads, int, Mapping[str, Any]], _: None
) -> dict[str, np.ndarray]:
    """Errors under weights estimated from m held-out pairs, of one target and training set.

    It is fitted once. Its population of queries is finite, so the risk matrix of these fitted
    heads, and with it the error of any weights, is exact; held-out pairs are drawn from that
    population with replacement, with fresh labels. Smaller m take the first of the largest's.

    Returns:
        ``error`` (pairs, rule), the mean over draws of pairs, and ``oracle`` (rule,), by the risk
        matrix itself.
    """
    task, family, heads, n, settings = shared
    pairs, repeats, noise = settings["pairs"], settings["repeats"], float(task.noise_sd)
    size, rng = max(pairs), draw.rng()
    task = Task(task.design, family(seed=int(rng.integers(2**31))), task.noise_sd)
    gaps = np.asarray(deviations(task, heads, draw.key, n, settings["queries"], settings["scale"]))
    matrix = gaps.T @ gaps / len(gaps)

    def errors(estimated: np.ndarray) -> list[float]:
        return [float(risk(rule(estimated), matrix)) for rule in WEIGHTINGS.values()]

    error = np.zeros((len(pairs), len(WEIGHTINGS)))
    for _repeat in range(repeats):
        rows = gaps[rng.integers(len(gaps), size=size)]
        residuals = rows - noise * rng.normal(size=(size, 1))
        error += [errors(residuals[:m].T @ residuals[:m] / m) for m in pairs]
    return {"error": error / repeats, "oracle": np.array(errors(matrix))}


@partial(jax.jit, static_argnames=("n", "count"))
def deviations(
    task: Task, heads: Heads, key: Array, n: int, count: int, scale: float
) -> Float[Array, "count H"]:
    """``f̂_h(x_j) − m(x_j)`` of one training set at its population of queries."""
    x, unit = training_set(task, key, n)
    labels = task.target(x) + task.noise_sd * unit
    queries = scale * jax.random.normal(
        jax.random.fold_in(key, 2**31 - 1), (count, task.dimension), jnp.float64
    )
    estimates = jax.lax.map(lambda q: nw_weights(heads, q, x) @ labels, queries)
    return estimates - task.target(queries)[:, None]
