"""Strong lottery tickets of attention: pruning of random weights by blocks, solved exactly.

A target's merged matrices, ``W_QK = W_QW_Kᵀ/√d_K`` and ``W_VO = W_VW_O``, are approximated by
those of a wider random *source* of which weights are only switched off. Of ``source_width =
d·items`` columns, block j keeps of the second matrix the entries ``u_jk`` of row j alone, so that
entry (i, j) of the product becomes ``Σ_k m_ijk v_ik u_jk`` over the block's columns k: a *subset
sum* of as many items as the block has columns, and masks of different entries do not meet. The best
subset is found exactly, by meeting in the middle. Source: arXiv 2511.04217.
"""

import numpy as np

CACHED = 2**14
"""Sums that are sorted at once, of as many rows as have them: they stay in a core's cache."""


def subset_sums(items: np.ndarray) -> np.ndarray:
    """All 2^k sums (…, 2^k) of items (…, k); bit j of the place says whether item j is in."""
    sums = np.zeros((*items.shape[:-1], 1))
    for j in range(items.shape[-1]):
        sums = np.concatenate([sums, sums + items[..., j : j + 1]], axis=-1)
    return sums


def closest_sum(items: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The subset sums that are closest to the targets, row by row, exactly to rounding, (…,).

    Of sums of one half and what sums of the other leave to be reached, laid into one order, only
    neighbours can be closest: 2·2^{k/2} numbers to sort in place of 2^k to look at.

    Args:
        items: (…, k), k ≥ 1.
        target: (…,).
    """
    count = items.shape[-1]
    rows = items.reshape(-1, count)
    goal = np.broadcast_to(target, items.shape[:-1]).reshape(-1, 1)
    parts = 1 + (len(rows) << (count - count // 2 + 1)) // CACHED
    pairs = zip(np.array_split(rows, parts), np.array_split(goal, parts), strict=True)
    return np.concatenate([meet_halves(*pair) for pair in pairs]).reshape(items.shape[:-1])


def meet_halves(items: np.ndarray, target: np.ndarray) -> np.ndarray:
    """:func:`closest_sum` of items (R, k) and targets (R, 1), all at once, (R,)."""
    half = items.shape[1] // 2
    right = subset_sums(items[:, half:])
    candidates = np.concatenate([right, target - subset_sums(items[:, :half])], axis=1)
    # The last bit of a number says whose it is.
    bits = candidates.view(np.int64)
    bits[:, : right.shape[1]] |= 1
    bits[:, right.shape[1] :] &= ~1
    candidates.sort(axis=1)
    side = bits & 1
    gaps = np.diff(candidates, axis=1)
    gaps[side[:, 1:] == side[:, :-1]] = np.inf
    # Of a pair the sum is the target less what is left, plus the right half's sum.
    place = gaps.argmin(1)[:, None]
    sign = np.take_along_axis(np.diff(side, axis=1), place, axis=1)
    return (target + sign * np.take_along_axis(gaps, place, axis=1)).ravel()
