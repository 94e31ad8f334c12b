"""First-order theory at every point, and over many target draws where the target is random."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.problem import Task, TrigonometricSeries
from sims.problem.targets import rbf
from sims.theory import first_order_arrays
from sims.theory import predict as theory

DRAW = "target"


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's prediction; the first target of a configuration carries many more draws.

    There ``drawn_mse`` (target) is the ensemble's error for each of the setting ``draws`` targets,
    the same ones in every configuration, and ``drawn_covariance`` (head, head2) the mean over
    them of the heads' integrated covariance.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    found: dict[str, xr.Dataset] = {}
    drawn = None
    for point in experiment.points(fidelity):
        task, heads, n, queries = problem = point.spec.build()
        found[point.name] = theory(*problem)
        if point.coordinates.get("target.kind") != "rbf" or point.spec.target.seed != 1:
            continue
        if drawn is None:
            drawn = _targets(task.dimension, point.spec.target, settings)
        error, covariance = _over_draws(task, heads, float(n), queries, drawn)
        found[point.name] = found[point.name].assign(
            drawn_mse=(DRAW, np.asarray(error)),
            drawn_covariance=(("head", "head2"), np.asarray(covariance)),
        )
    return found


def _targets(dimension: int, chosen: Any, settings: dict[str, Any]) -> tuple[Any, ...]:
    """Many draws of the same law, stacked: the features of one long draw are iid."""
    draws, features = settings["draws"], chosen.features
    long = rbf(dimension, settings["draws_seed"], chosen.lengthscale, draws * features)
    return (
        jnp.full((draws, features), jnp.sqrt(2.0 / features)),
        long.frequency.reshape(draws, features, dimension),
        long.phase.reshape(draws, features),
    )


@jax.jit
def _over_draws(
    task: Any, heads: Any, n: Any, queries: Any, drawn: tuple[Any, ...]
) -> tuple[Any, Any]:
    def one(target: tuple[Any, ...]) -> tuple[Any, Any]:
        series = TrigonometricSeries(*target)
        arrays = first_order_arrays(Task(task.design, series, task.noise_sd), heads, n, queries)
        covariance = (arrays.signal_covariance + arrays.noise_covariance).mean(0)
        return (arrays.bias.mean(1) ** 2).mean() + covariance.mean(), covariance

    error, covariance = jax.lax.map(one, drawn, batch_size=16)
    return error, covariance.mean(0)
