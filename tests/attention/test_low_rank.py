"""Low-rank caches: optimal for scores, their rivals, and what errors of scores do to outputs."""

import numpy as np
import pytest

from sims.attention.low_rank import (
    LowRank,
    joint_svd,
    k_svd,
    kq_svd,
    stacked,
)
from tests.by_hand import refused


@pytest.fixture
def caches():
    """Keys (40, 6) and queries (30, 6), correlated each in its own way."""
    rng = np.random.default_rng(3)
    return tuple(rng.standard_normal((rows, 6)) @ rng.standard_normal((6, 6)) for rows in (40, 30))


def error(cache, keys, queries):
    return ((cache.scores(keys, queries) - keys @ queries.T) ** 2).sum()


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_scores_are_those_of_the_projected_matrix(caches, rank):
    """By singular vectors of the 40 × 30 matrix itself, which the code never forms."""
    keys, queries = caches
    u = np.linalg.svd(keys @ queries.T)[0][:, :rank]
    found = kq_svd(keys, queries, rank)
    np.testing.assert_allclose(found.scores(keys, queries), u @ u.T @ keys @ queries.T, atol=1e-10)
    np.testing.assert_allclose(found.query_map.T @ found.key_map, np.eye(rank), atol=1e-10)
    oblique = np.abs(found.product - found.product.T).max() > 0.1
    assert oblique == (rank < 6)


def test_rank_deficient_keys(caches):
    """Ranks beyond that of the keys lose nothing, and few tokens are no obstacle."""
    keys, queries = (part.copy() for part in caches)
    keys[:, 3:] = 0
    for rank in (3, 4, 6):
        assert error(kq_svd(keys, queries, rank), keys, queries) < 1e-18 * (keys**2).sum() ** 2
    turned = keys @ np.linalg.qr(caches[1][:6])[0]
    for rank in (4, 6):  # what is stored of new keys is no rounding divided by rounding
        assert np.abs(kq_svd(turned, queries, rank).key_map).max() < 1e3
    few = caches[0][:2]
    assert error(kq_svd(few, queries, 5), few, queries) < 1e-16 * (few**2).sum() ** 2


def test_directions_in_which_keys_are_small_are_kept(caches):
    """Queries are as large there as keys are small, and scores come back to rounding."""
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((6, 6)))[0]
    share = 1e-9
    scale = np.array([1.0, 1.0, 1.0, 1.0, 1.0, share])
    plain_keys, plain_queries = (np.linalg.qr(part)[0] for part in caches)
    keys, queries = (plain_keys * scale) @ turn, (plain_queries / scale) @ turn
    scores, rounding = plain_keys @ plain_queries.T, 100 * np.finfo(float).eps / share
    found = kq_svd(keys, queries, 6)
    np.testing.assert_allclose(found.scores(keys, queries), scores, atol=rounding)


def test_rivals_by_their_definitions(caches):
    keys, queries = caches
    v = np.linalg.eigh(keys.T @ keys)[1][:, -2:]
    both = np.linalg.eigh(keys.T @ keys + queries.T @ queries)[1][:, -2:]
    for found, frame in ((k_svd(keys, 2), v), (joint_svd(keys, queries, 2), both)):
        np.testing.assert_allclose(found.product, frame @ frame.T, atol=1e-10)


def test_grouped_queries_share_one_map(caches):
    """The best query map of any head, by least squares on its own scores, is KQ-SVD's."""
    keys, queries = caches
    rng = np.random.default_rng(5)
    heads = np.stack([queries, queries @ rng.standard_normal((6, 6))])
    found = kq_svd(keys, stacked(heads), 3)
    assert stacked(heads).shape == (60, 6)
    small = keys @ found.key_map
    for own in heads:
        best = np.linalg.lstsq(small, keys @ own.T, rcond=None)[0]
        np.testing.assert_allclose(small @ best, found.scores(keys, own), atol=1e-9)


def test_centred_keys_reach_the_tail(caches):
    keys, queries = caches[0] + 5.0, caches[1]
    rows = keys - keys.mean(0)
    cache = kq_svd(rows, queries, 2)
    scores = keys @ queries.T
    centred = scores - scores.mean(0)
    moved = cache.scores(rows, queries)
    tail = (np.linalg.svd(centred, compute_uv=False)[2:] ** 2).sum()
    assert ((moved - moved.mean(0) - centred) ** 2).sum() == pytest.approx(tail, rel=1e-9)
    plain = kq_svd(keys, queries, 2).scores(keys, queries)
    assert ((plain - plain.mean(0) - centred) ** 2).sum() > 1.05 * tail


def test_the_error_depends_on_the_basis_for_the_rivals_alone(caches):
    """K → KG, Q → QG^{-T} leaves scores as they are; K-SVD bears a scale, Eigen rotations alone."""
    keys, queries = caches
    general = np.random.default_rng(7).standard_normal((6, 6))
    rotation = np.linalg.qr(general)[0]

    def errors(change):
        k, q = keys @ change, queries @ np.linalg.inv(change).T
        return [error(c, k, q) for c in (kq_svd(k, q, 2), k_svd(k, 2), joint_svd(k, q, 2))]

    before = np.array(errors(np.eye(6)))
    np.testing.assert_allclose(errors(rotation), before, rtol=1e-9)
    moved = np.abs(np.array([errors(3 * rotation), errors(general)]) / before - 1) > 1e-3
    assert moved.tolist() == [[False, False, True], [False, True, True]]


def test_where_the_keys_alone_are_enough_and_where_they_lose_everything(caches):
    """Common axes in a common order, or balanced factors: no gap; else one without bound."""
    spread = np.arange(6.0, 0, -1)
    frames = [np.linalg.qr(part)[0] for part in caches]
    keys, queries = (frame * spread for frame in frames)
    u, s, v = np.linalg.svd(caches[0] @ caches[1].T)
    balanced = u[:, :6] * s[:6] ** 0.5, v[:6].T * s[:6] ** 0.5
    for k, q in ((keys, queries), balanced):
        least = error(kq_svd(k, q, 2), k, q)
        for rival in (k_svd(k, 2), joint_svd(k, q, 2)):
            assert error(rival, k, q) == pytest.approx(least, rel=1e-9)
    assert error(k_svd(keys, 2), keys, queries[:, ::-1]) > error(
        kq_svd(keys, queries[:, ::-1], 2), keys, queries[:, ::-1]
    )
    for size in (0.1, 0.001):
        k, q = np.diag([1.01, 1]), np.diag([size, 1])
        ratio = error(k_svd(k, 1), k, q) / error(kq_svd(k, q, 1), k, q)
        assert ratio == pytest.approx((1.01 * size) ** -2)


def test_the_joint_factors_tend_to_those_of_the_larger_side(caches):
    """K → βK, Q → Q/β: the errors' difference falls like β^−4, to K-SVD's or to the queries'."""
    keys, queries = caches
    for side, alone in ((1, k_svd(keys, 2)), (-1, k_svd(queries, 2))):
        own, gaps = error(alone, keys, queries), []
        for size in (10, 100):
            f = float(size) ** side
            gaps.append(error(joint_svd(f * keys, queries / f, 2), keys, queries) - own)
        assert gaps[0] / gaps[1] == pytest.approx(1e4, rel=0.05)


def test_under_a_causal_mask_it_is_not_optimal():
    """Two tokens: a triangle with an entry below the diagonal is completed to rank 1."""
    keys, queries = np.eye(2), np.array([[2.0, 7.0], [1.0, 3.0]])  # the scores; 7 is masked
    mask = np.tril(np.ones((2, 2), bool))
    completed = np.array([[2.0, 6.0], [1.0, 3.0]])  # rank 1
    best = kq_svd(keys, queries, 1).scores(keys, queries).T
    assert np.linalg.matrix_rank(completed) == 1
    assert ((completed - queries)[mask] == 0).all()
    assert ((best - queries)[mask] ** 2).sum() > 1e-3


def test_outputs_move_by_at_most_tanh_of_a_quarter_of_the_range_times_the_diameter():
    """Row by row, and ``½‖e‖`` in ℓ2, at every length; two exchanged keys attain the first."""
    rng = np.random.default_rng(8)

    def softmax(scores):
        return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)

    for length in (2, 3, 30, 1000):
        scores, errors = rng.standard_normal((2, 200, length)) * np.exp(rng.uniform(-2, 2))
        values = rng.standard_normal((length, 3))
        change = softmax(scores + errors) - softmax(scores)
        diameter = 2 * np.linalg.norm(values, axis=1).max()  # the largest distance is no larger
        moved = np.linalg.norm(change @ values, axis=1)
        assert (moved <= np.tanh(np.ptp(errors, axis=1) / 4) * diameter).all()
        size = np.linalg.norm(errors, axis=1)
        assert (np.linalg.norm(change, axis=1) <= size / 2).all()
    for omega in (0.1, 3.0):
        pair = softmax(np.array([[omega, -omega], [-omega, omega]]) / 4)
        assert pair[0, 0] - pair[1, 0] == pytest.approx(np.tanh(omega / 4))


def test_batches_are_compressed_one_by_one(caches):
    keys, queries = caches
    together = kq_svd(np.stack([keys, 2 * keys]), np.stack([queries, queries[::-1]]), 2)
    assert isinstance(together, LowRank)
    np.testing.assert_allclose(together.product[0], kq_svd(keys, queries, 2).product, atol=1e-9)
    assert together.stored(np.stack([keys, keys])).shape == (2, 40, 2)


def test_bad_input(caches):
    keys, queries = caches
    with refused("rank: got 7; allowed: at most the head width 6"):
        kq_svd(keys, queries, 7)
