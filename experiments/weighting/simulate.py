"""Risk matrices of the heads, and the error under weights estimated from held-out pairs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.montecarlo import replicate_key, root_key
from sims.simulation import draw, estimate, nw_weights
from sims.weighting import WEIGHTINGS, risk


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """The terms of every regime, by the grid's names, and ``cost``."""
    run = experiment.simulation_at(fidelity)
    points = experiment.points(fidelity)
    found = {}
    options: dict[str, Any] = {
        k: getattr(run, k) for k in ("batches", "replicates_per_batch", "precision", "raw_labels")
    }
    for point in points:
        task, heads, n, queries = point.spec.build()
        found[point.name] = estimate(
            task, heads, n, queries, run.seed, keep_queries=False, **options
        )
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    chosen = points[settings["regimes"].index(settings["cost"]["regime"])]
    found["cost"] = cost(chosen.spec.build(), settings["cost"], run.seed, run.batches)
    return found


def cost(problem: Any, settings: dict[str, Any], seed: int, batches: int) -> xr.Dataset:
    """Errors under weights estimated from m held-out pairs, batch by batch.

    A training set is fitted once. Its population of queries is finite, so the risk matrix of these
    fitted heads, and with it the error of any weights, is exact; held-out pairs are drawn from
    that population with replacement, with fresh labels. Smaller m take the first of the largest's.
    """
    task, heads, n, _ = problem
    pairs, repeats = settings["pairs"], settings["repeats"]
    names = list(WEIGHTINGS)
    error = np.zeros((batches, len(pairs), len(names)))
    oracle = np.zeros((batches, len(names)))
    noise = float(task.noise_sd)
    for batch in range(batches):
        for index in range(settings["training_sets"]):
            key = replicate_key(root_key(seed), batch, index)
            gaps = np.asarray(
                deviations(task, heads, key, n, settings["queries"], settings["scale"])
            )
            matrix = gaps.T @ gaps / len(gaps)
            for k, name in enumerate(names):
                oracle[batch, k] += float(risk(WEIGHTINGS[name](matrix), matrix))
            rng = np.random.default_rng([seed, batch, index])
            for _ in range(repeats):
                rows = gaps[rng.integers(len(gaps), size=max(pairs))]
                residuals = rows - noise * rng.normal(size=(max(pairs), 1))
                for j, m in enumerate(pairs):
                    estimated = residuals[:m].T @ residuals[:m] / m
                    for k, name in enumerate(names):
                        weights = WEIGHTINGS[name](estimated)
                        error[batch, j, k] += float(risk(weights, matrix))
    sets = settings["training_sets"]
    return xr.Dataset(
        {
            "error": (("batch", "pairs", "rule"), error / (sets * repeats)),
            "oracle": (("batch", "rule"), oracle / sets),
        },
        coords={"pairs": pairs, "rule": names},
        attrs={"replicates": batches * sets * repeats},
    )


@partial(jax.jit, static_argnames=("n", "count"))
def deviations(task: Any, heads: Any, key: Any, n: int, count: int, scale: float) -> Any:
    """``f̂_h(x_j) − m(x_j)`` of one training set at its population of queries, (count, H)."""
    x, unit = draw(task, key, n)
    labels = task.target(x) + task.noise_sd * unit
    queries = scale * jax.random.normal(
        jax.random.fold_in(key, 2**31 - 1), (count, task.dimension), jnp.float64
    )
    estimates = jax.lax.map(lambda q: nw_weights(heads, q, x) @ labels, queries)
    return estimates - task.target(queries)[:, None]
