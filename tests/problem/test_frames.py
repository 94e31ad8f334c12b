"""Frames: prescribed angles to rounding."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import subspace_angles

from sims.base import threefry
from sims.base.checks import seeded_key
from sims.problem import FRAMES
from tests.by_hand import refusals, refused

RNG = np.random.default_rng(1)
EXAMPLES = {
    "equiangular": {"angle": 40},
    "gram": {"gram": [[1, 0.2, 0], [0.2, 1, -0.5], [0, -0.5, 1]]},
    "explicit": {"frames": RNG.normal(size=(3, 7, 2)).tolist()},
}
"""Options of families that have required ones; a new family without any needs no entry here."""


@pytest.mark.parametrize("name", FRAMES)
def test_contract(name):
    """Shape, precision, reproducibility, and sizes that are refused."""
    options = EXAMPLES.get(name, {})
    frames = FRAMES[name](7, 3, 2, **options)
    assert frames.shape == (3, 7, 2)
    assert frames.dtype == jnp.float64
    np.testing.assert_array_equal(frames, FRAMES[name](7, 3, 2, **options))
    if name != "explicit":
        assert not np.allclose(frames, FRAMES[name](7, 3, 2, seed=1, **options))
        for count, width, line in ((3, 8, "width: got 8; allowed: 1 to"), (0, 2, "count: got 0")):
            with refused(line):
                FRAMES[name](7, count, width, **options)


def test_narrow_heads_draw_their_columns_alone(monkeypatch):
    """Those of whole bases, which would take 60 times as long for 64 heads in d = 1024."""
    sizes, normal = [], threefry.normal

    def counted(*arguments):
        drawn = normal(*arguments)
        sizes.append(drawn.size)
        return drawn

    monkeypatch.setattr(threefry, "normal", counted)
    frames = FRAMES["haar"](192, 3, 64)
    assert sizes == [192 * 64] * 3
    last = threefry.split(seeded_key("heads.frames.seed", 0), 3)[-1]
    whole = threefry.orthogonal(last, 192, 192)
    np.testing.assert_allclose(frames[-1], whole[:, :64], rtol=0, atol=1e-14)


@pytest.mark.theory
@pytest.mark.parametrize("cosine", [-0.5, 0.4, 1.0, [0.3, -0.1]])
def test_equiangular_products(cosine):
    """U_hᵀU_g = diag(c) with its sign, for all pairs; U_hᵀU_h = I."""
    frames = np.asarray(FRAMES["equiangular"](7, 3, 2, seed=4, cosine=cosine))
    for h in range(3):
        for g in range(3):
            expected = np.diag(np.ones(2) if h == g else np.broadcast_to(cosine, 2))
            np.testing.assert_allclose(frames[h].T @ frames[g], expected, atol=2e-15)


@pytest.mark.theory
@pytest.mark.parametrize("angle", [0, 1e-3, 90, [20, 75]])
def test_equiangular_angles_in_degrees(angle):
    frames = FRAMES["equiangular"](7, 3, 2, seed=2, angle=angle)
    expected = np.sort(np.broadcast_to(np.deg2rad(angle), 2))[::-1]
    # A cosine near 1 holds the angle only to eps/angle.
    np.testing.assert_allclose(subspace_angles(frames[0], frames[2]), expected, atol=1e-10)


def test_aligned_heads_are_the_same_head():
    """Without the square root of an eigenvalue's rounding, about 1e-8, between them."""
    frames = np.asarray(FRAMES["equiangular"](80, 32, 2, angle=0))
    assert np.abs(frames - frames[0]).max() < 1e-14


@pytest.mark.theory
def test_lowest_cosine():
    """c = −1/(H−1) is allowed (vectors that sum to zero), and nothing below."""
    frames = np.asarray(FRAMES["equiangular"](7, 3, 2, cosine=-1 / 2))
    np.testing.assert_allclose(frames.sum(0), 0, atol=1e-7)
    with refused(r"heads.frames.cosine: got -0.51; allowed: -0.5"):
        FRAMES["equiangular"](7, 3, 2, cosine=-0.51)


@pytest.mark.theory
@pytest.mark.parametrize("per_direction", [False, True])
def test_gram(per_direction):
    factors = RNG.normal(size=(3, 5, 6))
    grams = np.einsum("jhe,jge->jhg", factors, factors)
    norms = np.sqrt(np.einsum("jhh->jh", grams))
    grams /= norms[:, :, None] * norms[:, None, :]
    grams = grams if per_direction else np.stack([grams[0]] * 3)
    frames = np.asarray(FRAMES["gram"](20, 5, 3, gram=grams if per_direction else grams[0]))
    products = np.einsum("hdj,gdk->jkhg", frames, frames)
    for j in range(3):
        for k in range(3):
            expected = grams[j] if j == k else np.zeros((5, 5))
            np.testing.assert_allclose(products[j, k], expected, atol=5e-15)


def test_haar_is_uniform():
    """E UUᵀ = (d_k/d) I, and independent heads: E‖U_hᵀU_g‖² = d_k²/d. At most 10 z-scores beyond
    5 with a chance below 1e-5 in all (the seed is fixed: this never flickers)."""
    count, d, width = 2000, 4, 2
    frames = np.asarray(FRAMES["haar"](d, count, width, seed=3))
    np.testing.assert_allclose(
        np.einsum("hdj,hdk->hjk", frames, frames),
        np.broadcast_to(np.eye(2), (count, 2, 2)),
        atol=1e-14,
    )
    projections = np.einsum("hdj,hej->hde", frames, frames)
    z = (projections.mean(0) - np.eye(d) * width / d) / (projections.std(0) / np.sqrt(count))
    assert np.abs(z).max() < 5
    overlap = np.sum(np.einsum("hdj,hdk->hjk", frames[::2], frames[1::2]) ** 2, axis=(1, 2))
    assert abs(overlap.mean() - width**2 / d) < 5 * overlap.std() / np.sqrt(count / 2)
    # Signs are uniform too: the mean frame vanishes.
    assert np.abs(frames.mean(0) / (frames.std(0) / np.sqrt(count))).max() < 5


test_bad_options_are_named = refusals(
    [
        ("equiangular", {"cosine": 1.1}, "heads.frames.cosine: got 1.1"),
        ("equiangular", {"cosine": "wide"}, "heads.frames.cosine: got 'wide'"),
        ("gram", {"gram": np.eye(2)}, r"heads.frames.gram: got \(2, 2\)"),
        ("gram", {"gram": 2 * np.eye(3)}, "unit diagonal"),
        ("gram", {"gram": 3 * np.ones((3, 3)) - 2 * np.eye(3)}, "positive semidefinite"),
        ("explicit", {"frames": np.zeros((3, 2, 7))}, r"shape \(3, 7, 2\)"),
        ("haar", {"seed": 2**63}, "heads.frames.seed"),
    ],
    lambda name, options: FRAMES[name](7, 3, 2, **options),
)
