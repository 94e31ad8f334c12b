"""Low-rank caches: optimal for scores, and what they keep where keys are deficient or shifted."""

import numpy as np
import pytest

from sims.attention.low_rank import (
    LowRank,
    joint_svd,
    k_svd,
    kq_svd,
    stacked,
)
from sims.errors import InputError


@pytest.fixture
def caches():
    """Keys (40, 6) and queries (30, 6), correlated each in its own way."""
    rng = np.random.default_rng(3)
    return tuple(rng.standard_normal((rows, 6)) @ rng.standard_normal((6, 6)) for rows in (40, 30))


def error(cache, keys, queries):
    return ((cache.scores(keys, queries) - keys @ queries.T) ** 2).sum()


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_tail_of_the_whole_score_matrix(caches, rank):
    """Singular values of the 40 × 30 matrix itself, which the code never forms."""
    keys, queries = caches
    values = np.linalg.svd(keys @ queries.T, compute_uv=False)
    tail = (values[rank:] ** 2).sum()
    assert error(kq_svd(keys, queries, rank), keys, queries) == pytest.approx(
        tail, rel=1e-10, abs=1e-12 * (values**2).sum()
    )


def test_scores_are_those_of_the_projected_matrix(caches):
    keys, queries = caches
    u = np.linalg.svd(keys @ queries.T)[0][:, :2]
    expected = u @ u.T @ keys @ queries.T
    found = kq_svd(keys, queries, 2)
    np.testing.assert_allclose(found.scores(keys, queries), expected, atol=1e-10)
    np.testing.assert_allclose(found.query_map.T @ found.key_map, np.eye(2), atol=1e-10)
    assert np.abs(found.product - found.product.T).max() > 0.1  # oblique


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
    mean = keys.mean(0)
    cache = kq_svd(keys, queries, 2, centre=mean)
    scores = keys @ queries.T
    centred = scores - scores.mean(0)
    moved = cache.scores(keys, queries)
    tail = (np.linalg.svd(centred, compute_uv=False)[2:] ** 2).sum()
    assert ((moved - moved.mean(0) - centred) ** 2).sum() == pytest.approx(tail, rel=1e-9)
    plain = kq_svd(keys, queries, 2).scores(keys, queries)
    assert ((plain - plain.mean(0) - centred) ** 2).sum() > 1.05 * tail


def test_batches_are_compressed_one_by_one(caches):
    keys, queries = caches
    together = kq_svd(np.stack([keys, 2 * keys]), np.stack([queries, queries[::-1]]), 2)
    assert isinstance(together, LowRank)
    np.testing.assert_allclose(together.product[0], kq_svd(keys, queries, 2).product, atol=1e-9)
    assert together.stored(np.stack([keys, keys])).shape == (2, 40, 2)


def test_bad_input(caches):
    keys, queries = caches
    with pytest.raises(InputError, match="rank: got 7; allowed: at most the head width 6"):
        kq_svd(keys, queries, 7)
