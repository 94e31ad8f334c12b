"""First-order theory at every point, over many draws of a random target, and a search by it.

The search looks for counterexamples: two configurations of which the more diverse one has the
larger error.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import differential_evolution

from sims.diversity import DEFINITIONS, VERSIONS, geometric_gram, versions
from sims.problem import FRAMES, Task, TrigonometricSeries
from sims.problem.targets import rbf
from sims.theory import first_order_arrays
from sims.theory import predict as theory

DRAW, SEARCH = "target", "search"


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's prediction; the first target of a configuration carries many more draws.

    There ``drawn_mse`` (target) is the ensemble's error for each of the setting ``draws`` targets,
    the same ones in every configuration, and ``drawn_covariance`` (head, head2) the mean over
    them of the heads' integrated covariance. ``gram`` (head, head2) is that of the subspaces. Lines
    in a plane, the counterexamples, also have ``exact_mse`` by exact theory; the first of them
    carries what the search found anew, of all searches.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    found: dict[str, xr.Dataset] = {}
    drawn = None
    for point in experiment.points(fidelity):
        task, heads, n, queries = problem = point.spec.build()
        found[point.name] = theory(*problem).assign(
            gram=(("head", "head2"), geometric_gram(np.linalg.qr(heads.frames)[0]))
        )
        if (point.coordinates.get("heads.frames") or {}).get("kind") == "planar":
            exact = theory(task, heads, n, queries, order="exact", rtol=experiment.theory.rtol)
            found[point.name] = found[point.name].assign(
                exact_mse=exact["mse"], exact_mse_error=exact["mse_error"]
            )
        if point.coordinates.get("target.kind") != "rbf" or point.spec.target.seed != 1:
            continue
        if drawn is None:
            drawn = _targets(task.dimension, point.spec.target, settings)
        error, covariance = _over_draws(task, heads, float(n), queries, drawn)
        found[point.name] = found[point.name].assign(
            drawn_mse=(DRAW, np.asarray(error)),
            drawn_covariance=(("head", "head2"), np.asarray(covariance)),
        )
    return found | searched(experiment.points(fidelity), found, settings)


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


def searched(
    points: list[Any], found: dict[str, xr.Dataset], settings: dict[str, Any]
) -> dict[str, xr.Dataset]:
    """Every counterexample of the settings whose points are here, searched for anew.

    Returns:
        The dataset of the first of these points, with ``less`` and ``more`` (search): names of the
        pair's points; ``searched_ratio``: the largest ratio of errors found, more diverse over
        less; ``searched_rise``, of the index; ``tried``, pairs; and the resolution as attribute.
    """
    at = {repr(p.coordinates["heads.frames"]): p for p in points if "heads.frames" in p.coordinates}
    names: list[str] = []
    rows: list[Any] = []
    first: Any = None
    for name, pair in settings["counterexamples"].items():
        here = [at[repr(frames)] for frames in pair["frames"] if repr(frames) in at]
        if len(here) < len(pair["frames"]):
            continue
        # Where there is no counterexample, the problem is that of the others.
        one = here[0] if here else first
        if one is None:
            continue
        first = first or one
        best = _search(one.spec, pair, settings["resolution"], **settings["search"])
        names.append(name)
        rows.append((*best, *([p.name for p in here] or ("", ""))))
    if first is None:
        return {}
    columns = ("searched_ratio", "searched_rise", "tried", "less", "more")
    new = found[first.name].assign(
        {
            column: (SEARCH, list(values))
            for column, values in zip(columns, zip(*rows, strict=True), strict=True)
        }
    )
    new.attrs["resolution"] = settings["resolution"]
    return {first.name: new.assign_coords({SEARCH: names})}


def _search(
    spec: Any, pair: dict[str, Any], resolution: float, *, population: int, generations: int,
    seed: int,
) -> tuple[float, float, int]:  # fmt: skip
    """Differential evolution over two sets of lines in a plane, and a wave's frequency if any.

    Of all pairs whose index rises by the resolution (every index of ``pair["indices"]``), the
    largest ratio of errors; pairs short of that rank below all others, by what they lack.
    """
    problem = spec.build()
    heads = problem.heads.count
    every = [f"{definition}, {version}" for version in VERSIONS for definition in DEFINITIONS]
    asked = every if pair["indices"] == "all" else pair["indices"]
    chosen = [index.split(", ") for index in asked]
    wave = pair.get("frequency")
    # Turning all heads alike changes nothing under noise alone: there the first stays where it is.
    free = heads if wave else heads - 1
    bounds = [(0.0, 180.0)] * (2 * free) + ([tuple(wave)] if wave else [])
    tried = 0

    def gains(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = parameters[: 2 * free].T.reshape(-1, 2, free)
        angles = np.concatenate([np.zeros((*angles.shape[:2], heads - free)), angles], axis=2)
        frequency = parameters[-1] if wave else np.zeros(len(angles))
        mse, signal, noise = (
            np.asarray(a).reshape(len(angles), 2, *a.shape[1:])
            for a in _planar(problem, angles.reshape(-1, heads), np.repeat(frequency, 2))
        )
        turned = np.deg2rad(angles)
        gram = np.cos(turned[..., :, None] - turned[..., None, :]) ** 2
        matrices = versions(signal, noise, gram)
        index = np.stack([DEFINITIONS[d](matrices[v]) for d, v in chosen])
        return mse[:, 1] / mse[:, 0], (index[..., 1] - index[..., 0]).min(0)

    def loss(parameters: np.ndarray) -> np.ndarray:
        nonlocal tried
        ratio, rise = gains(parameters)
        tried += len(ratio)
        return np.where(rise >= resolution, -np.log(ratio), 10.0 + resolution - rise)

    best = differential_evolution(
        loss, bounds, popsize=population, maxiter=generations, rng=seed, polish=False,
        vectorized=True, updating="deferred", tol=1e-6,
    )  # fmt: skip
    ratio, rise = gains(best.x[:, None])
    return float(ratio[0]), float(rise[0]), tried


@jax.jit
def _planar(problem: Any, angles: Any, frequency: Any) -> tuple[Any, Any, Any]:
    """Errors and integrated covariances of lines at these angles (S, H), one wave each (S,)."""
    task, heads, n, queries = problem
    frames_of = partial(FRAMES["planar"], 2, heads.count, 1, None)

    def one(turned: Any, length: Any) -> tuple[Any, Any, Any]:
        # A wave of frequency 0 is a constant.
        wave = TrigonometricSeries(jnp.ones(1), length * jnp.array([[1.0, 0.0]]), jnp.zeros(1))
        lines = eqx.tree_at(lambda h: h.frames, heads, frames_of(angles=turned))
        arrays = first_order_arrays(Task(task.design, wave, task.noise_sd), lines, n, queries)
        signal, noise = arrays.signal_covariance.mean(0), arrays.noise_covariance.mean(0)
        error = (arrays.bias.mean(1) ** 2).mean() + (signal + noise).mean()
        return error, signal, noise

    return jax.vmap(one)(angles, frequency)
