"""Exact theory against identities, direct quadrature, brute force and the first-order theory."""

import numpy as np
import pytest
from exact_problems import brute_force, flat

from sims.base.errors import InputError
from sims.problem import (
    CubeDesign,
    EmpiricalDesign,
    Heads,
    Task,
    TrigonometricSeries,
    redundant_views,
)
from sims.problem.designs import isotropic
from sims.problem.frames import equiangular
from sims.problem.kernels import KERNELS, Kernel
from sims.theory import first_order_terms, predict
from sims.theory.exact import exact_terms
from sims.weights import FACTORIES

pytestmark = pytest.mark.theory


def series(d, seed=0, terms=4):
    rng = np.random.default_rng(seed)
    return TrigonometricSeries(
        rng.normal(size=terms), rng.normal(size=(terms, d)), rng.uniform(0, 6, terms)
    )


LOG = {  # of a key's coordinate z and the query's q, for one coordinate
    "gaussian": lambda q, z, b: -((z - q) ** 2) / (2 * b * b),
    "softmax": lambda q, z, b: q * z / b**2,
    "student": lambda q, z, b: -2 * np.log1p((z - q) ** 2 / (3 * b * b)),
}


FRAMES = np.array([[[1.0], [0.0]], [[0.6], [0.8]]])
OTHERS = np.array([[[0.3], [0.9]], [[-0.7], [0.5]]])


@pytest.mark.parametrize(
    ("kernel", "of_keys"),
    [
        *((kernel, FRAMES) for kernel in LOG),
        *((kernel, OTHERS) for kernel in LOG),  # keys through frames of their own
    ],
)
def test_two_keys_against_direct_quadrature(kernel, of_keys):
    """E over (X_1, X_2) ∈ R² × R² by the trapezoid rule, without any Laplace integral."""
    task, x = Task(isotropic(2), series(2), 0.5), np.array([0.4, -0.7])
    heads = Heads(FRAMES, kernel, [0.9, 1.1], None if of_keys is FRAMES else of_keys)
    data = exact_terms(task, heads, 2, x[None], rtol=1e-7)

    axis = np.linspace(-7.2, 7.2, 49)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(-0.5 * (grid**2).sum(1))
    density /= density.sum()
    weight = []
    for frame, key_frame, b in zip(FRAMES, of_keys, (0.9, 1.1), strict=True):
        z, q = (grid @ key_frame)[:, 0], float(x @ frame[:, 0])
        log = LOG[kernel](q, z, b)
        weight.append(1 / (1 + np.exp(log[None, :] - log[:, None])))
    m = np.asarray(task.target(grid))
    outputs = [w * m[:, None] + (1 - w) * m[None, :] for w in weight]
    mean = [density @ g @ density for g in outputs]
    for h in range(2):
        np.testing.assert_allclose(data["bias"][0, h] + float(task.target(x)), mean[h], atol=1e-7)
        for g in range(2):
            signal = density @ (outputs[h] * outputs[g]) @ density - mean[h] * mean[g]
            both = weight[h] * weight[g] + (1 - weight[h]) * (1 - weight[g])
            np.testing.assert_allclose(data["signal_covariance"][0, h, g], signal, atol=1e-7)
            np.testing.assert_allclose(
                data["noise_covariance"][0, h, g], 0.25 * density @ both @ density, rtol=1e-7
            )


@pytest.mark.parametrize(
    ("width", "n", "kernel", "bandwidth", "replicates"),
    [
        (1, 2000, "gaussian", 0.6, 200),
        (1, 5, "laplace", 0.5, 20_000),
        (2, 60, "softmax", 0.9, 4_000),
        pytest.param(2, 12, "student", 0.4, 10_000, marks=pytest.mark.slow),
    ],
)
def test_against_brute_force(width, n, kernel, bandwidth, replicates):
    rng = np.random.default_rng(width + n)
    d = width + 2
    frames = np.stack([np.linalg.qr(rng.normal(size=(d, width)))[0] for _ in range(2)])
    task = Task(isotropic(d), series(d, n), 0.7)
    heads, x = Heads(frames, kernel, bandwidth), 0.5 * rng.normal(size=d)
    data = exact_terms(task, heads, n, x[None])
    mean, mcse = brute_force(task, heads, n, x, 5, replicates)
    np.testing.assert_array_less(np.abs(flat(data) - mean), 4 * mcse + 1e-4 * np.abs(mean))


def test_converges_to_first_order_theory_like_one_over_n():
    rng = np.random.default_rng(0)
    task = Task(isotropic(3), series(3, 1), 1.0)
    heads = Heads(
        np.stack([np.linalg.qr(rng.normal(size=(3, 1)))[0] for _ in range(2)]), "gaussian", 0.6
    )
    x = np.array([[0.3, -0.2, 0.5]])
    gaps = []
    for n in (200, 2000):
        exact, first = exact_terms(task, heads, n, x), first_order_terms(task, heads, n, x)
        np.testing.assert_allclose(exact["n_eff"], first["n_eff"], rtol=0.02)
        gaps.append(np.abs(flat(exact) - flat(first)) / np.abs(flat(exact)))
    # The relative remainder is O(1/n), that of the bias, which has a limit, O(1/n²).
    np.testing.assert_allclose(gaps[0][2:] / gaps[1][2:], 10, rtol=0.1)
    np.testing.assert_allclose(gaps[0][:2] / gaps[1][:2], 100, rtol=0.15)


def test_aligned_heads_have_the_covariance_of_one_head():
    """A singular joint law, which grids do not resolve; and two views that are equal."""
    x = 0.4 * np.ones((1, 4))
    singular, frames = redundant_views(2, 2, 1, noise=0.5, correlation=1.0)
    aligned = equiangular(4, 2, 1, cosine=1.0)
    for design, given in ((isotropic(4), aligned), (singular, frames)):
        data = exact_terms(Task(design, series(4), 1.0), Heads(given, "gaussian", 0.7), 20, x)
        assert "tilted sobol" in data.attrs["method"]
        for name in ("signal_covariance", "noise_covariance"):
            values = data[name].values
            np.testing.assert_allclose(values[0, 0, 1], values[0, 0, 0], rtol=1e-3)


def test_unmet_accuracy_is_said():
    task = Task(isotropic(4), series(4), 1.0)
    heads = Heads(equiangular(4, 2, 2, cosine=0.5), "gaussian", 0.7)
    with pytest.warns(UserWarning, match="did not reach rtol"):
        data = exact_terms(task, heads, 20, np.zeros((1, 4)), rtol=1e-4, max_level=0)
    assert not data["converged"].any()
    with pytest.raises(InputError, match="rtol"):
        exact_terms(task, heads, 20, np.zeros((1, 4)), rtol=0.0)


def test_kernels_that_vanish_without_saying_where_are_refused():
    task = Task(isotropic(2), series(2), 1.0)
    edge = Kernel("edge", KERNELS["epanechnikov"].log_value)
    with pytest.raises(InputError, match="support"):
        exact_terms(task, Heads(np.ones((2, 2, 1)), edge, 0.5), 10, np.zeros((1, 2)))


GOOD, ROWS = np.array([[0.3, -0.2], [0.1, 0.4]]), np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize("order", ["exact", "auto"])
@pytest.mark.parametrize(
    ("design", "kernel", "bandwidth", "queries", "place"),
    [
        (EmpiricalDesign(1e6 * ROWS), "gaussian", 0.3, 1e6 * GOOD, "bandwidth 0.3 at query 0"),
        (isotropic(2), FACTORIES["entmax"](nu=1, scores="distance"), 1e12, GOOD, "at some query"),
        (CubeDesign(2), "epanechnikov", 1e-9, GOOD, "bandwidth 1e-09 at query 0, head 0"),
    ],
)
def test_no_number_without_mass(design, kernel, bandwidth, queries, place, order):
    """Where a kernel has no mass at one query and head, one line says where; by order auto, too."""
    heads = Heads(FRAMES, kernel, bandwidth)
    with pytest.raises(InputError, match=place) as error:
        predict(Task(design, series(2), 1.0), heads, 640, queries, order=order)
    assert "\n" not in str(error.value)


def test_far_queries_and_wide_kernels_keep_their_mass():
    """Beyond all keys the Laplace kernel's weights do not depend on the query."""
    task = Task(EmpiricalDesign(ROWS), series(2), 1.0)
    near, far = (
        exact_terms(task, Heads(FRAMES, "laplace", 0.5), 20, np.full((1, 2), x)) for x in (9, 1e6)
    )
    for name in ("signal_covariance", "noise_covariance"):
        np.testing.assert_allclose(far[name], near[name], rtol=1e-3)
    # A support that holds all of the design.
    task = Task(isotropic(2), series(2), 1.0)
    wide = exact_terms(task, Heads(FRAMES, "epanechnikov", 1e9), 20, GOOD)
    np.testing.assert_allclose(wide["noise_covariance"], 1 / 20, rtol=1e-6)
