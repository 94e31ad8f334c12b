"""Small problems shared by the tests of the engine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import DESIGNS, KERNELS, TARGETS, Heads, Kernel, Task, gaussian_queries
from sims.simulation.native import usable


def box(query, key, bandwidth):
    """A kernel of one's own, of compact support."""
    inside = jnp.all(jnp.abs(query - key) < bandwidth, axis=0)
    return jnp.where(inside, 0.0, -jnp.inf)


BOX = Kernel("box", box)


@pytest.fixture
def compiler():
    """For tests of the C++ sums."""
    if not usable(KERNELS["gaussian"], "cpu", jnp.inf):
        pytest.skip("no C++ compiler")


def frames(heads: int, dimension: int, width: int, seed: int = 1):
    """Independent Haar frames (H, d, d_k)."""
    keys = jax.random.split(jax.random.key(seed), heads)
    return jnp.stack(
        [jax.random.orthogonal(key, dimension, dtype=jnp.float64)[:, :width] for key in keys]
    )


def problem(
    kernel="gaussian",
    heads=3,
    dimension=4,
    width=2,
    count=5,
    bandwidth=0.7,
    noise=0.5,
    scale=0.6,
):
    """A problem ``(task, heads, queries)`` by its sizes."""
    factor = np.random.default_rng(3).normal(size=(dimension, dimension))
    task = Task(
        DESIGNS["gaussian"](0.5 * np.eye(dimension) + factor @ factor.T / (2 * dimension)),
        TARGETS["rbf"](dimension, seed=2, lengthscale=1.5, features=6),
        noise,
    )
    built = Heads(frames(heads, dimension, width), kernel, bandwidth)
    return task, built, gaussian_queries(dimension, count, scale, seed=4)


@pytest.fixture
def make():
    return problem
