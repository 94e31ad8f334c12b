"""The law of query and key maps against closed forms at single queries and by enumeration."""

import numpy as np
import pytest

from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.theory import first_order_terms, softmax_overlap, softmax_overlap_of_maps
from tests.by_hand import normal_rule, refusals

pytestmark = pytest.mark.theory

B, KAPPA = 1.3, 0.5
OWN = {"bandwidth": 1.0, "query_scale": 0.5}
OWN |= dict.fromkeys(("frames", "key_frames"), np.ones((2, 3, 1)))


def orthonormal(seed, *shape):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=shape))[0]


def test_it_is_the_average_of_the_overlap_at_single_queries():
    """Three heads with general maps in the plane; noise of first-order theory, Gauss–Hermite."""
    frames, of_keys = np.random.default_rng(1).normal(size=(2, 3, 2, 2)) * 0.6
    nodes, mass = normal_rule(60, 2)
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 0.5)
    pointwise = first_order_terms(task, Heads(frames, "softmax", B, of_keys), 40, KAPPA * nodes)
    expected = np.einsum("q,qhg->hg", mass, pointwise["noise_covariance"].values)
    law = softmax_overlap_of_maps(frames, of_keys, B, KAPPA)
    np.testing.assert_allclose(0.25 / 40 * law, expected, rtol=1e-8)


def test_of_maps_that_are_those_of_the_keys_it_is_the_angle_law():
    frames = orthonormal(2, 2, 7, 3)
    cosines = np.linalg.svd(frames[0].T @ frames[1], compute_uv=False)
    law = softmax_overlap_of_maps(frames, frames, B, KAPPA)
    assert law[0, 1] == pytest.approx(np.prod(softmax_overlap(cosines, B, KAPPA)))
    assert law[1, 1] == pytest.approx(softmax_overlap(1.0, B, KAPPA) ** 3)


@pytest.mark.parametrize("cosine", [-1.0, -0.4, 0.0, 0.7, 1.0])
@pytest.mark.parametrize("of_keys", [-0.9, 0.0, 0.5, 1.0])
def test_of_paired_directions_it_is_a_product(cosine, of_keys):
    """ρ(c, v) = [1 − 2acv − a²v²(1 − c²)]^{−1/2}, of docs/theory/angles.md, for two directions."""
    bases = orthonormal(3, 2, 8, 4)
    maps = [
        np.stack([basis[:, :2], c * basis[:, :2] + np.sqrt(1 - c**2) * basis[:, 2:]])
        for basis, c in zip(bases, (cosine, of_keys), strict=True)
    ]
    a = (KAPPA / B**2) ** 2
    each = 1 - 2 * a * cosine * of_keys - (a * of_keys) ** 2 * (1 - cosine**2)
    law = softmax_overlap_of_maps(*maps, B, KAPPA)
    assert law[0, 1] == pytest.approx(1 / each)


def test_infinite_where_the_average_is():
    """Equal maps of one direction: finite while 2κ²/s² < 1."""
    frames = np.zeros((4, 2, 3, 1))
    frames[:, :, 0] = 1
    scales = np.array([0.1, 0.5, 0.999, 1.001]) * np.sqrt(0.5)
    law = [softmax_overlap_of_maps(f, f, 1.0, k)[0, 1] for f, k in zip(frames, scales, strict=True)]
    assert np.isfinite(law).tolist() == [True, True, True, False]
    assert law[-1] == np.inf


test_what_is_refused = refusals(
    [
        (
            {"key_frames": np.ones((2, 3, 2))},
            r"key_frames: got \(2, 3, 2\); allowed: .*\(2, 3, 1\)",
        ),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"query_scale": -1.0}, "query_scale"),
    ],
    lambda words: softmax_overlap_of_maps(**(OWN | words)),
)
