"""First-order theory at every point, over many draws of a random target, and a search by it.

The search looks for counterexamples: two configurations of which the more diverse one has the
larger error.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.optimize import differential_evolution

from sims.diversity import DEFINITIONS, VERSIONS, geometric_gram, versions
from sims.problem import FRAMES, Heads, Task, TrigonometricSeries
from sims.problem.targets import rbf
from sims.study.experiment import Experiment, Point
from sims.study.roads import predict_terms
from sims.study.specification import Problem, ProblemSpec
from sims.theory import first_order_arrays

DRAW, SEARCH = "target", "search"
Drawn = tuple[Array, Array, Array]
"""Amplitudes (draws, J), frequencies (draws, J, d) and phases (draws, J) of targets."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's prediction; the first target of a configuration carries many more draws.

    There ``drawn_mse`` (target) is the ensemble's error for each of the setting ``draws`` targets,
    the same ones in every configuration, and ``drawn_covariance`` (head, head2) the mean over
    them of the heads' integrated covariance. ``gram`` (head, head2) is that of the subspaces. The
    first of the counterexamples' points carries what the search came to, of all searches.
    """
    settings = experiment.settings
    terms: dict[str, xr.Dataset] = {}
    drawn = None
    for point in experiment.points:
        spec = point.spec
        task, heads, n, queries = problem = spec.build()
        extra: dict[str, tuple[Hashable, np.ndarray]] = {
            "gram": (("head", "head2"), geometric_gram(np.linalg.qr(heads.frames)[0]))
        }
        exchangeable = spec.target.kind == "rbf" and spec.design.kind != "redundant_views"
        if exchangeable and spec.target.seed == 1:
            if drawn is None:
                drawn = targets(task.dimension, spec, settings)
            error, covariance = over_draws(task, heads, float(n), queries, drawn)
            extra |= {
                "drawn_mse": (DRAW, np.asarray(error)),
                "drawn_covariance": (("head", "head2"), np.asarray(covariance)),
            }
        terms[point.name] = predict_terms(problem, experiment.theory).assign(extra)
    for name, data in searched(experiment.points, settings).items():
        terms[name] = terms[name].merge(data)
    return terms


def targets(dimension: int, spec: ProblemSpec, settings: Mapping[str, Any]) -> Drawn:
    """Many draws of the problem's law of targets: the features of one long draw are iid."""
    draws, features = settings["draws"], spec.target.features
    long = rbf(dimension, settings["draws_seed"], spec.target.lengthscale, draws * features)
    return (
        jnp.full((draws, features), jnp.sqrt(2.0 / features)),
        long.frequency.reshape(draws, features, dimension),
        long.phase.reshape(draws, features),
    )


@jax.jit
def over_draws(
    task: Task, heads: Heads, n: float, queries: Array, drawn: Drawn
) -> tuple[Float[Array, " draws"], Float[Array, "H H"]]:
    """The ensemble's error for each target; the heads' covariance averaged over targets."""

    def one(target: Drawn) -> tuple[Array, Array]:
        series = TrigonometricSeries(*target)
        arrays = first_order_arrays(Task(task.design, series, task.noise_sd), heads, n, queries)
        covariance = (arrays.signal_covariance + arrays.noise_covariance).mean(0)
        return (arrays.bias.mean(1) ** 2).mean() + covariance.mean(), covariance

    error, covariance = jax.lax.map(one, drawn, batch_size=16)
    return error, covariance.mean(0)


def searched(points: Sequence[Point], settings: Mapping[str, Any]) -> dict[str, xr.Dataset]:
    """Every counterexample of the settings whose points are here, searched for anew.

    Returns:
        For the first of these points, if there are any, by ``search``: ``less`` and ``more``, names
        of the pair's points, empty if the settings have none; ``searched_ratio``, the largest ratio
        of errors, more diverse over less; ``searched_rise``, of the index; ``tried``, pairs.
    """
    at = {point.coordinates.get("heads.frames"): point for point in points}
    rows: dict[str, tuple[float, float, int, str, str]] = {}
    first: Point | None = None
    for name, pair in settings["counterexamples"].items():
        if not at.keys() >= set(pair["frames"]):
            continue
        here = [at[label] for label in pair["frames"]]
        # Where there is no counterexample, the problem is that of the others.
        one = here[0] if here else first
        if one is None:
            continue
        first = first or one
        less, more = [point.name for point in here] or ("", "")
        best = search(one.spec.build(), pair, settings["resolution"], **settings["search"])
        rows[name] = (*best, less, more)
    if first is None:
        return {}
    columns = ("searched_ratio", "searched_rise", "tried", "less", "more")
    values = zip(*rows.values(), strict=True)
    data = {c: (SEARCH, list(column)) for c, column in zip(columns, values, strict=True)}
    return {first.name: xr.Dataset(data, {SEARCH: list(rows)})}


def search(
    problem: Problem, pair: Mapping[str, Any], resolution: float, *, population: int,
    generations: int, seed: int,
) -> tuple[float, float, int]:  # fmt: skip
    """Differential evolution over two sets of lines in a plane, and a wave's frequency if any.

    Of all pairs whose index rises by the resolution (every index of ``pair["indices"]``), the
    largest ratio of errors; pairs short of that rank below all others, by what they lack.
    """
    heads = problem.heads.count
    every = [f"{definition}, {version}" for version in VERSIONS for definition in DEFINITIONS]
    named = every if pair["indices"] == "all" else pair["indices"]
    chosen = [index.split(", ") for index in named]
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
            for a in planar(
                problem, jnp.asarray(angles.reshape(-1, heads)), jnp.repeat(frequency, 2)
            )
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
def planar(
    problem: Problem, angles: Float[Array, "S H"], frequency: Float[Array, " S"]
) -> tuple[Float[Array, " S"], Float[Array, "S H H"], Float[Array, "S H H"]]:
    """Errors and integrated covariances of lines at these angles (S, H), one wave each (S,)."""
    task, heads, n, queries = problem
    frames_of = partial(FRAMES["planar"], 2, heads.count, 1, None)

    def one(turned: Array, length: Array) -> tuple[Array, Array, Array]:
        # A wave of frequency 0 is a constant.
        wave = TrigonometricSeries(jnp.ones(1), length * jnp.array([[1.0, 0.0]]), jnp.zeros(1))
        lines = eqx.tree_at(lambda h: h.frames, heads, frames_of(angles=turned))
        arrays = first_order_arrays(Task(task.design, wave, task.noise_sd), lines, n, queries)
        signal, noise = arrays.signal_covariance.mean(0), arrays.noise_covariance.mean(0)
        error = (arrays.bias.mean(1) ** 2).mean() + (signal + noise).mean()
        return error, signal, noise

    return jax.vmap(one)(angles, frequency)
