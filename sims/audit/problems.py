"""The audit's problems, and what is compared on them."""

from collections.abc import Mapping
from functools import cache

import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.effects import Effect, of_batches
from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.problem.frames import equiangular
from sims.simulation import estimate
from sims.study.specification import Problem
from sims.theory import predict

MARGIN = 0.02
"""Of every comparison of terms and of correlations, relative; fixed when the audit was written."""
COMPARED = (
    "squared_bias",
    "signal_variance",
    "noise_variance",
    "cross_signal_covariance",
    "cross_noise_covariance",
    "ensemble_variance",
    "mse",
)
SHARES = ("signal_variance", "cross_signal_covariance", "cross_noise_covariance")
"""Terms compared as shares of a head's variance: their own size says little."""
ANGLES = ((30.0, 60.0), (15.0, 75.0), (90.0, 90.0))
LAW_BANDWIDTH, LAW_KEYS = 0.7, 1024


@cache
def problem(case: str = "gaussian", n: int = 8) -> Problem:
    """Three heads of width 1, where exact theory is fast.

    ``gaussian`` and ``softmax``: unequal directions, anisotropic keys in R^4; ``line``: keys in R,
    unequal bandwidths, so that all bias is that of smoothing.
    """
    if case == "line":
        task = Task(GaussianDesign(np.eye(1)), TrigonometricSeries([1.0], [[1.5]], [0.3]), 0.5)
        heads = Heads(np.ones((3, 1, 1)), "gaussian", np.array([0.5, 0.7, 0.9]))
        return Problem(task, heads, n, jnp.asarray([[0.1], [0.4], [1.0]]))
    rng = np.random.default_rng(5)
    root, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    covariance = (root * np.array([2.0, 1.0, 0.6, 0.4])) @ root.T
    frames = rng.normal(size=(3, 4, 1))
    frames /= np.linalg.norm(frames, axis=1, keepdims=True)
    target = TrigonometricSeries(
        rng.normal(size=5), 0.8 * rng.normal(size=(5, 4)), rng.uniform(0, 6, 5)
    )
    task = Task(GaussianDesign((covariance + covariance.T) / 2), target, 0.8)
    bandwidth = {"gaussian": 0.4, "softmax": 1.3}[case]
    queries = jnp.asarray(0.7 * rng.normal(size=(3, 4)))
    return Problem(task, Heads(frames, case, bandwidth), n, queries)


@cache
def law_problem(angles: tuple[float, float]) -> Problem:
    """Two heads of width 2 at those principal angles, isotropic keys, the query at the origin."""
    frames = equiangular(4, 2, 2, angle=list(angles))
    target = TrigonometricSeries([1.0], np.zeros((1, 4)), [0.0])
    task = Task(GaussianDesign(np.eye(4)), target, 1.0)
    heads = Heads(frames, "gaussian", LAW_BANDWIDTH)
    return Problem(task, heads, LAW_KEYS, jnp.zeros((1, 4)))


def scalars(data: xr.Dataset) -> dict[str, float]:
    """The compared terms of a prediction."""
    return {name: float(data[name]) for name in (*COMPARED, "variance")}


@cache
def truth(case: str = "gaussian") -> xr.Dataset:
    """Exact theory of :func:`problem`."""
    return predict(*problem(case), order="exact", rtol=1e-6)


def simulated(at: Problem, seed: int, replicates: int, batches: int) -> xr.Dataset:
    """Batches of the engine."""
    return estimate(
        *at, seed, replicates_per_batch=replicates, batches=batches, raw_labels=False,
        keep_queries=True,
    )  # fmt: skip


def gaps(
    predicted: Mapping[str, float], data: xr.Dataset, right: Mapping[str, float]
) -> list[Effect]:
    """Relative gaps (simulation − prediction)/scale of every compared term.

    The scale is that of the right theory: a falsehood must not choose its own.
    """
    scales = {name: abs(right["variance" if name in SHARES else name]) for name in COMPARED}
    return [
        of_batches(name, (data[name].values - predicted[name]) / scale)
        for name, scale in scales.items()
    ]
