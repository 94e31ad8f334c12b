"""First-order theory of the counterexamples and of every regime, and searches by it.

One search looks for counterexamples, two sets of lines in a plane of which the more diverse one has
the larger error; another, in ``trial.py``, for the worst pair of all configurations of a regime.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.optimize import differential_evolution
from scipy.stats import norm, qmc

from sims.diversity import DEFINITIONS, geometric_gram, versions
from sims.problem import FRAMES, GaussianDesign, Heads, Task, TrigonometricSeries
from sims.runtime import in_threads
from sims.study.experiment import Experiment, Point
from sims.study.roads import predict_terms
from sims.study.specification import Problem
from sims.theory import first_order_arrays

from .regimes import SIXTEEN, Regime, regimes
from .trial import Family, two_heads, worst_pairs

SEARCH = "search"
PARTS = ("bias_matrix", "signal_matrix", "noise_matrix")


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's and every regime's prediction, with the Gram matrices of the subspaces.

    A regime has ``bias_matrix``, ``signal_matrix`` and ``noise_matrix`` (set, configuration, head,
    head2), each set an independent estimate of the expectation over targets and queries; ``grams``
    (configuration, head, head2); ``label``; and ``one_angle`` (configuration), whether the
    principal angles of every pair of its subspaces are equal; and, where it has indices to search
    by, what :func:`~experiments.diversity.trial.worst_pairs` found. The first of the
    counterexamples' points carries what their searches came to.
    """
    settings = experiment.settings
    terms: dict[str, xr.Dataset] = {}
    for point in experiment.points:
        problem = point.spec.build()
        gram = geometric_gram(np.linalg.qr(problem.heads.frames)[0])
        own = predict_terms(problem, experiment.theory)
        terms[point.name] = own.assign(gram=(("head", "head2"), gram))
    parts = [partial(searched, experiment.points, settings)]
    for name, regime in regimes(experiment).items():
        parts.append(partial(regime_terms, regime, name, settings))
    for found in in_threads(lambda part: part(), parts):
        for name, data in found.items():
            terms[name] = terms[name].merge(data) if name in terms else data
    return terms


def regime_terms(regime: Regime, name: str, settings: Mapping[str, Any]) -> dict[str, xr.Dataset]:
    """A regime's averages, by its name, with the worst pairs by the indices it is searched by."""
    own = settings["regimes"][name]
    drawn = {
        "sets": settings["sets"],
        "seed": settings["draws_seed"],
        "draws": int(settings["draws"] * own.get("share_of_draws", 1)),
    }
    terms = averaged(regime, **drawn)
    if named := own.get("any_configuration"):
        angles = np.linspace(0.0, np.pi / 2, settings["knots"])
        pairs = averaged(two_heads(regime, angles), **drawn)
        family = Family(angles, pairs, regime.frames.shape[1])
        keys = [tuple(index.split(", ")) for index in named]
        terms = terms.merge(worst_pairs(family, keys, **settings["trial"]))
    return {name: terms}


def averaged(regime: Regime, sets: int, draws: int, seed: int) -> xr.Dataset:
    """First-order theory of a regime, averaged over queries and drawn targets.

    Every term is quadratic in m. So the mean over a squared-exponential law of m is that over
    single waves √2 cos(ω·x + c) with ω ~ N(0, I/ℓ²), and the mean over c that of c = 0 and
    c = π/2. The mean over ω and x is taken by ``sets`` scrambled Sobol sets of ``draws`` points.
    """
    d, seen = len(regime.seen), np.flatnonzero(regime.seen)
    waves = d if regime.lengthscale else 0
    totals = []
    for sobol in np.random.default_rng(seed).spawn(sets):
        points = norm.ppf(qmc.Sobol(waves + len(seen), rng=sobol).random(draws))
        x = np.zeros((draws, d))
        x[:, seen] = regime.scale * points[:, waves:]
        target = regime.target
        frequency = np.broadcast_to(target.frequency, (draws, *target.frequency.shape))
        if regime.lengthscale:
            frequency = points[:, None, :waves] / regime.lengthscale
        totals.append(over_draws(regime, jnp.asarray(frequency), jnp.asarray(x)))
    pair = ("configuration", "head", "head2")
    data = {
        name: (("set", *pair), np.stack(each))
        for name, each in zip(PARTS, zip(*totals, strict=True), strict=True)
    }
    frames = np.linalg.qr(np.asarray(regime.frames))[0]
    cosines = np.linalg.svd(np.einsum("chdi,cgdj->chgij", frames, frames), compute_uv=False)
    geometry = {
        "grams": (pair, np.stack([geometric_gram(own) for own in frames])),
        "one_angle": ("configuration", np.ptp(cosines, axis=-1).max((1, 2)) < 1e-6),
    }
    return xr.Dataset(data | geometry | {"label": ("configuration", list(regime.labels))})


def over_draws(
    regime: Regime, frequency: Float[Array, "P J d"], x: Float[Array, "P d"]
) -> tuple[Float[Array, "C H H"], ...]:
    """Bias products, signal and noise covariance of every configuration, averaged over P draws."""
    target = regime.target
    amplitude, phases = target.amplitude, target.phase[None]
    if regime.lengthscale:
        amplitude, phases = jnp.full(1, jnp.sqrt(2.0)), jnp.array([[0.0], [jnp.pi / 2]])
    arguments = (
        amplitude,
        phases,
        frequency,
        x,
        regime.bandwidth,
        regime.noise_sd,
        float(regime.n),
    )
    return _over_draws(regime.kernel, regime.frames, regime.covariance, *arguments)


@partial(jax.jit, static_argnames="kernel")
def _over_draws(
    kernel: Any,
    frames: Array,
    covariance: Array,
    amplitude: Array,
    phases: Array,
    frequency: Array,
    x: Array,
    bandwidth: Array,
    noise_sd: Array,
    n: float,
) -> tuple[Array, ...]:
    def configuration(item: tuple[Array, Array]) -> tuple[Array, ...]:
        own, sigma = item
        heads = Heads(own, kernel, bandwidth)

        def one(draw: tuple[Array, Array]) -> tuple[Array, ...]:
            def at(phase: Array) -> tuple[Array, ...]:
                series = TrigonometricSeries(amplitude, draw[0], phase)
                task = Task(GaussianDesign(sigma), series, noise_sd)
                terms = first_order_arrays(task, heads, n, draw[1][None])
                bias = terms.bias[0]
                return bias[:, None] * bias, terms.signal_covariance[0], terms.noise_covariance[0]

            return jax.tree.map(lambda part: part.mean(0), jax.vmap(at)(phases))

        every = jax.lax.map(one, (frequency, x), batch_size=256)
        return jax.tree.map(lambda part: part.mean(0), every)

    return jax.lax.map(configuration, (frames, covariance))


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
    problem: Problem,
    pair: Mapping[str, Any],
    resolution: float,
    *,
    population: int,
    generations: int,
    seed: int,
) -> tuple[float, float, int]:
    """Differential evolution over two sets of lines in a plane, and a wave's frequency if any.

    Of all pairs whose index rises by the resolution (every index of ``pair["indices"]``), the
    largest ratio of errors; pairs short of that rank below all others, by what they lack.
    """
    heads = problem.heads.count
    named = pair["indices"]
    chosen = SIXTEEN if named == "all" else [tuple(index.split(", ")) for index in named]
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
        loss,
        bounds,
        popsize=population,
        maxiter=generations,
        rng=seed,
        polish=False,
        vectorized=True,
        updating="deferred",
        tol=1e-6,
    )
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
