"""Exact theory on points: brute force, all samples, grids; terms as JAX arrays."""

import itertools
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from sims.base.errors import InputError, Uncovered
from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    CustomDesign,
    CustomTarget,
    EmpiricalDesign,
    GaussianDesign,
    Heads,
    StudentDesign,
    Task,
    TrigonometricSeries,
)
from sims.problem.design_laws import CubeDesign, MixtureDesign
from sims.theory import check_exact, predict, terms
from sims.theory.exact import percent
from tests.theory.exact.exact_problems import brute_force, flat

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.theory
D, HEADS, WIDTH = 4, 2, 2
RNG = np.random.default_rng(0)
FRAME = np.linalg.qr(RNG.normal(size=(HEADS, D, WIDTH)))[0]
KEY_FRAMES = np.linalg.qr(FRAME + 0.5 * RNG.normal(size=FRAME.shape))[0]
TARGET = TrigonometricSeries(RNG.normal(size=4), RNG.normal(size=(4, D)), RNG.uniform(0, 6, 4))
QUERIES = RNG.normal(size=(2, D))
ROWS, CENTRES = RNG.normal(size=(300, D)), RNG.normal(size=(3, D))
SHARES = np.array([0.2, 0.3, 0.5])
NAMES = ("bias", "signal_covariance", "noise_covariance")


def student(rng, shape, freedom=5):
    chi = rng.chisquare(freedom, size=(*shape, 1)) / freedom
    return rng.normal(size=(*shape, D)) / np.sqrt(chi)


def sphere(rng, shape):
    z = rng.normal(size=(*shape, D))
    return 2 * z / np.linalg.norm(z, axis=-1, keepdims=True)


def mixture(rng, shape):
    centre = rng.choice(3, p=SHARES, size=shape)
    return CENTRES[centre] + (0.2 + 0.3 * centre[..., None]) * rng.normal(size=(*shape, D))


SPREADS = np.stack([(0.2 + 0.3 * c) ** 2 * np.eye(D) for c in range(3)])
LAWS = {
    "decay": (GaussianDesign(np.diag([2.0, 1.0, 0.7, 0.3])), None),
    "student": (DESIGNS["student"](D, 5.0), student),
    "sphere": (DESIGNS["sphere"](D), sphere),
    "mixture": (MixtureDesign(SHARES, CENTRES, SPREADS), mixture),
    "rows": (
        EmpiricalDesign(ROWS),
        lambda rng, shape: ROWS[rng.integers(300, size=shape)],
    ),
    "cube": (CubeDesign(D), lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, (*shape, D))),
    "custom": (
        CustomDesign(
            D,
            lambda key, n, dtype: jax.random.laplace(key, (n, D), dtype),
            lambda x: -jnp.abs(x).sum(axis=1),
        ),
        lambda rng, shape: rng.laplace(size=(*shape, D)),
    ),
}


@pytest.mark.parametrize(
    ("law", "kernel", "bandwidth", "n"),
    [
        ("decay", "gaussian", 0.4, 40),
        ("decay", "laplace", 0.3, 40),
        ("decay", "softmax", 0.2, 40),  # almost the one key of largest score
        ("decay", "epanechnikov", 0.7, 10),  # often none in reach
        ("student", "softmax", 0.7, 200),  # E K = ∞
        ("student", "gaussian", 0.01, 40),  # almost the nearest key
        ("sphere", "gaussian", 0.3, 40),
        ("mixture", "softmax", 0.6, 40),
        ("rows", "gaussian", 0.15, 40),
        ("cube", "triweight", 0.9, 40),
        ("cube", "gaussian", 0.3, 1),
        ("custom", "softmax", 0.9, 40),
        ("custom", "epanechnikov", 1.0, 40),
    ],
)
def test_brute_force(law, kernel, bandwidth, n):
    design, draw = LAWS[law]
    heads = Heads(FRAME, kernel, [bandwidth, 1.3 * bandwidth], KEY_FRAMES)
    task = Task(design, TARGET, 1.0)
    theory = predict(task, heads, n, QUERIES, order="exact", rtol=0.02)
    assert theory["converged"].all()
    assert theory["mse_error"] < 0.02 * theory["mse"]
    errors = theory[[f"{name}_error" for name in NAMES]]
    errors = errors.rename({f"{name}_error": name for name in NAMES})
    for q, x in enumerate(QUERIES):
        mean, mcse = brute_force(task, heads, n, x, 1, 150, draw=draw)
        gap = (flat(theory, q) - mean) / (np.hypot(mcse, flat(errors, q) / 2.36) + 1e-12)
        assert np.abs(gap).max() < 4.5


def ridge(x):
    return x[..., 0] ** 2 - jnp.abs(x[..., 1])


PLANE = np.array([[0.3, -0.2], [1.0, 0.1]])
APART = FRAMES["equiangular"](2, 2, 1, angle=60)


def all_samples(rows, heads, kernel, target, n):
    """All Nⁿ equally likely samples: bias, signal and noise covariance (σ = 1), P(empty)."""
    values, frames = np.asarray(jax.jit(lambda x: target(x))(rows)), np.asarray(heads.frames)
    b = np.asarray(heads.bandwidth)[:, None]
    estimates, products, empty = [], [], []
    for chosen in itertools.product(range(len(rows)), repeat=n):
        keys = rows[list(chosen)]
        gap = np.einsum("hdp,qd->qhp", frames, PLANE)[:, :, None] - np.einsum(
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
        estimates.mean(0) - np.asarray(target(PLANE))[:, None],
        np.einsum("sqh,sqg->qhg", apart, apart) / len(apart),
        np.mean(products, 0),
        np.mean(empty, 0),
    )


@pytest.mark.parametrize(
    ("name", "kernel", "copies"),
    [
        ("gaussian", lambda u: np.exp(-(u**2) / 2), 1),
        ("epanechnikov", lambda u: np.maximum(1 - u**2, 0), 2000),  # a table in several parts
    ],
)
@pytest.mark.parametrize("target", ["function", "series"])
def test_rows_against_all_samples_there_are(name, kernel, copies, target):
    """Five rows, one of them twice, three keys: 125 samples; within the stated errors and 1e-4."""
    rows = np.random.default_rng(0).normal(size=(4, 2))
    rows = np.concatenate([rows, rows[:1]])
    m = CustomTarget(2, ridge) if target == "function" else TARGETS["rbf"](2, features=3)
    heads = Heads(APART, name, [0.9, 0.6])
    task = Task(EmpiricalDesign(np.repeat(rows, copies, axis=0)), m, 1.0)
    exact = predict(task, heads, 3, PLANE, order="exact", rtol=1e-3)
    bias, signal, noise, empty = all_samples(rows, heads, kernel, m, 3)
    for term, expected in zip(NAMES, (bias, signal, noise), strict=True):
        gap = np.abs(exact[term].values - expected)
        assert (gap <= exact[f"{term}_error"].values + 1e-13).all()
        assert gap.max() < 1e-4
    np.testing.assert_allclose(exact["empty_probability"], empty, atol=1e-9)
    assert (empty.max() > 0.05) == (name == "epanechnikov")
    assert bool(exact["converged"].all())
    assert exact.attrs["method"] == "sum over rows"


def test_two_keys_of_heavy_tails_against_direct_quadrature():
    """One dimension, ν = 1.5 (no variance): a double integral over two keys, in their quantiles."""
    freedom, b, x = 1.5, 0.7, 0.4

    def m(z):
        return jnp.tanh(2 * z[..., 0])

    task = Task(StudentDesign([[1.0]], freedom), m, 1.0)
    exact = predict(
        task, Heads(np.ones((1, 1, 1)), "laplace", b), 2, [[x]], order="exact", rtol=2e-3
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
        assert gap <= 1.5 * exact[f"{term}_error"].values.max() + 1e-5
        assert gap < 4e-3 * abs(expected)


def test_what_theory_does_not_cover_is_one_line():
    """First order: functions, heavy tails, rows; exact: no density, rules of functions."""
    student, rows = DESIGNS["student"](2, freedom=1.5), EmpiricalDesign(np.eye(2))
    series, gaussian = TARGETS["rbf"](2), Heads(APART, "gaussian", 0.8)
    softmax, entmax = Heads(APART, "softmax", 0.8), Heads(APART, "sparsemax", 0.8)
    normal = DESIGNS["isotropic"](2)
    sampled = CustomDesign(2, lambda key, n, dtype: normal.sample(key, n, dtype))
    for design, target, heads, order, words in (
        (normal, ridge, gaussian, "first", "target: got 'CustomTarget'"),
        (normal, ridge, entmax, "first", "heads.kernel: got 'weight rule sparsemax'"),
        (student, series, gaussian, "first", "design: got 'StudentDesign'"),
        (rows, series, gaussian, "first", "design: got 'EmpiricalDesign'"),
        (DESIGNS["student"](2, freedom=0.1), series, softmax, "exact", "design.freedom"),
        (sampled, series, gaussian, "exact", "log_density"),
        (normal, ridge, entmax, "exact", "heads.kernel"),
    ):
        task = Task(design, target, 0.5)
        if order == "exact":
            with pytest.raises(Uncovered):
                check_exact(task, heads)
        with pytest.raises(Uncovered) as error:
            predict(task, heads, 20, PLANE, order=order)
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    for kernel in ("gaussian", "laplace", "softmax", "epanechnikov"):
        check_exact(Task(student, series, 0.5), Heads(APART, kernel, 0.8))


@pytest.mark.parametrize("kernel", ["gaussian", "biweight"])
def test_intervals_hold_against_grids(kernel, monkeypatch):
    """Of 16 runs on points of their own 95 % of intervals hold, as far as 16 runs can tell."""
    frames = FRAMES["equiangular"](3, 2, 1, angle=70)
    task = Task(DESIGNS["decaying_spectrum"](3), TARGETS["rbf"](3, seed=1, features=4), 0.5)
    heads = Heads(frames, kernel, [0.5, 0.8])
    queries = np.random.default_rng(0).normal(size=(2, 3))
    rough, grids = (
        predict(task, heads, 12, queries, order="exact", rtol=rtol) for rtol in (1e-3, 1e-5)
    )
    assert grids.attrs["method"] == "product quadrature"
    for name in (*NAMES, "squared_bias", "ensemble_variance", "mse"):
        allowed = rough[f"{name}_error"] + grids[f"{name}_error"]
        assert (np.abs(rough[name] - grids[name]) <= allowed + 1e-13).all()
    draw = percent.sobol_normal
    monkeypatch.setattr(percent, "FEWEST", 10)  # a sixteenth of the pairs
    held = []
    for run in range(16):
        monkeypatch.setattr(percent, "sobol_normal", lambda p, m, s, r=run: draw(p, m, 99 * r + s))
        points = predict(task, heads, 12, queries, order="exact", rtol=0.02)
        assert points["mse_error"] <= 0.02 * points["mse"]
        for name in NAMES:
            gap = np.abs(points[name].values - grids[name].values)
            held.append((gap <= points[f"{name}_error"].values + 1e-12).ravel())
    # Terms of one run depend on one another: 16 runs and two queries, as 32 independent intervals.
    assert 0.95 - 3 * (0.05 * 0.95 / 32) ** 0.5 < np.mean(np.concatenate(held)) < 0.995


def test_a_billion_keys_keep_their_digits():
    task = Task(LAWS["decay"][0], TARGET, 1.0)
    heads = Heads(FRAME, "softmax", 1.2)
    first = predict(task, heads, 10**9, QUERIES)
    exact = predict(task, heads, 10**9, QUERIES, order="exact", rtol=0.02)
    for name in ("squared_bias", "signal_variance", "noise_variance", "covariance"):
        np.testing.assert_allclose(exact[name], first[name], rtol=0.05, err_msg=name)


def test_queries_have_scrambles_of_their_own_which_heads_share():
    """So errors of queries average out, and differences between heads are precise."""
    task = Task(LAWS["decay"][0], TARGET, 1.0)
    queries = np.tile(QUERIES[:1], (8, 1))
    near, apart = (
        predict(task, Heads(FRAME, "gaussian", b), 40, queries, order="exact", rtol=0.1)
        for b in (1.0, 1.02)
    )
    bias = np.array([near["bias"][:, 0], apart["bias"][:, 0]])
    assert len(set(bias[0])) == 8
    assert np.corrcoef(bias)[0, 1] > 0.99


def test_terms_are_those_of_predict_and_have_derivatives():
    task = Task(LAWS["rows"][0], TARGET, 1.0)
    queries = jnp.asarray(QUERIES)

    @jax.jit
    @jax.value_and_grad
    def error(bandwidth):
        return terms(task, Heads(FRAME, "gaussian", bandwidth), 40, queries, order="exact")["mse"]

    bandwidth = jnp.array([0.5, 0.6])
    value, gradient = error(bandwidth)
    shifts = 1e-3 * jnp.concatenate([jnp.eye(2), -jnp.eye(2)])
    values = np.array([error(bandwidth + shift)[0] for shift in shifts])
    heads = Heads(FRAME, "gaussian", bandwidth)
    expected = predict(task, heads, 40, QUERIES, order="exact", rtol=0.1)
    np.testing.assert_allclose(value, expected["mse"], rtol=1e-7)
    np.testing.assert_allclose(gradient, (values[:2] - values[2:]) / 2e-3, rtol=2e-3)
    unequal = {"order": "exact", "weights": [0.3, 0.7]}
    found = terms(task, heads, 40, queries, **unequal)
    expected = predict(task, heads, 40, QUERIES, rtol=0.1, **unequal)
    for name in found.keys() - {"defect"}:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-10)
    for law in ("cube", "custom"):
        other = Task(LAWS[law][0], TARGET, 1.0)
        compact = Heads(FRAME, "biweight", 1.0)
        found = terms(other, compact, 40, queries, order="exact")
        each = [predict(other, compact, 40, [x], order="exact", rtol=0.1) for x in QUERIES]
        expected = np.mean([one["mse"] for one in each])
        np.testing.assert_allclose(found["mse"], expected, rtol=1e-4)
    normal = Task(LAWS["decay"][0], TARGET, 1.0)
    first = terms(normal, heads, 40, queries)
    np.testing.assert_allclose(first["mse"], predict(normal, heads, 40, QUERIES)["mse"], rtol=1e-9)
    with jax.enable_x64(False), pytest.raises(InputError, match="float64"):
        terms(normal, heads, 40, queries)


def test_the_example_finds_the_best_heads(capsys):
    example = runpy.run_path(str(ROOT / "docs/examples/best_heads.py"))
    example["main"]()
    *grid, last = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    below, best, above = grid  # the one in the middle by gradient
    assert best < min(below, above)
    assert last < 0.9 * best
