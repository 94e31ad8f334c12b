"""Designs: the law of their draws, and the identity of draws across sample sizes."""

import hashlib
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.checks import seeded_key
from sims.errors import InputError
from sims.normals import normal
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
from sims.problem.sequences import SequenceDesign

SIGMA = np.array([[2.0, 0.6, 0.0, 0.0], [0.6, 1.0, -0.3, 0.0], [0, -0.3, 0.5, 0.1], [0, 0, 0.1, 1]])
EXAMPLES = {
    "gaussian": {"covariance": SIGMA.tolist()},
    "decaying_spectrum": {"power": 1.5, "rotation_seed": 4},
    "isotropic": {"scale": 1.7},
    "sphere": {"radius": 2.5},
    "cube": {"half_width": 0.7},
    "toeplitz": {"correlation": -0.6, "scale": 1.3},
    "student": {"freedom": 9.0, "covariance": SIGMA.tolist()},
    "empirical": {"file": str(Path(__file__).parents[2] / "docs" / "examples" / "keys.csv")},
    "mixture": {
        "weights": [0.2, 0.5, 0.3],
        "means": [[1.0, 0, 0, -2], [0, 0.5, 0, 1], [-1, 0, 2, 0]],
        "covariances": [SIGMA.tolist(), np.eye(4).tolist(), np.diag([0.1, 1, 0, 2]).tolist()],
    },
}
"""Options that show more than the defaults do; a new design needs no entry here."""


def make(name):
    takes = inspect.signature(DESIGNS[name]).parameters
    given = {"dimension": 4} if "dimension" in takes else {}
    return DESIGNS[name](**given, **EXAMPLES.get(name, {}))


def exponential(key, n, dtype):
    """Independent Exp(1) coordinates in R²."""
    return jax.random.exponential(key, (n, 2), dtype)


def exponential_log_density(x):
    return jnp.where(jnp.all(x >= 0, axis=1), -jnp.sum(x, axis=1), -jnp.inf)


@pytest.mark.parametrize("name", DESIGNS)
def test_contract(name):
    """Shape and precision; more keys extend fewer; the draw is a function of key and n alone."""
    design, key = make(name), jax.random.key(5)
    assert design.dimension == 4
    long = design.sample(key, 301)
    assert long.shape == (301, 4)
    assert long.dtype == jnp.float64
    assert design.sample(key, 7, jnp.float32).dtype == jnp.float32
    for n in (2, 300):
        # To rounding: a product of another size may add in another order.
        np.testing.assert_allclose(design.sample(key, n), long[:n], rtol=1e-13, atol=1e-14)
    # Compiled and not, the same draws: equal to rounding.
    compiled = jax.jit(lambda d, k: d.sample(k, 301))(design, key)
    np.testing.assert_allclose(compiled, long, rtol=1e-13, atol=1e-13)
    assert not np.allclose(design.sample(jax.random.key(6), 301), long)


@pytest.mark.theory
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_moments_of_draws(name, dtype):
    """Mean and covariance as stated: 14 z-scores; one beyond 4.5 has a chance below 1e-4."""
    design, n = make(name), 40_000
    x = np.asarray(design.sample(jax.random.key(11), n, dtype), float)
    sigma, apart = np.asarray(design.covariance), x - np.asarray(design.mean)
    assert np.abs(apart.mean(0) / np.sqrt(np.diag(sigma) / n)).max() < 4.5
    products = apart[:, :, None] * apart[:, None, :]
    # A trace that is constant (sphere) has no error but rounding.
    error = products.std(0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(0) - sigma) <= 4.5 * error + 1e-6)


@pytest.mark.theory
@pytest.mark.parametrize("name", [*DESIGNS, "custom"])
def test_moments_of_points_made_from_normals(name):
    """Weights of sum 1; mean and covariance as the draws have them: 14 z-scores at most 4.5."""
    design = CustomDesign(2, exponential, exponential_log_density, ([1.0, 1.0], np.eye(2)))
    design = design if name == "custom" else make(name)
    n, d = 40_000, design.dimension
    normal = np.random.default_rng(3).normal(size=(n, d + design.EXTRA_NORMALS))
    x, log_weight = design.from_normals(normal)
    assert x.shape == (n, d)
    weight = np.exp(log_weight)
    assert weight.sum() == pytest.approx(1)
    apart = x - np.asarray(design.mean)
    products = (apart[:, :, None] * apart[:, None, :]).reshape(n, -1)
    for values, expected in ((apart, 0.0), (products, np.ravel(design.covariance))):
        # The delta method, for weights that are divided by their sum.
        mean = weight @ values
        error = np.sqrt(weight**2 @ (values - mean) ** 2)
        assert np.all(np.abs(mean - expected) <= 4.5 * error + 1e-6)


@pytest.mark.theory
def test_sphere_and_cube_have_their_shapes():
    """Fourth moments E X_1⁴ = 3R⁴/(d(d + 2)) and a⁴/5; all draws on the sphere, in the cube."""
    n = 40_000
    x = np.asarray(make("sphere").sample(jax.random.key(1), n))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 2.5, rtol=1e-12)
    for values, expected in (
        (x**4, 3 * 2.5**4 / 24),
        (np.asarray(make("cube").sample(jax.random.key(1), n)) ** 4, 0.7**4 / 5),
    ):
        z = (values.mean(0) - expected) / (values.std(0) / np.sqrt(n))
        assert np.abs(z).max() < 4.5
    assert np.abs(make("cube").sample(jax.random.key(1), n)).max() <= 0.7
    assert np.allclose(DESIGNS["sphere"](5).covariance, np.eye(5))
    assert np.allclose(DESIGNS["cube"](5).covariance, np.eye(5))


@pytest.mark.theory
def test_mixture_has_its_components():
    """Far apart, components are told by their place: shares, means, spreads within 4.5 errors."""
    design = MixtureDesign([0.3, 0.7], [[-50.0], [50.0]], [[[1.0]], [[4.0]]])
    x = np.asarray(design.sample(jax.random.key(4), 40_000))[:, 0]
    for sign, share, sd in ((-1, 0.3, 1.0), (1, 0.7, 2.0)):
        own = x[np.sign(x) == sign]
        assert abs(len(own) / len(x) - share) < 4.5 * np.sqrt(0.21 / len(x))
        assert abs(own.mean() - 50 * sign) < 4.5 * sd / np.sqrt(len(own))
        assert abs(own.std() / sd - 1) < 4.5 / np.sqrt(2 * len(own))


def test_toeplitz_is_the_covariance_of_an_autoregression():
    """By its recursion ``X_{j+1} = ρ X_j + √(1 − ρ²) Z``, as a linear map of white noise."""
    rho, d = -0.6, 5
    map_ = np.zeros((d, d))
    map_[0, 0] = 1.0
    for j in range(1, d):
        map_[j] = rho * map_[j - 1]
        map_[j, j] = np.sqrt(1 - rho**2)
    law = DESIGNS["toeplitz"](d, correlation=rho, scale=1.3)
    np.testing.assert_allclose(law.covariance, 1.69 * map_ @ map_.T, atol=1e-14)
    with pytest.raises(InputError, match="correlation"):
        DESIGNS["toeplitz"](d, correlation=1.0)


@pytest.mark.theory
def test_student_is_the_multivariate_t():
    """Draws by Kolmogorov's statistic, of a projection and of the length (an F law), p > 1e-4."""
    from scipy import stats

    scale, freedom = SIGMA[:3, :3], 2.5
    x = np.asarray(StudentDesign(scale, freedom).sample(jax.random.key(2), 20_000))
    v = np.array([0.3, -1.0, 0.8])
    along = x @ v / np.sqrt(v @ scale @ v)
    assert stats.kstest(along, stats.t(freedom).cdf).pvalue > 1e-4
    length = np.einsum("ni,ij,nj->n", x, np.linalg.inv(scale), x) / 3
    assert stats.kstest(length, stats.f(3, freedom).cdf).pvalue > 1e-4


def test_student_moments_are_there_where_they_exist():
    given = DESIGNS["student"](4, freedom=5.0, covariance=SIGMA)
    np.testing.assert_allclose(given.covariance, SIGMA, rtol=1e-12)
    np.testing.assert_allclose(given.scale_matrix, 0.6 * SIGMA, rtol=1e-12)
    assert np.isinf(np.diag(DESIGNS["student"](2, freedom=2.0).covariance)).all()
    assert np.isnan(DESIGNS["student"](2, freedom=1.0).mean).all()
    for options in ({"freedom": 2.0, "covariance": np.eye(2)}, {"freedom": 0.0}):
        with pytest.raises(InputError, match="design"):
            DESIGNS["student"](2, **options)


@pytest.mark.theory
def test_rows_are_drawn_equally_often():
    """Seven rows, 70,000 draws in either precision: χ² of their counts, p > 1e-4."""
    from scipy import stats

    law = EmpiricalDesign(np.arange(7.0)[:, None])
    for dtype in (jnp.float64, jnp.float32):
        drawn = np.asarray(law.sample(jax.random.key(3), 70_000, dtype), float)[:, 0]
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
        ("none.csv", {}, "No such file"),
        ("objects.npy", {}, "allow_pickle"),
        ("a,b\n1,two\n", {}, "two"),
        ("", {}, "shape"),
        ("2,2\n3,nan\n", {}, "NaN"),
        ("a;b\n0,5;1\n", {}, "semicolons between columns'; allowed: .* commas between columns"),
        ("a\tb\n0.5\t1\n", {}, "tabs between columns"),
        ("a b\n0.5 1\n", {}, "blanks between columns"),
    ):
        file.write_text(name)
        path = tmp_path / name if name.endswith(("csv", "npy")) else file
        with pytest.raises(InputError, match=words) as error:
            DESIGNS["empirical"](**{"dimension": 2, "file": str(path)} | more)
        assert "\n" not in str(error.value)


def test_one_component_draws_as_the_gaussian_design():
    one, key = MixtureDesign([1.0], [[0.0] * 4], [SIGMA]), jax.random.key(3)
    np.testing.assert_allclose(one.sample(key, 9), GaussianDesign(SIGMA).sample(key, 9), rtol=1e-12)


def test_custom_design():
    design, key = CustomDesign(2, exponential, exponential_log_density), jax.random.key(0)
    np.testing.assert_array_equal(design.sample(key, 5), design.sample(key, 9)[:5])
    np.testing.assert_allclose(design.mean, 1, atol=0.1)
    np.testing.assert_array_equal(
        jax.jit(lambda d: d.sample(key, 5))(design), design.sample(key, 5)
    )
    given = CustomDesign(2, exponential, proposal=([1.0, 1.0], np.eye(2)))
    np.testing.assert_array_equal(given.covariance, np.eye(2))


@pytest.mark.theory
def test_draws_are_normal_and_independent():
    """Whitened draws: fourth moments 3, no correlation between rows; 9 z-scores."""
    design, n = make("gaussian"), 40_000
    z = np.asarray(design.sample(jax.random.key(2), n)) @ np.linalg.inv(design.factor)
    assert np.abs((np.mean(z**4, axis=0) - 3) / np.sqrt(96 / n)).max() < 5
    assert np.abs(np.mean(z[1:] * z[:-1], axis=0) * np.sqrt(n - 1)).max() < 5


def test_keys_in_single_precision_are_made_of_draws_with_whole_tails():
    """Of :func:`sims.normals.normal`, which has its own test, in all designs made of normals."""
    key, n = jax.random.key(6), 40
    z = np.asarray(normal(key, (n, 4), "float32"))

    def drawn(design):
        return np.asarray(design.sample(key, n, jnp.float32))

    directions = z / np.linalg.norm(z, axis=1, keepdims=True)
    one = MixtureDesign([1.0], np.zeros((1, 4)), np.eye(4)[None])
    np.testing.assert_allclose(drawn(DESIGNS["isotropic"](4)), z, rtol=1e-6)
    np.testing.assert_allclose(drawn(DESIGNS["sphere"](4)) / 2, directions, rtol=1e-5)
    np.testing.assert_allclose(drawn(one), z, rtol=1e-6)
    np.testing.assert_allclose(drawn(StudentDesign(np.eye(4), 1e8)), z, rtol=1e-2)
    # A sequence begins with the first of its normals.
    np.testing.assert_allclose(drawn(SequenceDesign(np.eye(4), [0.5, 0.2]))[0], z[0], rtol=1e-5)


def test_decaying_spectrum():
    plain = np.asarray(DESIGNS["decaying_spectrum"](4, 2.0).covariance)
    expected = np.arange(1, 5) ** -2.0
    expected *= 4 / expected.sum()
    np.testing.assert_allclose(plain, np.diag(expected), rtol=1e-14)
    rotated = DESIGNS["decaying_spectrum"](4, 2.0, rotation_seed=1).covariance
    np.testing.assert_allclose(np.linalg.eigvalsh(rotated)[::-1], expected, rtol=1e-12)
    assert np.abs(rotated - plain).max() > 0.1
    other = DESIGNS["decaying_spectrum"](4, 2.0, rotation_seed=2).covariance
    assert np.abs(rotated - other).max() > 0.1
    np.testing.assert_allclose(DESIGNS["decaying_spectrum"](4, 0.0).covariance, np.eye(4))


def test_singular_covariance():
    """Rank 1: all draws on one line, no NaN from an eigenvalue that rounding made negative."""
    direction = np.array([1.0, -2.0, 0.5])
    design = GaussianDesign(np.outer(direction, direction))
    x = np.asarray(design.sample(jax.random.key(0), 50))
    assert np.linalg.matrix_rank(x, tol=1e-6) == 1
    np.testing.assert_allclose(x / x[:, :1], np.broadcast_to(direction, x.shape), atol=1e-6)
    assert not np.asarray(GaussianDesign(np.zeros((2, 2))).sample(jax.random.key(0), 3)).any()


def test_numpyro_distribution_has_the_same_law():
    design = make("gaussian")
    law = design.distribution()
    np.testing.assert_allclose(law.covariance_matrix, SIGMA, rtol=1e-14)
    assert law.event_shape == (4,)


@pytest.mark.theory
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.6, 1.0])
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


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: GaussianDesign([[1.0, 2.0], [2.0, 1.0]]),
            "got 'eigenvalue -1'; allowed: positive",
        ),
        (lambda: GaussianDesign([[1.0, 0.5], [0.4, 1.0]]), "got 'asymmetry 0.1'"),
        (lambda: GaussianDesign([[1.0, 2.0]]), r"design.covariance: got \(1, 2\)"),
        (lambda: GaussianDesign([]), r"design.covariance: got \(0,\)"),
        (lambda: GaussianDesign([[1.0], [1.0, 2.0]]), "rectangular list"),
        (lambda: GaussianDesign([[float("nan")]]), "finite numbers"),
        (lambda: DESIGNS["sphere"](1), "dimension: got 1; allowed: an integer >= 2"),
        (lambda: DESIGNS["sphere"](3, -1.0), "design.radius: got -1.0; allowed: finite and > 0"),
        (lambda: DESIGNS["cube"](3, 0.0), "design.half_width: got 0.0"),
        (
            lambda: DESIGNS["cube"](3, [1.0, 2.0]),
            r"design.half_width: got \(2,\); allowed: one num",
        ),
        (lambda: MixtureDesign([0.5], [[0.0]], [[[1.0]]]), "design.weights: got 'sum 0.5'"),
        (
            lambda: MixtureDesign([1.5, -0.5], [[0.0]] * 2, [[[1.0]]] * 2),
            "design.weights: got -0.5",
        ),
        (lambda: MixtureDesign([1.0], [0.0], [[[1.0]]]), r"design.means: got \(1,\)"),
        (lambda: MixtureDesign([1.0], [[0.0]], [[1.0]]), r"design.covariances: got \(1, 1\)"),
        (lambda: MixtureDesign([1.0], [[0.0]], [[[-1.0]]]), r"design.covariances\[0\]: got"),
        (lambda: CustomDesign(3, exponential), r"design.sampler: got \(4096, 2\)"),
        (
            lambda: CustomDesign(2, lambda k, n, t: exponential(jax.random.fold_in(k, n), n, t)),
            "other rows for other n",
        ),
        (
            lambda: CustomDesign(2, lambda k, n, t: exponential(jax.random.key(0), n, t)),
            "design.sampler: got 'the same rows for another key'",
        ),
        (lambda: CustomDesign(2, lambda k, n: jnp.ones((n, 2))), r"allowed: \(key, n, dtype\)"),
        (
            lambda: CustomDesign(2, exponential, lambda x: exponential_log_density(1.3 * x)),
            "design.log_density: got .* standard errors off",
        ),
        (lambda: CustomDesign(2, exponential, jnp.sum), "design.log_density: got"),
        (lambda: CustomDesign(2, exponential, proposal=([0.0], [[1.0]])), "design.proposal: got"),
        (lambda: DESIGNS["isotropic"](0), "dimension: got 0; allowed: an integer >= 1"),
        (lambda: DESIGNS["isotropic"](3, 0.0), "design.scale: got 0.0; allowed: finite and > 0"),
        (lambda: DESIGNS["decaying_spectrum"](3, -1.0), "design.power: got -1.0"),
        (lambda: DESIGNS["decaying_spectrum"](3, 1.0, -7), "design.rotation_seed: got -7"),
        (lambda: redundant_views(2, 3, 3, 0.5), "heads.width: got 3; allowed: 1 to latent_dim"),
        (lambda: redundant_views(2, 3, 1, -0.5), "design.noise: got -0.5"),
        (
            lambda: redundant_views(2, 3, 1, 0.5, -0.6),
            "design.correlation: got -0.6; allowed: -0.5",
        ),
        (lambda: redundant_views(2, 0, 1, 0.5), "heads.count: got 0"),
    ],
)
def test_bad_input_is_named(call, line):
    with pytest.raises(InputError, match=line) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_equal_seeds_of_different_fields_are_independent():
    """The field enters the key: else frames, target, queries and Σ's eigenbasis share normals."""
    d = 4
    frames = np.asarray(FRAMES["haar"](d, 1, d))[0]
    blocks = np.concatenate(list(np.asarray(FRAMES["equiangular"](d, d, 1, angle=90))), axis=1)
    frequency = np.asarray(TARGETS["rbf"](d, features=d).frequency)
    queries = np.asarray(gaussian_queries(d, d, 1.0))
    sigma = np.asarray(DESIGNS["decaying_spectrum"](d, 1.0, rotation_seed=0).covariance)
    for basis in (frames, blocks):
        for other in (frequency, queries, basis.T @ sigma @ basis):
            turned = basis.T @ other
            for matrix in (turned, other):
                assert np.abs(np.tril(matrix, -1)).max() > 0.1
    assert np.abs(frequency - queries).max() > 0.1
    names = ["target.seed", "queries.seed", "heads.frames.seed", "design.rotation_seed"]
    keys = {tuple(seeded_key(name, 0)) for name in names}
    assert len(keys) == len(names)
