"""Strong lottery tickets of attention: pruning of random weights by blocks, solved exactly.

A target's merged matrices, ``W_QK = W_QW_Kᵀ/√d_K`` and ``W_VO = W_VW_O``, are approximated by
those of a wider random *source* of which weights are only switched off. Of ``source_width =
d·items`` columns, block j keeps of the second matrix the entries ``u_jk`` of row j alone, so that
entry (i, j) of the product becomes ``Σ_k m_ijk v_ik u_jk`` over the block's columns k: a *subset
sum* of as many items as the block has columns, and masks of different entries do not meet. The best
subset is found exactly, by meeting in the middle. Source: arXiv 2511.04217.
"""

from typing import NamedTuple

import numpy as np

from sims.checks import check_count
from sims.errors import InputError

MOST_ITEMS = 44
"""Halves of 2²² sums; beyond, the best errors are below float64's rounding of the sums."""
CACHED = 2**14
"""Sums that are sorted at once, of as many rows as have them: they stay in a core's cache."""


class Subset(NamedTuple):
    """The best subset of each row of items.

    Attributes:
        chosen: which items, (…, items), boolean.
        error: ``|sum − target|``, (…,).
    """

    chosen: np.ndarray
    error: np.ndarray


class Ticket(NamedTuple):
    """A pruned source.

    Attributes:
        left_mask: (d, source_width), what is kept of the left matrix.
        right_mask: (d', source_width), what is kept of the right one.
        product: the merged matrix of the pruned source, (d, d').
    """

    left_mask: np.ndarray
    right_mask: np.ndarray
    product: np.ndarray


def subset_sums(items: np.ndarray) -> np.ndarray:
    """All 2^k sums (…, 2^k) of items (…, k); bit j of the place says whether item j is in."""
    sums = np.zeros((*items.shape[:-1], 1))
    for j in range(items.shape[-1]):
        sums = np.concatenate([sums, sums + items[..., j : j + 1]], axis=-1)
    return sums


def closest_subset(items: np.ndarray, target: np.ndarray, nonempty: bool = False) -> Subset:
    """The subset whose sum is closest to the target, row by row, exactly.

    Of sums of one half and what sums of the other leave to be reached, laid into one order, only
    neighbours can be closest: 2·2^{k/2} numbers to sort in place of 2^k to look at.

    Args:
        items: (…, k), k up to :data:`MOST_ITEMS`.
        target: (…,).
        nonempty: whether the empty subset, which hits 0 exactly, is no answer.

    Raises:
        InputError: there are no items, or too many.
    """
    count = items.shape[-1]
    check_count("items", count)
    if count > MOST_ITEMS:
        raise InputError("items", count, f"at most {MOST_ITEMS}")
    rows = items.reshape(-1, count)
    goal = np.broadcast_to(target, items.shape[:-1]).ravel()
    half = count // 2
    at_once = max(1, CACHED >> (count - half + 1))
    places = np.concatenate([
        _meet(subset_sums(part[:, :half]), subset_sums(part[:, half:]), wanted, nonempty)
        for part, wanted in (
            (rows[i : i + at_once], goal[i : i + at_once]) for i in range(0, len(rows), at_once)
        )
    ])  # fmt: skip
    chosen = np.concatenate([
        places[:, :1] >> np.arange(half) & 1, places[:, 1:] >> np.arange(count - half) & 1
    ], axis=1).astype(bool)  # fmt: skip
    error = np.abs(np.where(chosen, rows, 0.0).sum(1) - goal)
    return Subset(chosen.reshape(items.shape), error.reshape(items.shape[:-1]))


def _meet(left: np.ndarray, right: np.ndarray, goal: np.ndarray, nonempty: bool) -> np.ndarray:
    """Places in left and right, both beginning with the empty sum, of the best pair of each row."""
    row, count = np.arange(len(goal)), right.shape[1]
    both = np.concatenate([right, goal[:, None] - left], axis=1)
    if nonempty:
        both[:, count] = 1e300  # with the left half empty the right one must not be
    # The last bit of a number says which side it is of: to sort places takes twice as long.
    bits = both.view(np.int64)
    bits[:, :count] &= ~1
    bits[:, count:] |= 1
    ranked = np.sort(both, axis=1)
    # What lay between the closest two of different sides would be closer to one of them. Numbers
    # ≥ 0 are ordered as their bits are; neighbours of one side get bits that are last.
    order = ranked.view(np.int64)
    differ = (order[:, 1:] ^ order[:, :-1]) & 1
    gaps = np.diff(ranked, axis=1).view(np.int64) | ((differ - 1) & np.iinfo(np.int64).max)
    at = gaps.argmin(1)
    pair = np.stack([ranked[row, at], ranked[row, at + 1]], axis=1)
    one, other = (pair[row, (pair.view(np.int64) & 1 == bit).argmax(1), None] for bit in (0, 1))
    places = np.stack(
        [(both[:, count:] == other).argmax(1), (both[:, :count] == one).argmax(1)], axis=1
    )
    if nonempty:
        alone = np.abs(right[:, 1:] - goal[:, None])
        better = alone.min(1) < gaps.view(float)[row, at]
        places[better, 0], places[better, 1] = 0, alone.argmin(1)[better] + 1
    return places


def prune(left: np.ndarray, right: np.ndarray, target: np.ndarray) -> Ticket:
    """The ticket whose product ``(M ∘ left)(M' ∘ right)ᵀ`` is closest to the target, by blocks.

    Args:
        left: v, (d, source_width).
        right: u, (d', source_width), source_width a multiple of d'.
        target: (d, d').

    Raises:
        InputError: the shapes do not fit together.
    """
    (rows, columns), width = target.shape, left.shape[1]
    if left.shape[0] != rows or right.shape != (columns, width) or width % columns:
        allowed = f"left ({rows}, w) and right ({columns}, w), w a multiple of {columns}"
        raise InputError("source", (left.shape, right.shape), allowed)
    own = np.repeat(np.eye(columns, dtype=bool), width // columns, axis=1)
    # (row, column, item): the block of each column.
    blocks = (left[:, None, :] * right[None])[:, own].reshape(rows, columns, -1)
    chosen = closest_subset(blocks, target).chosen
    mask = chosen.reshape(rows, width)
    return Ticket(mask, own, (mask * left) @ (own * right).T)


def attention(tokens: np.ndarray, score_matrix: np.ndarray, value_matrix: np.ndarray) -> np.ndarray:
    """One head by its merged matrices, ``softmax(X W_QK Xᵀ) X W_VO``, of tokens (…, T, d)."""
    scores = tokens @ score_matrix @ tokens.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ (tokens @ value_matrix))
