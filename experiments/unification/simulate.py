"""Agents of three kinds: their variance, their covariance, and the variance of pooled estimates.

All of these are linear in the covariance of the agents, (M, M): each is a matrix of coefficients.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from sklearn import config_context
from sklearn.datasets import make_friedman1
from sklearn.tree import DecisionTreeRegressor

from sims.montecarlo import Draw, HostBatches, HostReplicates, Replicates, Sampler
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task, TrigonometricSeries
from sims.simulation import draw as training_set
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit

MEASURED, POOLED = 0, 1
"""The two parts of the replicates, numbers of independent streams."""
Settings = Mapping[str, Any]
"""Of a system, together with those of its kind, as in the experiment's file."""
Coefficients = Mapping[str, np.ndarray]
"""By the name of an output, what it takes of each covariance, (…, M, M)."""


def units(experiment: Experiment) -> dict[str, Unit]:
    """Two points a system: its pooled variances and errors, and ``…, measured`` v and ρv.

    Of a pool of the settings there is one point, its errors alone.
    """
    settings, times = experiment.settings, experiment.simulation.replicates_per_batch
    points: dict[str, Unit] = {}
    for index, system in enumerate([*settings["systems"], *settings["pools"]]):
        kind, system = KINDS[system["kind"]], settings[system["kind"]] | system
        system["unequal"] = settings["unequal"]
        replicates = system["replicates"] * times
        # Systems of heads see the same keys, those of trees the same training sets.
        stream = (index,) if system["kind"] == "ants" else ()
        agents, few = 2 ** np.arange(int(np.log2(system["agents"])) + 1), settings["measured"]
        law = index < len(settings["systems"])
        every = pooled(system, agents) if law else errors(agents)
        many = kind(
            system,
            POOLED,
            int(agents[-1]),
            every,
            dims=dict.fromkeys(every, ("agents",)),
            coords={"agents": agents},
        )
        points[system["name"]] = SampledUnit(many, replicates=replicates, stream=(*stream, POOLED))
        if not law:
            continue
        points[f"{system['name']}, measured"] = SampledUnit(
            kind(system, MEASURED, few, moments(few)),
            replicates=replicates * system.get("measured_factor", 1),
            stream=(*stream, MEASURED),
        )
    return points


def moments(count: int) -> Coefficients:
    """Of the mean variance of an agent, and of the mean covariance of two."""
    own = np.eye(count)
    return {"variance": own / count, "covariance": (1 - own) / (count * (count - 1))}


def pooled(system: Settings, agents: np.ndarray) -> Coefficients:
    """Of the variance of M pooled agents, for each M and also under unequal weights, and ``error``.

    Agents that pool alike form as many disjoint groups of M as there are; else the first M, of
    which each counts by what is left of its pheromone when the M-th has come. The error is always
    that of the plain average of the first M, so that systems differ by their agents alone.
    """
    evaporation, most = system.get("evaporation", 0.0), int(agents[-1])

    def matrices(kept: float) -> np.ndarray:
        out = np.zeros((len(agents), most, most))
        for matrix, size in zip(out, agents, strict=True):
            alpha = geometric_weights(kept, size)
            groups = 1 if evaporation else most // size
            for group in range(groups):
                own = slice(group * size, (group + 1) * size)
                matrix[own, own] = np.outer(alpha, alpha) / groups
        return out

    return {
        "pooled": matrices(1 - evaporation),
        "unequal": matrices(1 - system["unequal"]),
        **errors(agents),
    }


def errors(agents: np.ndarray) -> Coefficients:
    """Of the mean squared error of the plain average of the first M agents, for each M."""
    first = np.arange(int(agents[-1])) < agents[:, None]
    return {"error": (first[:, :, None] & first[:, None]) / agents[:, None, None] ** 2}


def geometric_weights(kept: float, count: int) -> np.ndarray:
    """Weights of sum 1, each ``kept`` times the next."""
    left = kept ** np.arange(count)[::-1]
    return np.asarray(left / left.sum())


def taken(coefficients: Mapping[str, Any], covariance: Any, products: Any) -> dict[str, Any]:
    """The outputs of a covariance and of mean products of errors (M, M), NumPy's or JAX's.

    ``error``, a mean squared error, is taken of the products of errors; others of the covariance.
    """
    return {
        name: (part * (products if name == "error" else covariance)).sum((-2, -1))
        for name, part in coefficients.items()
    }


def sampled(estimates: np.ndarray, truth: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Sample covariance and mean products of errors (M, M) of estimates (R, M, Q), over queries."""

    def products(values: np.ndarray) -> np.ndarray:
        return np.einsum("rmq,rkq->mk", values, values) / (len(values) * values.shape[2])

    count = len(estimates)
    return products(estimates - estimates.mean(0)) * count / (count - 1), products(
        estimates - truth
    )


def heads(
    system: Settings, part: int, count: int, coefficients: Coefficients, **labels: Any
) -> Sampler:
    """NW heads at common angles; the queries are drawn anew in every replicate.

    The frames keep the angle whatever their number; those of a part are the same throughout, and
    those of two angles are made of the same orthonormal blocks. With a ``target`` in the settings
    the errors are about it, else about 0.
    """
    dimension = system["dimension"]
    task = Task(DESIGNS["isotropic"](dimension), TARGETS["constant"](dimension, value=0.0), 1.0)
    frames = FRAMES["equiangular"](
        dimension, count, system["width"], seed=part, angle=system["angle"]
    )
    chosen = Heads(frames, system.get("kernel", "gaussian"), system["bandwidth"])
    if "target" in system:
        sizes = {"n": system["n"], "queries": system["queries"]}
        shared = (chosen, task, system["scale"], coefficients)
        if system["target"] == "common direction":
            return Replicates(
                partial(with_target, **sizes), constants=(*shared, common_wave(frames)), **labels
            )
        return Replicates(
            partial(with_drawn_target, **sizes),
            constants=shared,
            rows=True,
            per_batch=partial(targets, dimension=dimension, family=system["target"]),
            **labels,
        )
    return Replicates(
        partial(noise, n=system["n"], queries=system["queries"]),
        constants=(chosen, task, system["scale"], coefficients),
        **labels,
    )


def noise(
    key: Array, shared: tuple[Heads, Task, float, Coefficients], _: None, *, n: int, queries: int
) -> dict[str, Array]:
    """Outputs of ``Σ_i w_hi w_gi``, the covariance given the keys under unit label noise.

    The target is 0, so nothing varies but the labels, which this integrates out exactly.
    """
    chosen, task, scale, coefficients = shared
    x, _ = training_set(task, key, n)
    at = scale * jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (queries, x.shape[1]))
    weights = jax.vmap(lambda q: nw_weights(chosen, q, x))(at)
    covariance = jnp.einsum("qhn,qgn->hg", weights, weights) / queries
    return taken(coefficients, covariance, covariance)


def with_target(
    key: Array,
    shared: tuple[Heads, Task, float, Coefficients, TrigonometricSeries],
    _: None,
    *,
    n: int,
    queries: int,
) -> dict[str, Array]:
    """Outputs of the products of errors about a target m, with the labels integrated out.

    With ``g_h = Σ_i w_hi m(X_i)`` they are ``(g_h − m(x))(g_g − m(x)) + Σ_i w_hi w_gi`` (H, H),
    averaged over the queries x, for unit label noise.
    """
    chosen, task, scale, coefficients, target = shared
    x, _ = training_set(task, key, n)
    at = scale * jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (queries, x.shape[1]))
    weights = jax.vmap(lambda q: nw_weights(chosen, q, x))(at)
    bias = weights @ target(x) - target(at)[:, None]
    products = jnp.einsum("qhn,qgn->hg", weights, weights) + bias.T @ bias
    return taken(coefficients, None, products / queries)


def with_drawn_target(
    key: Array,
    shared: tuple[Heads, Task, float, Coefficients],
    target: TrigonometricSeries,
    *,
    n: int,
    queries: int,
) -> dict[str, Array]:
    """As :func:`with_target`, of the replicate's own target."""
    return with_target(key, (*shared, target), None, n=n, queries=queries)


def targets(draw: Draw, *, dimension: int, family: Settings) -> TrigonometricSeries:
    """A target for every replicate of a batch: a series whose leaves are (R, J, …).

    The waves of a random-feature target are independent and alike, so that R·J of one draw, in R
    groups with their amplitudes √R times as large, are R targets of J waves.
    """
    count, waves = draw.replicates, family["features"]
    options = {name: value for name, value in family.items() if name not in ("kind", "features")}
    seed = int(draw.rng().integers(2**31))
    whole = TARGETS[family["kind"]](dimension, seed=seed, features=count * waves, **options)
    each = jax.tree.map(lambda leaf: leaf.reshape(count, waves, *leaf.shape[1:]), whole)
    return eqx.tree_at(lambda series: series.amplitude, each, each.amplitude * np.sqrt(count))


def common_wave(frames: Array) -> TrigonometricSeries:
    """``sin u·x``, u the direction that is nearest to the first directions of all heads.

    Heads at one angle have ``Σ_h U_h ∝ Σ_h Q_h`` with orthonormal blocks Q_h, whatever the angle:
    u is its first column, normed. The squared cosine of u to a head is ``(1 + (H − 1)c)/H``, c the
    cosine of the angle.
    """
    direction = np.asarray(frames, float)[:, :, 0].sum(0)
    return TrigonometricSeries([1.0], [direction / np.linalg.norm(direction)], [-np.pi / 2])


def trees(
    system: Settings, part: int, count: int, coefficients: Coefficients, **labels: Any
) -> Sampler:
    """The trees of a random forest; every replicate has a training set of its own.

    Without the bootstrap and with all features at every split, trees of one forest differ only
    where splits tie.
    """
    size = (system["queries"], system["features"])
    queries = np.random.default_rng(0).random(size, dtype=np.float32)
    return HostReplicates(
        forest,
        constants=(system, count, queries),
        per_batch=states,
        rows=True,
        reduce=partial(of_predictions, coefficients=coefficients, truth=friedman(queries)),
        **labels,
    )


def states(draw: Draw) -> np.ndarray:
    """scikit-learn's seeds of a batch's replicates, (R,)."""
    return draw.rng().integers(2**31, size=draw.replicates)


def forest(_: Draw, shared: tuple[Settings, int, np.ndarray], state: int) -> dict[str, np.ndarray]:
    """Predictions (M, Q) of the trees of one forest (Breiman 2001, doi:10.1023/A:1010933404324)."""
    system, count, queries = shared
    x, y = make_friedman1(
        system["n"], system["features"], noise=system["noise"], random_state=int(state)
    )
    # What RandomForestRegressor does, to the bit, without its work for large ones, which takes
    # three times as long as small trees do.
    points, every = x.astype(np.float32), []
    seeds = np.random.RandomState(int(state)).randint(np.iinfo(np.int32).max, size=count)
    own = np.random.RandomState()
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for seed in seeds:
            kept = None
            if system.get("bootstrap", True):
                own.seed(seed)
                drawn = own.randint(0, len(x), len(x), dtype=np.int32)
                kept = np.bincount(drawn, minlength=len(x)).astype(float)
            own.seed(seed)
            rule = DecisionTreeRegressor(max_features=system["max_features"], random_state=own)
            rule.fit(points, y[:, None], sample_weight=kept, check_input=False)
            every.append(rule.tree_.predict(queries)[:, 0])
    return {"predictions": np.array(every)}


def friedman(points: np.ndarray) -> np.ndarray:
    """Friedman's first function at points (Q, p), of their first five features.

    Friedman (1991), doi:10.1214/aos/1176347963.
    """
    a, b, c, d, e = np.asarray(points, float).T[:5]
    return np.asarray(10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e)


def of_predictions(
    kept: Mapping[str, np.ndarray], *, coefficients: Coefficients, truth: np.ndarray
) -> dict[str, np.ndarray]:
    """Outputs of the predictions of the replicates of a batch."""
    return taken(coefficients, *sampled(kept["predictions"], truth))


def ants(
    system: Settings, part: int, count: int, coefficients: Coefficients, **labels: Any
) -> Sampler:
    """Ants that follow pheromone, all colonies of a batch at once."""

    def batch(draw: Draw, replicates: int, shared: Coefficients) -> dict[str, np.ndarray]:
        return taken(shared, *sampled(colonies(draw.rng(), replicates, count, system), 0.0))

    return HostBatches(batch, constants=coefficients, **labels)


def colonies(rng: np.random.Generator, replicates: int, count: int, system: Settings) -> np.ndarray:
    """Readings (R, M, 1) of ants that come one after another.

    θ is 0. Choice is linear in the pheromone, of which a share ``evaporation`` goes at every ant.
    """
    patch = rng.normal(size=(replicates, system["patches"]))
    pheromone = np.full(patch.shape, float(system["initial"]))
    rows = np.arange(replicates)
    out = np.empty((replicates, count, 1))
    for ant in range(count):
        level = np.cumsum(pheromone, axis=1)
        picked = (rng.random((replicates, 1)) * level[:, -1:] > level).sum(1)
        out[:, ant, 0] = patch[rows, picked] + system["reading_sd"] * rng.normal(size=replicates)
        pheromone *= 1 - system["evaporation"]
        pheromone[rows, picked] += 1.0
    return out


KINDS: dict[str, Callable[..., Sampler]] = {"heads": heads, "trees": trees, "ants": ants}
"""Kind of agent to ``(system, part, M, coefficients, dims, coords) -> sampler``."""
