"""Agents of three kinds: their variance, their covariance, and the variance of pooled estimates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from joblib import Parallel, delayed
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from sims.montecarlo import replicate_key, root_key
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import draw, nw_weights

MEASURED, POOLED = 0, 1
"""The two independent parts of the replicates."""


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every system's v, covariance and pooled variances, batch by batch."""
    run = experiment.simulation_at(fidelity)
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    found = {}
    for index, system in enumerate(settings["systems"]):
        replicates = system["replicates"] * run.replicates_per_batch
        agents = KINDS[system["kind"]](system, settings[system["kind"]])
        sizes = 2 ** np.arange(int(np.log2(system["agents"])) + 1)
        lasting = not system.get("evaporation")
        rows = []
        for batch in range(run.batches):
            few, many = (
                agents((run.seed, index, part, batch), replicates * times, count)
                for part, times, count in (
                    (MEASURED, system.get("measured_factor", 1), settings["measured"]),
                    (POOLED, 1, system["agents"]),
                )
            )
            rows.append((*moments(few[0]), pooled(many, sizes, lasting)))
        variance, covariance, pools = zip(*rows, strict=True)
        found[system["name"]] = xr.Dataset(
            {
                "variance": ("batch", list(variance)),
                "covariance": ("batch", list(covariance)),
                "pooled": (("batch", "agents"), np.stack(pools)),
            },
            coords={"agents": sizes},
            attrs={"kind": system["kind"], "lasting": int(lasting),
                   "replicates": run.batches * replicates},
        )  # fmt: skip
    return found


def moments(covariance: np.ndarray) -> tuple[float, float]:
    """Mean variance of an agent and mean covariance of two, from the agents' covariance (M, M)."""
    count = len(covariance)
    own = np.trace(covariance) / count
    return own, (covariance.sum() / count - own) / (count - 1)


def pooled(agents: tuple[np.ndarray, np.ndarray], sizes: np.ndarray, lasting: bool) -> np.ndarray:
    """Variance of the pooled estimate of M agents, for each M.

    Agents that pool alike form as many disjoint groups of M as there are; else the first M.
    """
    covariance, left = agents
    out = []
    for size in sizes:
        # What is left of the M pheromones of a colony that ends with its M-th ant.
        weights = left[-size:] / left[-size:].sum()
        starts = range(0, len(covariance) - size + 1, size) if lasting else (0,)
        groups = [covariance[a : a + size, a : a + size] for a in starts]
        out.append(np.mean([weights @ group @ weights for group in groups]))
    return np.array(out)


def sampled(estimates: np.ndarray) -> np.ndarray:
    """Sample covariance (M, M) of estimates (R, M, Q), averaged over queries."""
    centred = estimates - estimates.mean(0)
    products = np.einsum("rmq,rkq->mk", centred, centred)
    return products / ((len(estimates) - 1) * estimates.shape[2])


def heads(system: Any, sizes: Any) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """NW heads at common angles; the queries are drawn anew in every replicate."""
    dimension = sizes["dimension"]
    task = Task(DESIGNS["isotropic"](dimension), TARGETS["constant"](dimension, value=0.0), 1.0)

    def agents(name: tuple[int, ...], replicates: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        seed, _, part, batch = name
        # The frames keep the angle whatever their number; those of a part are the same throughout.
        frames = FRAMES["equiangular"](
            dimension, count, sizes["width"], seed=part, angle=system["angle"]
        )
        chosen = Heads(frames, "gaussian", sizes["bandwidth"])
        batch_key = replicate_key(root_key(seed), part, batch)
        keys = jax.vmap(lambda r: jax.random.fold_in(batch_key, r))(jnp.arange(replicates))
        found = _noise(chosen, task, keys, sizes["n"], sizes["queries"], sizes["scale"])
        return np.asarray(found), np.ones(count)

    return agents


@partial(jax.jit, static_argnames=("n", "queries"))
def _noise(heads: Heads, task: Any, keys: Any, n: int, queries: int, scale: float) -> Any:
    """``E Σ_i w_hi w_gi``, (H, H): the covariance given the design of heads with unit label noise.

    The target is 0, so nothing varies but the labels, which this integrates out exactly.
    """

    def one(key: Any) -> Any:
        x, _ = draw(task, key, n)
        at = scale * jax.random.normal(jax.random.fold_in(key, 2**31 - 1), (queries, x.shape[1]))
        weights = jax.vmap(lambda q: nw_weights(heads, q, x))(at)
        return jnp.einsum("qhn,qgn->hg", weights, weights) / queries

    return jax.lax.map(one, keys).mean(0)


def trees(system: Any, sizes: Any) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The trees of a random forest; every replicate has a training set of its own."""
    queries = np.random.default_rng(0).random((sizes["queries"], 5), dtype=np.float32)

    def predictions(state: int, count: int) -> np.ndarray:
        x, y = make_friedman1(sizes["n"], 5, noise=sizes["noise"], random_state=state)
        forest = RandomForestRegressor(
            count, max_features=system["max_features"], random_state=state
        ).fit(x, y)
        return np.array([tree.tree_.predict(queries)[:, 0] for tree in forest.estimators_])

    def agents(name: tuple[int, ...], replicates: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        # The system does not enter: both kinds of trees see the same training sets.
        seed, _, part, batch = name
        states = np.random.default_rng([seed, part, batch]).integers(2**31, size=replicates)
        # Processes, since small trees spend their time in Python.
        found = Parallel(n_jobs=jax.local_device_count(), batch_size="auto")(
            delayed(predictions)(int(state), count) for state in states
        )
        return sampled(np.stack(found)), np.ones(count)

    return agents


def ants(system: Any, sizes: Any) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Readings of ants that follow pheromone, and what is left of their own deposits.

    Choice is linear in the pheromone; a share ``evaporation`` of all pheromone goes at every ant.
    """
    patches, evaporation = sizes["patches"], system["evaporation"]

    def agents(name: tuple[int, ...], replicates: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(name)
        patch = rng.normal(size=(replicates, patches))
        pheromone = np.full((replicates, patches), float(system["initial"]))
        rows = np.arange(replicates)
        out = np.empty((replicates, count, 1))
        for ant in range(count):
            level = np.cumsum(pheromone, axis=1)
            picked = (rng.random((replicates, 1)) * level[:, -1:] > level).sum(1)
            own = sizes["reading_sd"] * rng.normal(size=replicates)
            out[:, ant, 0] = patch[rows, picked] + own
            pheromone *= 1 - evaporation
            pheromone[rows, picked] += 1.0
        return sampled(out), (1 - evaporation) ** np.arange(count)[::-1]

    return agents


KINDS: dict[str, Callable[..., Callable[..., tuple[np.ndarray, np.ndarray]]]] = {
    "heads": heads,
    "trees": trees,
    "ants": ants,
}
"""Kind of agent to ``(system, sizes) -> (name, R, M) -> (covariance (M, M), weights (M,))``."""
