"""Designs: the law of their draws, and the identity of draws across sample sizes."""

import hashlib
import inspect
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sims.problem import (
    DESIGNS,
    FRAMES,
    TARGETS,
    CustomDesign,
    EmpiricalDesign,
    GaussianDesign,
    MixtureDesign,
    StudentDesign,
    gaussian_queries,
    redundant_views,
)
from tests.by_hand import refusals, refused

SIGMA = np.array([[2.0, 0.6, 0.0, 0.0], [0.6, 1.0, -0.3, 0.0], [0, -0.3, 0.5, 0.1], [0, 0, 0.1, 1]])
PARTS = [
    (0.2, [1.0, 0, 0, -2], SIGMA),
    (0.5, [0, 0.5, 0, 1], np.eye(4)),
    (0.3, [-1.0, 0, 2, 0], np.diag([0.1, 1, 0, 2])),
]
"""Shares, means and covariances of a mixture."""
EXAMPLES = {
    "gaussian": {"covariance": SIGMA},
    "decaying_spectrum": {"power": 1.5},
    "isotropic": {"scale": 1.7},
    "sphere": {"radius": 2.5},
    "cube": {"half_width": 0.7},
    "student": {"freedom": 9.0, "scale_matrix": SIGMA},
    "empirical": {"file": str(Path(__file__).parents[2] / "docs" / "examples" / "keys.csv")},
    "mixture": dict(
        zip(("weights", "means", "covariances"), map(list, zip(*PARTS, strict=True)), strict=True)
    ),
}
"""Options that show more than the defaults do; a new design needs no entry here."""
draw = eqx.filter_jit(lambda design, key, n, dtype=jnp.float64: design.sample(key, n, dtype))


def make(name):
    if name == "custom":
        return CustomDesign(2, exponential, exponential_log_density)
    takes = inspect.signature(DESIGNS[name]).parameters
    given = {"dimension": 4} if "dimension" in takes else {}
    return DESIGNS[name](**given, **EXAMPLES.get(name, {}))


def moments(name):
    """Mean and covariance of an example, by hand where the design does not hold them."""
    if name == "mixture":
        mean = sum(share * np.array(at) for share, at, _ in PARTS)
        apart = [np.array(at) - mean for _, at, _ in PARTS]
        return mean, sum(
            share * (sigma + np.outer(gap, gap))
            for (share, _, sigma), gap in zip(PARTS, apart, strict=True)
        )
    by_hand = {
        "sphere": 2.5**2 / 4 * np.eye(4),
        "cube": 0.7**2 / 3 * np.eye(4),
        "student": 9 / 7 * SIGMA,
        "custom": np.eye(2),
    }
    if name in by_hand:
        return float(name == "custom"), by_hand[name]
    design = make(name)
    if name in ("empirical", "table"):
        return design.rows.mean(0), np.cov(design.rows.T, bias=True)
    return 0.0, np.asarray(design.covariance)


def exponential(key, n, dtype):
    """Independent Exp(1) coordinates in R²."""
    return jax.random.exponential(key, (n, 2), dtype)


def exponential_log_density(x):
    return jnp.where(jnp.all(x >= 0, axis=1), -jnp.sum(x, axis=1), -jnp.inf)


@pytest.mark.theory
@pytest.mark.parametrize("name", [*DESIGNS, "custom"])
def test_draws_and_points_have_the_moments_of_their_law(name):
    """By draws of either precision, more of which extend fewer, and by points made from normals.

    14 z-scores at most 4.5, thrice: a chance below 3e-4.
    """
    design, key, n = make(name), jax.random.key(5), 20_000
    long = np.asarray(draw(design, key, n))
    # To rounding: a product of another size may add in another order.
    np.testing.assert_allclose(draw(design, key, 40), long[:40], rtol=1e-13, atol=1e-14)
    assert not np.allclose(draw(design, jax.random.key(6), 40), long[:40])
    single = draw(design, key, n, jnp.float32)
    assert single.dtype == jnp.float32
    extra = 1 if name == "custom" else design.EXTRA_NORMALS
    normal = np.random.default_rng(3).normal(size=(n, design.dimension + extra))
    mean, sigma = moments(name)
    even = np.full(n, 1 / n)
    if name == "custom":
        points, log_weight = design.weighted_points(normal)
        weight_of_points = np.exp(log_weight)
    else:
        points, weight_of_points = design.from_normals(normal), even
    assert weight_of_points.sum() == pytest.approx(1)
    for x, weight in (
        (long, even),
        (np.asarray(single, float), even),
        (np.asarray(points), weight_of_points),
    ):
        assert x.shape == (n, design.dimension)
        apart = x - mean
        products = (apart[:, :, None] * apart[:, None, :]).reshape(n, -1)
        for values, expected in ((apart, 0.0), (products, np.ravel(sigma))):
            # The delta method, for weights that are divided by their sum. A trace that is constant
            # (sphere) has no error but rounding.
            found = weight @ values
            error = np.sqrt(weight**2 @ (values - found) ** 2)
            assert np.all(np.abs(found - expected) <= 4.5 * error + 1e-6)


@pytest.mark.theory
def test_sphere_and_cube_have_their_shapes():
    """Fourth moments E X_1⁴ = 3R⁴/(d(d + 2)) and a⁴/5; all draws on the sphere, in the cube."""
    ball, box = (np.asarray(draw(make(k), jax.random.key(1), 20_000)) for k in ("sphere", "cube"))
    np.testing.assert_allclose(np.linalg.norm(ball, axis=1), 2.5, rtol=1e-12)
    assert np.abs(box).max() <= 0.7
    for values, expected in ((ball**4, 3 * 2.5**4 / 24), (box**4, 0.7**4 / 5)):
        z = (values.mean(0) - expected) / (values.std(0) / np.sqrt(len(values)))
        assert np.abs(z).max() < 4.5
    assert float(DESIGNS["sphere"](5).radius) == pytest.approx(5**0.5)


@pytest.mark.theory
def test_student_is_the_multivariate_t():
    """Draws by Kolmogorov's statistic, of a projection and of the length (an F law), p > 1e-4."""
    scale, freedom = SIGMA[:3, :3], 2.5
    x = np.asarray(draw(StudentDesign(scale, freedom), jax.random.key(2), 20_000))
    v = np.array([0.3, -1.0, 0.8])
    along = x @ v / np.sqrt(v @ scale @ v)
    assert stats.kstest(along, stats.t(freedom).cdf).pvalue > 1e-4
    length = np.einsum("ni,ij,nj->n", x, np.linalg.inv(scale), x) / 3
    assert stats.kstest(length, stats.f(3, freedom).cdf).pvalue > 1e-4


@pytest.mark.theory
def test_rows_are_drawn_equally_often():
    """Seven rows, 70,000 draws in either precision: χ² of their counts, p > 1e-4."""
    law = EmpiricalDesign(np.arange(7.0)[:, None])
    for dtype in (jnp.float64, jnp.float32):
        drawn = np.asarray(draw(law, jax.random.key(3), 70_000, dtype), float)[:, 0]
        counts = np.bincount(drawn.astype(int), minlength=7)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_a_table_is_read_or_refused_in_one_line(tmp_path):
    """Both formats alike, whatever their header; a first line that does not count is a row."""
    rows = np.random.default_rng(0).normal(size=(9, 2))
    text = "\n".join(f"{x!r},{y!r}" for x, y in rows.tolist())
    file, binary = tmp_path / "rows.csv", tmp_path / "rows.npy"
    np.save(binary, rows)
    content = hashlib.sha256(binary.read_bytes()).hexdigest()[:16]
    assert (DESIGNS["empirical"](2, file=str(binary), content=content).rows == rows).all()
    for header in ("", "\ufeff", "a,b\n", "0,1\n", "1, 2\n"):
        file.write_text(f"{header}{text}\n", "utf-8")
        np.testing.assert_array_equal(DESIGNS["empirical"](2, file=str(file)).rows, rows)
    file.write_text("1,0\n0,1\n")
    assert len(DESIGNS["empirical"](2, file=str(file)).rows) == 2
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    for name, more, words in (
        ("rows.npy", {"content": "0" * 16}, "changed"),
        ("rows.npy", {"dimension": 3}, "shape"),
        ("none.csv", {}, "file not found"),
        ("objects.npy", {}, "no whole array"),
        ("a,b\n1,two\n", {}, "numbers at row 0, column 2'"),
        ("", {}, "shape"),
        ("2,2\n3,nan\n", {}, "NaN"),
        ("a;b\n0,5;1\n", {}, "semicolons between columns'; allowed: .* commas between columns"),
        ("a\tb\n0.5\t1\n", {}, "tabs between columns"),
        ("a b\n0.5 1\n", {}, "blanks between columns"),
    ):
        file.write_text(name)
        path = tmp_path / name if name.endswith(("csv", "npy")) else file
        with refused(words):
            DESIGNS["empirical"](**{"dimension": 2, "file": str(path)} | more)


def test_decaying_spectrum():
    expected = np.arange(1, 5) ** -2.0
    expected *= 4 / expected.sum()
    plain = DESIGNS["decaying_spectrum"](4, 2.0).covariance
    np.testing.assert_allclose(plain, np.diag(expected), rtol=1e-14)


def test_singular_covariance():
    """Rank 1: all draws on one line, no NaN from an eigenvalue that rounding made negative."""
    direction = np.array([1.0, -2.0, 0.5])
    design = GaussianDesign(np.outer(direction, direction))
    x = np.asarray(design.sample(jax.random.key(0), 50))
    assert np.linalg.matrix_rank(x, tol=1e-6) == 1
    np.testing.assert_allclose(x / x[:, :1], np.broadcast_to(direction, x.shape), atol=1e-6)
    assert not np.asarray(GaussianDesign(np.zeros((2, 2))).sample(jax.random.key(0), 3)).any()


@pytest.mark.theory
@pytest.mark.parametrize("correlation", [-0.5, 0.6])
def test_redundant_views(correlation):
    """Head h sees z + τξ_h: Var (1 + τ²)I whatever c is, covariance of two heads (1 + τ²c)I."""
    design, frames = redundant_views(5, 3, 2, noise=0.8, correlation=correlation)
    assert design.dimension == 5 + 3 * 2
    assert frames.shape == (3, 11, 2)
    views = np.einsum("hdj,de,gek->hgjk", frames, design.covariance, frames)
    for h in range(3):
        for g in range(3):
            expected = 1 + 0.64 * (1 if h == g else correlation)
            np.testing.assert_allclose(views[h, g], expected * np.eye(2), atol=1e-14)
    # Each view is z[:2] + τξ_h, coordinate by coordinate.
    x = np.asarray(design.sample(jax.random.key(1), 4))
    for h in range(3):
        own = x[:, 5 + 2 * h : 7 + 2 * h]
        np.testing.assert_allclose(x @ np.asarray(frames[h]), x[:, :2] + 0.8 * own, rtol=1e-12)


test_bad_input_is_named = refusals(
    [
        (
            lambda: GaussianDesign([[1.0, 2.0], [2.0, 1.0]]),
            "got 'eigenvalue -1'; allowed: positive",
        ),
        (lambda: GaussianDesign([[1.0, 0.5], [0.4, 1.0]]), "got 'asymmetry 0.1'"),
        (lambda: GaussianDesign([[1.0, 2.0]]), r"design.covariance: got \(1, 2\)"),
        (lambda: DESIGNS["sphere"](1), "dimension: got 1; allowed: an integer >= 2"),
        (lambda: DESIGNS["cube"](3, [1.0, 2.0]), r"half_width: got \(2,\); allowed: a number"),
        (lambda: MixtureDesign([0.5], [[0.0]], [[[1.0]]]), "design.weights: got 'sum 0.5'"),
        (lambda: MixtureDesign([1.0], [[0.0]], [[[-1.0]]]), r"design.covariances\[0\]: got"),
        (lambda: StudentDesign(np.eye(2), 0.0), "design.freedom: got 0.0"),
        (lambda: CustomDesign(3, exponential), r"design.sampler: got \(4096, 2\)"),
        (
            lambda: CustomDesign(2, lambda k, n, t: exponential(jax.random.fold_in(k, n), n, t)),
            "rows that change with n",
        ),
        (
            lambda: CustomDesign(2, lambda k, n, t: exponential(jax.random.key(0), n, t)),
            "design.sampler: got 'the same rows for different keys'",
        ),
        (lambda: CustomDesign(2, lambda k, n: jnp.ones((n, 2))), r"allowed: \(key, n, dtype\)"),
        (
            lambda: CustomDesign(2, exponential, lambda x: exponential_log_density(1.3 * x)),
            "design.log_density: got .* standard errors off",
        ),
        (lambda: DESIGNS["isotropic"](3, 0.0), "design.scale: got 0.0; allowed: finite and > 0"),
        (lambda: redundant_views(2, 3, 3, 0.5), "heads.width: got 3; allowed: 1 to latent_dim"),
        (
            lambda: redundant_views(2, 3, 1, 0.5, -0.6),
            "design.correlation: got -0.6; allowed: -0.5",
        ),
    ],
)


def test_equal_seeds_of_different_fields_are_independent():
    """The field enters the key: else frames, target and queries share normals."""
    d = 4
    basis = np.asarray(FRAMES["haar"](d, 1, d))[0]
    frequency = np.asarray(TARGETS["rbf"](d, features=d).frequency)
    queries = np.asarray(gaussian_queries(d, d, 1.0))
    for matrix in (frequency, queries):
        assert np.abs(np.tril(basis.T @ matrix, -1)).max() > 0.1
    assert np.abs(frequency - queries).max() > 0.1
