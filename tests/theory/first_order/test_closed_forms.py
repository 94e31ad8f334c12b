"""Closed forms against independent quadrature and brute force over the ambient space."""

import itertools

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    GaussianDesign,
    Heads,
    Task,
    TrigonometricSeries,
)
from sims.theory import first_order_arrays, predict
from tests.by_hand import waves
from tests.simulation.reference import log_kernel

pytestmark = pytest.mark.theory
NAMES = ("bias", "signal_covariance", "noise_covariance")


def random_problem(seed, dimension, width, heads, kernel):
    """Anisotropic Σ, non-orthonormal frames, a bandwidth a head, three queries."""
    rng = np.random.default_rng(seed)
    root = np.eye(dimension) + 0.3 * rng.normal(size=(dimension, dimension))
    covariance = root @ root.T / dimension + 0.3 * np.eye(dimension)
    frames = 0.8 * rng.normal(size=(heads, dimension, width)) / np.sqrt(dimension)
    target = TrigonometricSeries(
        rng.normal(size=5), 0.8 * rng.normal(size=(5, dimension)), rng.uniform(0, 6, 5)
    )
    low, high = (0.7, 1.1) if kernel == "gaussian" else (1.2, 1.6)
    task = Task(GaussianDesign(covariance), target, 0.6)
    problem = Heads(frames, kernel, rng.uniform(low, high, heads))
    return task, problem, 0.6 * rng.normal(size=(3, dimension))


def log_kernels(heads, query, keys):
    """log K_h at every key, written out anew in NumPy: (H, N)."""
    q = np.einsum("hdk,d->hk", heads.frames, query)
    k = np.einsum("hdk,nd->hnk", heads.of_keys, keys)
    return log_kernel(heads.kernel.name, q[:, None], k, np.asarray(heads.bandwidth)[:, None])


def terms_from_measure(task, heads, queries, keys, mass, n):
    """First-order terms at every query, from a discrete measure that stands for the law of X."""
    m, values = waves(task.target, keys), []
    for query in queries:
        kernels = np.exp(log_kernels(heads, query, keys))
        count, p = len(kernels), kernels @ mass
        limit = kernels @ (mass * m) / p
        around = m - limit[:, None]
        signal, noise = np.empty((2, count, count))
        for h, g in itertools.combinations_with_replacement(range(count), 2):
            weight = kernels[h] * kernels[g] * mass / (p[h] * p[g])
            signal[h, g] = signal[g, h] = weight @ (around[h] * around[g]) / n
            noise[h, g] = noise[g, h] = float(task.noise_sd) ** 2 * weight.sum() / n
        own = (kernels**2 * around) @ mass / p**2
        values.append((limit - waves(task.target, query) - own / n, signal, noise))
    return values


def product_grid(task, points, step):
    """Trapezoid rule in whitened coordinates: exponentially accurate for these integrands."""
    d = task.dimension
    axis = step * (np.arange(points) - (points - 1) / 2)
    z = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d)
    mass = np.exp(-0.5 * (z**2).sum(1)) * (step / np.sqrt(2 * np.pi)) ** d
    root = np.linalg.cholesky(np.asarray(task.design.covariance))
    return z @ root.T, mass


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize(
    ("dimension", "width", "points", "step", "of_keys"),
    [
        (2, 1, 160, 0.12, False),
        (3, 1, 90, 0.2, False),
        (4, 2, 34, 0.44, False),
        (2, 1, 160, 0.12, True),
        (3, 2, 70, 0.22, True),
    ],
)
def test_closed_forms_match_quadrature(kernel, dimension, width, points, step, of_keys):
    """Relative error at most 1e-8 in every term, its limit and n_third, by ambient quadrature.

    With one frame a head, and with other frames for keys.
    """
    n = 500
    task, heads, queries = random_problem(dimension, dimension, width, 2, kernel)
    if of_keys:
        other = np.random.default_rng(5).normal(size=heads.frames.shape)
        key_frames = 0.8 * other / np.sqrt(dimension)
        heads = Heads(heads.frames, kernel, heads.bandwidth, key_frames)
    keys, mass = product_grid(task, points, step)
    prediction = predict(task, heads, n, queries)
    arrays = first_order_arrays(task, heads, n, jnp.asarray(queries))
    by_quadrature = terms_from_measure(task, heads, queries, keys, mass, n)
    for q, (query, terms) in enumerate(zip(queries, by_quadrature, strict=True)):
        for name, expected in zip(NAMES, terms, strict=True):
            np.testing.assert_allclose(prediction[name][q], expected, rtol=1e-8, err_msg=name)
            np.testing.assert_allclose(getattr(arrays, name)[q], expected, rtol=1e-8)
        kernels = np.exp(log_kernels(heads, query, keys))
        p, m = kernels @ mass, waves(task.target, keys)
        np.testing.assert_allclose(arrays.limit[q], kernels @ (mass * m) / p, rtol=1e-8)
        third = n * (kernels**2 @ mass) * p / (kernels**3 @ mass)
        np.testing.assert_allclose(prediction["n_third"][q], third, rtol=1e-8)


def test_precision_survives_high_frequencies():
    """Frequencies whose Gaussian factors underflow contribute zero, not NaN."""
    target = TARGETS["holder"](4, beta=0.5, levels=24)
    task = Task(DESIGNS["isotropic"](4), target, 0.5)
    heads = Heads(FRAMES["equiangular"](4, 2, 2, cosine=0.5), "gaussian", 0.3)
    prediction = predict(task, heads, 1000, np.zeros((1, 4)))
    assert all(np.isfinite(prediction[name]).all() for name in ("bias", "signal_covariance"))


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_gradients_match_finite_differences(kernel):
    task, heads, queries = random_problem(5, 6, 2, 2, kernel)

    def total(frames, bandwidth):
        arrays = first_order_arrays(
            task, Heads(frames, kernel, bandwidth), 80.0, jnp.asarray(queries)
        )
        return (arrays.bias**2).sum() + 10 * (
            arrays.signal_covariance + arrays.noise_covariance
        ).sum()

    jax.test_util.check_grads(
        jax.jit(total), (heads.frames, heads.bandwidth), order=1, modes=["rev"], rtol=1e-5, eps=1e-5
    )


@pytest.mark.parametrize("together", [1, 150, 2**30])
def test_groups_are_the_whole(monkeypatch, together):
    """However many pairs of heads a step takes, one, some or all: the forms that JAX maps."""
    monkeypatch.setattr("sims.theory.first_order.closed_forms.TOGETHER", together)
    task, heads, queries = random_problem(4, 3, 2, 5, "gaussian")
    found = predict(task, heads, 50, queries, order="first")
    mapped = first_order_arrays(task, heads, 50.0, jnp.asarray(queries))
    for name in NAMES:
        np.testing.assert_allclose(found[name], getattr(mapped, name), rtol=1e-9, atol=1e-15)
