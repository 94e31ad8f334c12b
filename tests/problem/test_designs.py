"""Designs: the law of their draws, and the identity of draws across sample sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.errors import InputError
from sims.problem import DESIGNS, FRAMES, TARGETS, GaussianDesign, gaussian_queries, redundant_views
from sims.problem.checks import seeded_key

SIGMA = np.array([[2.0, 0.6, 0.0, 0.0], [0.6, 1.0, -0.3, 0.0], [0, -0.3, 0.5, 0.1], [0, 0, 0.1, 1]])
EXAMPLES = {
    "gaussian": {"covariance": SIGMA.tolist()},
    "decaying_spectrum": {"power": 1.5, "rotation_seed": 4},
    "isotropic": {"scale": 1.7},
}
"""Options that show more than the defaults do; a new design needs no entry here."""


def make(name):
    given = {} if name == "gaussian" else {"dimension": 4}
    return DESIGNS[name](**given, **EXAMPLES.get(name, {}))


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
    np.testing.assert_array_equal(jax.jit(lambda d, k: d.sample(k, 301))(design, key), long)
    assert not np.allclose(design.sample(jax.random.key(6), 301), long)


@pytest.mark.theory
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_moments_of_draws(name, dtype):
    """Mean 0, covariance Σ: 14 z-scores; one beyond 5 has a chance below 1e-5 (fixed seed)."""
    design, n = make(name), 40_000
    x = np.asarray(design.sample(jax.random.key(11), n, dtype), float)
    sigma = np.asarray(design.covariance)
    variances = np.diag(sigma)
    assert np.abs(x.mean(0) / np.sqrt(variances / n)).max() < 5
    error = np.sqrt((np.outer(variances, variances) + sigma**2) / n)
    assert np.abs((x.T @ x / n - sigma) / error).max() < 5


@pytest.mark.theory
def test_draws_are_normal_and_independent():
    """Whitened draws: fourth moments 3, no correlation between rows; 9 z-scores."""
    design, n = make("gaussian"), 40_000
    z = np.asarray(design.sample(jax.random.key(2), n)) @ np.linalg.inv(design.factor)
    assert np.abs((np.mean(z**4, axis=0) - 3) / np.sqrt(96 / n)).max() < 5
    assert np.abs(np.mean(z[1:] * z[:-1], axis=0) * np.sqrt(n - 1)).max() < 5


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
    keys = {tuple(np.asarray(jax.random.key_data(seeded_key(name, 0)))) for name in names}
    assert len(keys) == len(names)
