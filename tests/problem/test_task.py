"""Kernels, queries, tasks and heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from sims.problem import (
    DESIGNS,
    KERNELS,
    QUERIES,
    TARGETS,
    Heads,
    Kernel,
    Task,
    ball_queries,
    check_compatible,
    gaussian_queries,
)
from sims.problem.kernel_check import check_kernel
from sims.problem.kernels import get_kernel
from sims.weights import FACTORIES, WeightRule
from tests.by_hand import refusals, refused


def polynomial(u, power):
    return np.log((1 - u**2) ** power) if u < 1 else -np.inf


FORMULAS = {
    "gaussian": lambda q, k, b: -np.sum((q - k) ** 2) / (2 * b**2),
    "softmax": lambda q, k, b: np.dot(q, k) / b**2,
    "laplace": lambda q, k, b: -np.linalg.norm(q - k) / b,
    "student": lambda q, k, b: -(3 + len(q)) / 2 * np.log(1 + np.sum((q - k) ** 2) / (3 * b**2)),
    "epanechnikov": lambda q, k, b: polynomial(np.linalg.norm(q - k) / b, 1),
    "biweight": lambda q, k, b: polynomial(np.linalg.norm(q - k) / b, 2),
    "triweight": lambda q, k, b: polynomial(np.linalg.norm(q - k) / b, 3),
}
"""An explicit formula for every kernel: a new one must bring its own."""
COUNT = 2000
QUERY_OPTIONS = {
    "gaussian": {"scale": 0.5},
    "correlated": {"covariance": [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]]},
    "ball": {"radius": 2.0},
    "explicit": {"points": np.arange(3.0 * COUNT).reshape(COUNT, 3)},
}


@pytest.mark.theory
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_against_its_formula(name):
    """Coordinates first, everything else broadcast; any bandwidth; and it keeps its own word."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(3, 4, 1)), rng.normal(size=(3, 1, 5))
    kernel = KERNELS[name]
    assert kernel.name == name
    log_value = jax.jit(kernel.log_value)
    for b in (0.3, 2.0):
        found = np.asarray(log_value(q, k, b))
        expected = [[FORMULAS[name](q[:, i, 0], k[:, 0, j], b) for j in range(5)] for i in range(4)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    check_kernel(kernel, 2)  # as if it were one's own: scaled, support, log_ratio
    x = jnp.ones((2,), jnp.float32)
    assert log_value(x, 2 * x, jnp.float32(0.5)).dtype == jnp.float32
    # A gradient, also where a compact kernel ends: the key is at a distance of exactly b.
    slope = jax.jit(jax.grad(lambda b, k: kernel.log_value(jnp.zeros(2), k, b)))
    assert np.isfinite([slope(0.7, jnp.array([0.5, 2.0])), slope(0.5, jnp.array([0.5, 0.0]))]).all()


def test_get_kernel():
    box = Kernel("box", lambda q, k, b: jnp.where(jnp.sum((q - k) ** 2, 0) < b**2, 0.0, -jnp.inf))
    assert get_kernel(box) is box
    assert get_kernel("softmax") is KERNELS["softmax"]
    for wrong in ("box", ["gaussian"], None):
        with refused(r"heads\.kernel: got .*; allowed: .*gaussian"):
            get_kernel(wrong)


@pytest.mark.parametrize("name", QUERIES)
def test_queries_contract(name):
    options = QUERY_OPTIONS[name]
    points = QUERIES[name](3, COUNT, **options)
    assert points.shape == (COUNT, 3)
    np.testing.assert_array_equal(points, QUERIES[name](3, COUNT, **options))
    if name != "explicit":
        assert not np.allclose(points, QUERIES[name](3, COUNT, seed=1, **options))
    for dimension, count, field in ((0, 5, "dimension"), (3, 0, "count")):
        with refused(f"{field}: got"):
            QUERIES[name](dimension, count, **options)


@pytest.mark.theory
def test_laws_of_queries():
    """Kolmogorov–Smirnov at 1e-4 each (seeds are fixed: this never flickers)."""
    x = np.asarray(gaussian_queries(3, COUNT, 0.7, seed=1))
    assert kstest(x.ravel() / 0.7, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(x.T) - np.eye(3)).max() < 5 / np.sqrt(COUNT)
    y = np.asarray(ball_queries(3, COUNT, 1.5, seed=1))
    radius = np.linalg.norm(y, axis=1)
    assert radius.max() <= 1.5
    assert kstest((radius / 1.5) ** 3, "uniform").pvalue > 1e-4
    assert np.abs(y.mean(0) / (y.std(0) / np.sqrt(COUNT))).max() < 5
    assert not gaussian_queries(3, COUNT, 0.0).any()


@pytest.mark.theory
def test_correlated_queries_have_the_covariance_that_is_asked_for():
    """κ²Σ for a Σ that is no multiple of I, singular ones too; Σ = I gives isotropic queries."""
    sigma = np.array([[1.0, 0.9, 0.0], [0.9, 2.0, 0.3], [0.0, 0.3, 0.5]])
    correlated = QUERIES["correlated"]
    z = np.asarray(correlated(3, COUNT, sigma, 0.5, seed=1))
    white = np.linalg.solve(np.linalg.cholesky(sigma), z.T) / 0.5
    assert kstest(white.ravel(), "norm").pvalue > 1e-4
    assert np.abs(np.cov(z.T) - 0.25 * sigma).max() < 5 * 0.25 * 2 * np.sqrt(2 / COUNT)
    line = np.asarray(correlated(2, COUNT, np.ones((2, 2)), seed=1))
    np.testing.assert_allclose(line[:, 0], line[:, 1], atol=1e-12)
    same = correlated(3, COUNT, np.eye(3), 0.7, seed=1)
    np.testing.assert_allclose(same, gaussian_queries(3, COUNT, 0.7, seed=1), atol=1e-12)


def test_heads():
    frames = np.random.default_rng(0).normal(size=(3, 5, 2))
    heads = Heads(frames, "gaussian", 0.5)
    assert (heads.count, heads.dimension, heads.width) == (3, 5, 2)
    np.testing.assert_array_equal(heads.bandwidth, [0.5, 0.5, 0.5])
    np.testing.assert_array_equal(Heads(frames, "softmax", [1, 2, 3]).bandwidth, [1, 2, 3])
    # A pytree: arrays are leaves, so bandwidth and frames can be traced and differentiated.
    assert len(jax.tree.leaves(heads)) == 2
    traced = jax.jit(lambda b: Heads(frames, "gaussian", b).bandwidth.sum())
    assert float(traced(0.5)) == 1.5
    with pytest.raises(AttributeError):
        heads.bandwidth = 1.0
    assert heads.of_keys is heads.frames
    np.testing.assert_array_equal(Heads(frames, "gaussian", 0.5, 2 * frames).of_keys, 2 * frames)


FRAMES = np.zeros((2, 3, 1))
TASK = Task(DESIGNS["isotropic"](3), TARGETS["constant"](3), 1.0)
HEADS = Heads(FRAMES, "gaussian", 1.0)


test_bad_input_is_named = refusals(
    [
        (lambda: Heads(FRAMES, "gaussian", float("nan")), "heads.bandwidth: got nan"),
        (lambda: Heads(FRAMES[0], "gaussian", 1.0), r"heads.frames: got \(3, 1\)"),
        (lambda: Heads(FRAMES + np.inf, "gaussian", 1.0), "heads.frames: got 'NaN or infinity'"),
        (
            lambda: Heads(FRAMES, "gaussian", 1.0, FRAMES[:1]),
            r"heads.key_frames: got \(1, 3, 1\); allowed: shape \(2, 3, 1\)",
        ),
        (lambda: Heads(FRAMES, "sparsemax", 1.0).kernel, "heads.kernel: got 'weight rule sparsem"),
        (lambda: Task(DESIGNS["isotropic"](2), TASK.target, 1.0), "target.dimension: got 3"),
        (lambda: Task("isotropic", TASK.target, 1.0), "design"),
        (lambda: Task(TASK.design, "rbf", 1.0), "target"),
        (lambda: gaussian_queries(3, 2, -1.0), "queries.scale: got -1.0"),
        (lambda: QUERIES["correlated"](3, 2, np.eye(2)), r"queries.covariance: got \(2, 2\)"),
        (lambda: QUERIES["explicit"](3, 1, [[1.0, 2.0]]), r"queries.points: got \(1, 2\)"),
        (lambda: check_compatible(TASK, HEADS, 0, FRAMES[:, :, 0]), "n: got 0; allowed"),
        (lambda: check_compatible(TASK, HEADS, 10**30, [[0.0] * 3]), "n: got"),
        (lambda: check_compatible(TASK, HEADS, 10, [[1.0, 2, np.inf]]), "queries: got 'NaN"),
        (
            lambda: check_compatible(TASK, Heads(np.zeros((2, 4, 1)), "gaussian", 1.0), 10, [[0]]),
            r"heads.frames: got \(2, 4, 1\); allowed: \(H, 3, d_k\)",
        ),
    ],
)


RELU = FACTORIES["relu"]()


def _distance(q, k):
    return jnp.sqrt(jnp.sum((q - k) ** 2, axis=0))


test_kernel_of_ones_own_is_what_it_says = refusals(
    [
        (Kernel("k", lambda q, k, b: -_distance(q, k) / b**2), "scaled=False"),
        (Kernel("k", lambda q, k, b: jnp.log(1 - _distance(q, k) / b)), "NaN or infinity at"),
        (Kernel("k", lambda q, k, b: -jnp.log(_distance(q, k) / b)), "infinity at distance 0 b"),
        (Kernel("k", lambda q, k, b: jnp.sinc(1.0) * b / _distance(q, k)), "at distance 0 b"),
        (WeightRule("k", lambda q, k, b: 1 / _distance(q, k), RELU.weights), "NaN or infinity"),
        (Kernel("k", lambda q, k, b: -jnp.sum((q - k) ** 2, axis=-1)), "coordinates first"),
        (Kernel("k", lambda q, k, b: -np.abs(np.asarray(q - k)).sum(0)), "in jax.numpy"),
        (Kernel("k", lambda q, k, b: -_distance(q, k) / b, support=2.0), "support 2"),
        (
            Kernel("k", lambda q, k, b: -_distance(q, k) / b, lambda q, k, a: _distance(k, a)),
            "log_ratio",
        ),
    ],
    lambda kernel: Heads(jnp.eye(3)[None, :, :2], kernel, 0.7),
)
"""A wrong ``scaled`` would give other numbers without a word."""


def test_kernels_of_ones_own_that_keep_their_word():
    frames = jnp.eye(3)[None, :, :2]
    Heads(frames, Kernel("k", lambda q, k, b: -_distance(q, k) / b**2, scaled=False), 0.7)
    Heads(frames, Kernel("k", lambda q, k, b: -_distance(q, k) / b + b), 0.7)  # cancels
    jax.jit(
        lambda b: Heads(frames, Kernel("k", lambda q, k, b: -_distance(q, k) / b), b).bandwidth
    )(0.7)
