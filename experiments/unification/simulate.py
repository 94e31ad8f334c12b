"""Agents of three kinds: their variance, their covariance, and the variance of pooled estimates.

All of these are linear in the covariance of the agents, (M, M): each is a matrix of coefficients.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from sims.montecarlo import Draw, HostBatches, HostReplicates, Replicates, Sampler
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import draw as training_set
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit

MEASURED, POOLED = 0, 1
"""The two parts of the replicates, numbers of independent streams."""
Settings = Mapping[str, Any]
"""Of a system, or of all of its kind, as in the experiment's file."""
Coefficients = Mapping[str, np.ndarray]
"""By the name of an output, what it takes of each covariance, (…, M, M)."""


def units(experiment: Experiment) -> dict[str, Unit]:
    """Two points a system: its pooled variances, and beside them ``…, measured`` v and ρv."""
    settings, times = experiment.settings, experiment.simulation.replicates_per_batch
    points: dict[str, Unit] = {}
    for index, system in enumerate(settings["systems"]):
        kind, sizes = KINDS[system["kind"]], settings[system["kind"]]
        replicates = system["replicates"] * times
        # Systems of heads see the same keys, those of trees the same training sets.
        stream = (index,) if system["kind"] == "ants" else ()
        agents, few = 2 ** np.arange(int(np.log2(system["agents"])) + 1), settings["measured"]
        many = kind(
            system, sizes, POOLED, int(agents[-1]), pooled(system, agents),
            dims={"pooled": ("agents",)}, coords={"agents": agents},
        )  # fmt: skip
        points[system["name"]] = SampledUnit(many, replicates=replicates, stream=(*stream, POOLED))
        points[f"{system['name']}, measured"] = SampledUnit(
            kind(system, sizes, MEASURED, few, moments(few)),
            replicates=replicates * system.get("measured_factor", 1),
            stream=(*stream, MEASURED),
        )
    return points


def moments(count: int) -> Coefficients:
    """Of the mean variance of an agent, and of the mean covariance of two."""
    own = np.eye(count)
    return {"variance": own / count, "covariance": (1 - own) / (count * (count - 1))}


def pooled(system: Settings, agents: np.ndarray) -> Coefficients:
    """Of the variance of the pooled estimate of M agents, for each M.

    Agents that pool alike form as many disjoint groups of M as there are; else the first M, of
    which each counts by what is left of its pheromone when the M-th has come.
    """
    evaporation, most = system.get("evaporation", 0.0), int(agents[-1])
    matrices = np.zeros((len(agents), most, most))
    for matrix, size in zip(matrices, agents, strict=True):
        left = (1 - evaporation) ** np.arange(size)[::-1]
        products = np.outer(left, left) / left.sum() ** 2
        groups = 1 if evaporation else most // size
        for group in range(groups):
            own = slice(group * size, (group + 1) * size)
            matrix[own, own] = products / groups
    return {"pooled": matrices}


def taken(coefficients: Mapping[str, Any], covariance: Any) -> dict[str, Any]:
    """The outputs of a covariance (M, M), NumPy's or JAX's."""
    return {name: (part * covariance).sum((-2, -1)) for name, part in coefficients.items()}


def sampled(estimates: np.ndarray) -> np.ndarray:
    """Sample covariance (M, M) of estimates (R, M, Q), averaged over queries."""
    centred = estimates - estimates.mean(0)
    products = np.einsum("rmq,rkq->mk", centred, centred)
    return products / ((len(estimates) - 1) * estimates.shape[2])


def heads(
    system: Settings,
    sizes: Settings,
    part: int,
    count: int,
    coefficients: Coefficients,
    **labels: Any,
) -> Sampler:
    """NW heads at common angles; the queries are drawn anew in every replicate.

    The frames keep the angle whatever their number; those of a part are the same throughout.
    """
    dimension = sizes["dimension"]
    task = Task(DESIGNS["isotropic"](dimension), TARGETS["constant"](dimension, value=0.0), 1.0)
    frames = FRAMES["equiangular"](
        dimension, count, sizes["width"], seed=part, angle=system["angle"]
    )
    chosen = Heads(frames, "gaussian", sizes["bandwidth"])
    return Replicates(
        partial(noise, n=sizes["n"], queries=sizes["queries"]),
        constants=(chosen, task, sizes["scale"], coefficients),
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
    return taken(coefficients, jnp.einsum("qhn,qgn->hg", weights, weights) / queries)


def trees(
    system: Settings,
    sizes: Settings,
    part: int,
    count: int,
    coefficients: Coefficients,
    **labels: Any,
) -> Sampler:
    """The trees of a random forest; every replicate has a training set of its own."""
    queries = np.random.default_rng(0).random((sizes["queries"], 5), dtype=np.float32)
    return HostReplicates(
        partial(
            forest, count=count, most=system["max_features"], n=sizes["n"], noise=sizes["noise"]
        ),
        constants=queries,
        per_batch=states,
        rows=True,
        reduce=partial(of_predictions, coefficients=coefficients),
        # Processes, since small trees spend their time in Python.
        n_jobs=jax.local_device_count(),
        **labels,
    )


def states(draw: Draw) -> np.ndarray:
    """scikit-learn's seeds of a batch's replicates, (R,)."""
    return draw.rng().integers(2**31, size=draw.replicates)


def forest(
    _: Draw, queries: np.ndarray, state: int, *, count: int, most: float, n: int, noise: float
) -> dict[str, np.ndarray]:
    """Predictions (M, Q) of the trees of one forest."""
    x, y = make_friedman1(n, 5, noise=noise, random_state=int(state))
    fitted = RandomForestRegressor(count, max_features=most, random_state=int(state)).fit(x, y)
    every = [tree.tree_.predict(queries)[:, 0] for tree in fitted.estimators_]
    return {"predictions": np.array(every)}


def of_predictions(
    kept: Mapping[str, np.ndarray], *, coefficients: Coefficients
) -> dict[str, np.ndarray]:
    """Outputs of the sample covariance over the replicates of a batch."""
    return taken(coefficients, sampled(kept["predictions"]))


def ants(
    system: Settings,
    sizes: Settings,
    part: int,
    count: int,
    coefficients: Coefficients,
    **labels: Any,
) -> Sampler:
    """Ants that follow pheromone, all colonies of a batch at once."""
    rules = (system["initial"], system["evaporation"], sizes["patches"], sizes["reading_sd"])

    def batch(draw: Draw, replicates: int, shared: Coefficients) -> dict[str, np.ndarray]:
        return taken(shared, sampled(colonies(draw.rng(), replicates, count, *rules)))

    return HostBatches(batch, constants=coefficients, **labels)


def colonies(
    rng: np.random.Generator,
    replicates: int,
    count: int,
    initial: float,
    evaporation: float,
    patches: int,
    reading_sd: float,
) -> np.ndarray:
    """Readings (R, M, 1) of ants that come one after another.

    Choice is linear in the pheromone; a share ``evaporation`` of all pheromone goes at every ant.
    """
    patch = rng.normal(size=(replicates, patches))
    pheromone = np.full((replicates, patches), float(initial))
    rows = np.arange(replicates)
    out = np.empty((replicates, count, 1))
    for ant in range(count):
        level = np.cumsum(pheromone, axis=1)
        picked = (rng.random((replicates, 1)) * level[:, -1:] > level).sum(1)
        out[:, ant, 0] = patch[rows, picked] + reading_sd * rng.normal(size=replicates)
        pheromone *= 1 - evaporation
        pheromone[rows, picked] += 1.0
    return out


KINDS: dict[str, Callable[..., Sampler]] = {"heads": heads, "trees": trees, "ants": ants}
"""Kind of agent to ``(system, sizes, part, M, coefficients, dims, coords) -> sampler``."""
