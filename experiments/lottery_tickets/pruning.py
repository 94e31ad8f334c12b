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

from sims.attention.attention import softmax
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


def subset_sums(items: np.ndarray) -> np.ndarray:
    """All 2^k sums (…, 2^k) of items (…, k); bit j of the place says whether item j is in."""
    sums = np.zeros((*items.shape[:-1], 1))
    for j in range(items.shape[-1]):
        sums = np.concatenate([sums, sums + items[..., j : j + 1]], axis=-1)
    return sums


def closest_subset(items: np.ndarray, target: np.ndarray) -> Subset:
    """The subset whose sum is closest to the target, row by row, exactly.

    Of sums of one half and what sums of the other leave to be reached, laid into one order, only
    neighbours can be closest: 2·2^{k/2} numbers to sort in place of 2^k to look at.

    Args:
        items: (…, k), k up to :data:`MOST_ITEMS`.
        target: (…,).

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
    places = []
    for start in range(0, len(rows), at_once):
        part, wanted = rows[start : start + at_once], goal[start : start + at_once]
        places.append(_meet(subset_sums(part[:, :half]), subset_sums(part[:, half:]), wanted))
    left, right = np.concatenate(places).T[..., None]
    halves = [left >> np.arange(half) & 1, right >> np.arange(count - half) & 1]
    chosen = np.concatenate(halves, axis=1).astype(bool)
    error = np.abs(np.where(chosen, rows, 0.0).sum(1) - goal)
    return Subset(chosen.reshape(items.shape), error.reshape(items.shape[:-1]))


def _meet(left: np.ndarray, right: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Places in left and right, both beginning with the empty sum, of the best pair of each row."""
    both = np.concatenate([right, goal[:, None] - left], axis=1)
    order = np.argsort(both, axis=1)
    gaps = np.diff(np.take_along_axis(both, order, axis=1), axis=1)
    # What lay between the closest two of different sides would be closer to one of them.
    of_left = order >= right.shape[1]
    gaps[of_left[:, 1:] == of_left[:, :-1]] = np.inf
    at = gaps.argmin(1)[:, None] + np.arange(2)
    pair = np.sort(np.take_along_axis(order, at, axis=1), axis=1)
    return np.stack([pair[:, 1] - right.shape[1], pair[:, 0]], axis=1)


def attention(tokens: np.ndarray, score_matrix: np.ndarray, value_matrix: np.ndarray) -> np.ndarray:
    """One head by its merged matrices, ``softmax(X W_QK Xᵀ) X W_VO``, of tokens (…, T, d)."""
    weights = softmax(tokens @ score_matrix @ tokens.swapaxes(-1, -2))
    return np.asarray(weights @ (tokens @ value_matrix))
