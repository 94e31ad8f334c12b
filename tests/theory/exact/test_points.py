"""Exact theory on points: targets of one's own, empirical designs, heavy tails."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from sims.base.errors import Uncovered
from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    CustomDesign,
    CustomTarget,
    EmpiricalDesign,
    Heads,
    StudentDesign,
    Task,
)
from sims.theory import check_exact, predict
from sims.theory.exact.laplace import Proposal

pytestmark = pytest.mark.theory

QUERIES = np.array([[0.3, -0.2], [1.0, 0.1]])
FRAME = FRAMES["equiangular"](2, 2, 1, angle=60)


def ridge(x):
    return x[..., 0] ** 2 - jnp.abs(x[..., 1])


def brute_force(rows, heads, kernel, target, n):
    """All Nⁿ equally likely samples: bias, signal and noise covariance (σ = 1), P(empty)."""
    values, frames = np.asarray(jax.jit(lambda x: target(x))(rows)), np.asarray(heads.frames)
    b = np.asarray(heads.bandwidth)[:, None]
    estimates, products, empty = [], [], []
    for chosen in itertools.product(range(len(rows)), repeat=n):
        keys = rows[list(chosen)]
        gap = np.einsum("hdp,qd->qhp", frames, QUERIES)[:, :, None] - np.einsum(
            "hdp,nd->hnp", frames, keys
        )
        mass = kernel(np.sqrt((gap**2).sum(-1)) / b)
        total = mass.sum(-1, keepdims=True)
        weight = np.where(total > 0, mass / np.where(total > 0, total, 1), 0.0)
        estimates.append(weight @ values[list(chosen)])
        products.append(weight @ weight.transpose(0, 2, 1))
        empty.append(total[..., 0] == 0)
    estimates = np.array(estimates)
    apart = estimates - estimates.mean(0)
    return (
        estimates.mean(0) - np.asarray(target(QUERIES))[:, None],
        np.einsum("sqh,sqg->qhg", apart, apart) / len(apart),
        np.mean(products, 0),
        np.mean(empty, 0),
    )


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("gaussian", lambda u: np.exp(-(u**2) / 2)),
        ("epanechnikov", lambda u: np.maximum(1 - u**2, 0)),
    ],
)
@pytest.mark.parametrize("target", ["function", "series"])
def test_rows_against_all_samples_there_are(name, kernel, target):
    """Five rows, one of them twice, three keys: 125 samples; within the stated errors and 1e-7."""
    rows = np.random.default_rng(0).normal(size=(4, 2))
    rows = np.concatenate([rows, rows[:1]])
    m = CustomTarget(2, ridge) if target == "function" else TARGETS["rbf"](2, features=3)
    heads = Heads(FRAME, name, [0.9, 0.6])
    exact = predict(Task(EmpiricalDesign(rows), m, 1.0), heads, 3, QUERIES, order="exact")
    bias, signal, noise, empty = brute_force(rows, heads, kernel, m, 3)
    for term, expected in (
        ("bias", bias),
        ("signal_covariance", signal),
        ("noise_covariance", noise),
    ):
        gap = np.abs(exact[term].values - expected)
        assert (gap <= exact[f"{term}_error"].values + 1e-13).all()
        assert gap.max() < 1e-7
    np.testing.assert_allclose(exact["empty_probability"], empty, atol=1e-7)
    assert (empty.max() > 0.05) == (name == "epanechnikov")
    assert bool(exact["converged"].all())
    assert exact.attrs["method"] == "sum over rows"


def test_many_rows_are_one_law_however_they_are_padded():
    """Each row 700 times, 2800 in all, is the law of four rows."""
    rows = np.random.default_rng(1).normal(size=(4, 2))
    heads = Heads(FRAME, "gaussian", 0.8)
    few, many = (
        predict(Task(EmpiricalDesign(r), ridge, 0.5), heads, 5, QUERIES, order="exact")
        for r in (rows, np.repeat(rows, 700, axis=0))
    )
    for term in ("bias", "signal_covariance", "noise_covariance"):
        np.testing.assert_allclose(few[term], many[term], rtol=1e-9, atol=1e-12)


def test_one_key_of_an_empirical_design():
    """f̂ = Y: bias r̄ − m(x) of the rows' values, and their variance."""
    rows = np.random.default_rng(1).normal(size=(7, 2))
    exact = predict(
        Task(EmpiricalDesign(rows), ridge, 0.5),
        Heads(FRAME, "gaussian", 0.8),
        1,
        QUERIES,
        order="exact",
    )
    values = np.asarray(ridge(rows))
    bias = values.mean() - np.asarray(ridge(QUERIES))
    np.testing.assert_allclose(exact["bias"][:, 0], bias, rtol=1e-12)
    np.testing.assert_allclose(exact["signal_covariance"], values.var(), rtol=1e-12)


def test_a_function_is_as_exact_as_the_series_that_it_is():
    """On points of R² against the closed forms given what heads see, within the stated errors."""
    series = TARGETS["rbf"](2, seed=1, features=4)
    heads = Heads(FRAME, "gaussian", [0.8, 0.6])
    design = DESIGNS["toeplitz"](2, correlation=0.4)
    closed, points = (
        predict(Task(design, m, 0.5), heads, 20, QUERIES, order="exact", rtol=1e-3)
        for m in (series, lambda x: series(x))
    )
    assert "ambient sobol" in points.attrs["method"]
    assert "ambient sobol" not in closed.attrs["method"]
    for term in ("bias", "signal_covariance", "noise_covariance", "mse"):
        gap = np.abs(closed[term] - points[term])
        assert (gap <= closed[f"{term}_error"] + points[f"{term}_error"]).all()
    assert bool(points["converged"].all())


def test_two_keys_of_heavy_tails_against_direct_quadrature():
    """One dimension, ν = 1.5 (no variance): a double integral over two keys, in their quantiles."""
    freedom, b, x = 1.5, 0.7, 0.4

    def m(z):
        return jnp.tanh(2 * z[..., 0])

    task = Task(StudentDesign([[1.0]], freedom), m, 1.0)
    exact = predict(
        task, Heads(np.ones((1, 1, 1)), "laplace", b), 2, [[x]], order="exact", rtol=1e-3
    )
    node, weight = np.polynomial.legendre.leggauss(1500)
    key, weight = stats.t(freedom).ppf((node + 1) / 2), weight / 2
    log_k, value = -np.abs(key - x) / b, np.tanh(2 * key)
    share = expit(log_k[:, None] - log_k)  # of the first key
    estimate = share * value[:, None] + (1 - share) * value
    both = weight[:, None] * weight
    mean = (both * estimate).sum()
    for term, expected in (
        ("bias", mean - np.tanh(2 * x)),
        ("signal_covariance", (both * (estimate - mean) ** 2).sum()),
        ("noise_covariance", (both * (share**2 + (1 - share) ** 2)).sum()),
    ):
        gap = np.abs(exact[term].values - expected).max()
        assert gap <= exact[f"{term}_error"].values.max() + 1e-5
        assert gap < 2e-3 * abs(expected)


def test_what_theory_does_not_cover_is_one_line():
    """First order: functions, heavy tails, rows; exact: E K = ∞, no density, rules of functions."""
    student, rows = DESIGNS["student"](2, freedom=1.5), EmpiricalDesign(np.eye(2))
    series, gaussian = TARGETS["rbf"](2), Heads(FRAME, "gaussian", 0.8)
    softmax, entmax = Heads(FRAME, "softmax", 0.8), Heads(FRAME, "sparsemax", 0.8)
    normal = DESIGNS["isotropic"](2)
    sampled = CustomDesign(2, lambda key, n, dtype: normal.sample(key, n, dtype))
    for design, target, heads, order, words in (
        (normal, ridge, gaussian, "first", "target: got 'CustomTarget'"),
        (normal, ridge, entmax, "first", "heads.kernel: got 'weight rule sparsemax'"),
        (student, series, gaussian, "first", "design: got 'StudentDesign'"),
        (rows, series, gaussian, "first", "design: got 'EmpiricalDesign'"),
        (student, series, softmax, "exact", "E K is infinite"),
        (sampled, series, gaussian, "exact", "log_density"),
        (normal, ridge, entmax, "exact", "heads.kernel"),
    ):
        task = Task(design, target, 0.5)
        if order == "exact":
            with pytest.raises(Uncovered):
                check_exact(task, heads)
        with pytest.raises(Uncovered) as error:
            predict(task, heads, 20, QUERIES, order=order)
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    for kernel in ("gaussian", "laplace", "student", "epanechnikov"):
        check_exact(Task(student, series, 0.5), Heads(FRAME, kernel, 0.8))
    check_exact(Task(rows, ridge, 0.5), softmax)


def test_weighted_points_have_the_moments_of_the_standard_normal_law():
    """Mass 1, means 0, variances 1 and covariance 0, each within 5 standard errors."""
    normal = np.random.default_rng(4).normal(size=(20_000, 2))
    law = Proposal(jnp.array([0.4, -0.3]), jnp.array([[0.9, 0.0], [0.3, 1.3]]))
    nodes = law.draw(jnp.asarray(normal))
    one, two = np.asarray(nodes.points).T
    weight = np.exp(np.asarray(nodes.log_weight)) * len(normal)
    values = np.stack([one**0, one, two, one**2, two**2, one * two])
    each = weight * values
    error = each.std(1) / len(normal) ** 0.5
    assert (error < 0.05).all()
    assert (np.abs(each.mean(1) - [1, 0, 0, 1, 1, 0]) < 5 * error).all()
