"""The angle laws against the pointwise closed forms, averaged by an independent quadrature.

For keys N(0, Σ), too, where canonical correlations take the place of the cosines.
"""

import numpy as np
import pytest

from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.theory import (
    first_order_terms,
    gaussian_overlap,
    noise_correlation_law,
    softmax_overlap,
)
from sims.theory.first_order.laws import overlap_of
from tests.by_hand import normal_rule

pytestmark = pytest.mark.theory


def test_reference_vector():
    """b = 0.7, κ = 0.8, cosines (0.3, 0.85): Π ρ = 1.43243."""
    product = np.prod(gaussian_overlap([0.3, 0.85], 0.7, 0.8))
    assert product == pytest.approx(1.43243, abs=5e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("cosine", [0.0, 0.3, -0.6, 0.95, 1.0])
def test_law_is_the_average_of_the_pointwise_overlap(kernel, cosine):
    """Gauss–Hermite over the two query coordinates that matter; d_k = 1, orthonormal frames."""
    bandwidth, kappa = (0.7, 0.8) if kernel == "gaussian" else (1.2, 0.6)
    nodes, mass = normal_rule(60, 2)
    frames = np.array([[[1.0], [0.0]], [[cosine], [np.sqrt(1 - cosine**2)]]])
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 0.5)
    pointwise = first_order_terms(task, Heads(frames, kernel, bandwidth), 40, kappa * nodes)
    expected = mass @ pointwise["noise_covariance"].values[:, 0, 1]
    law = 0.5**2 / 40 * overlap_of(kernel)(cosine, bandwidth, kappa)
    assert float(law) == pytest.approx(expected, rel=1e-8)


SIGMA = np.array([[1.0, 0.9, 0.2], [0.9, 1.5, -0.3], [0.2, -0.3, 0.4]])


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("width", [1, 2])
def test_canonical_correlations_take_the_place_of_cosines_for_any_covariance(kernel, width):
    """Keys N(0, Σ), queries N(0, κ²Σ), heads in units of their own keys: by quadrature.

    Frames are general, U_hᵀΣU_h = I is made by hand, and the canonical correlations are those of
    that product; principal angles would give another number.
    """
    bandwidth, kappa = (0.7, 0.8) if kernel == "gaussian" else (1.2, 0.5)
    raw = np.random.default_rng(4).normal(size=(2, 3, width))
    frames = np.stack([u @ np.linalg.inv(np.linalg.cholesky(u.T @ SIGMA @ u)).T for u in raw])
    canonical = np.linalg.svd(frames[0].T @ SIGMA @ frames[1], compute_uv=False)
    bases = [np.linalg.qr(u)[0] for u in raw]
    cosines = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    nodes, mass = normal_rule(24, 3)
    queries = kappa * nodes @ np.linalg.cholesky(SIGMA).T
    task = Task(DESIGNS["gaussian"](SIGMA), TARGETS["constant"](3), 0.5)
    pointwise = first_order_terms(task, Heads(frames, kernel, bandwidth), 40, queries)
    expected = np.einsum("q,qhg->hg", mass, pointwise["noise_covariance"].values)
    law = 0.5**2 / 40 * overlap_of(kernel)(canonical, bandwidth, kappa).prod()
    assert float(law) == pytest.approx(expected[0, 1], rel=1e-5)
    correlation = float(noise_correlation_law(canonical, bandwidth, kappa, kernel))
    assert correlation == pytest.approx(expected[0, 1] / expected[0, 0], rel=1e-5)
    assert expected[0, 0] == pytest.approx(expected[1, 1], rel=1e-5)
    other = float(noise_correlation_law(cosines, bandwidth, kappa, kernel))
    assert abs(other / correlation - 1) > 0.04


def test_one_temperature_for_heads_of_different_spread():
    """docs/theory/angles.md: softmax's law with a = κ² s_h² s_g²/s², by product rules."""
    slope, kappa, temperature = np.array([[1, 0.9], [0.9, 1]]), 0.5, 1.69
    lines = np.deg2rad([0.0, 120.0])
    frames = np.stack([np.cos(lines), np.sin(lines)], axis=1)
    nodes, weights = normal_rule(80, 2)
    queries = kappa * nodes @ np.linalg.cholesky(slope).T
    task = Task(DESIGNS["gaussian"](slope), TARGETS["constant"](2), noise_sd=1.0)
    heads = Heads(frames[..., None], "softmax", temperature**0.5)
    noise = first_order_terms(task, heads, n=100, queries=queries)["noise_covariance"].values
    whole = 100 * np.einsum("q,qhg->hg", weights, noise)
    inner = frames @ slope @ frames.T
    squared = np.outer(np.diag(inner), np.diag(inner))
    c2, a = inner**2 / squared, kappa**2 * squared / temperature**2
    np.testing.assert_allclose(whole, (1 - 2 * a * c2 - a**2 * c2 * (1 - c2)) ** -0.5, 1e-6)


def test_infinite_average_is_said():
    """Beyond κ² = t(t+1)/2 the gaussian average diverges; for softmax beyond a = 1/2."""
    t = 1 + 0.5**2
    edge = np.sqrt(t * (t + 1) / 2)
    assert np.isfinite(gaussian_overlap(1.0, 0.5, 0.999 * edge))
    assert np.isinf(gaussian_overlap(1.0, 0.5, 1.001 * edge))
    assert np.isfinite(softmax_overlap(1.0, 1.0, 0.999 * np.sqrt(0.5)))
    assert np.isinf(softmax_overlap(1.0, 1.0, 1.001 * np.sqrt(0.5)))
