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


class Subset(NamedTuple):
    """The best subset of each row of items.

    Attributes:
        chosen: which items, (…, items), boolean.
        error: |sum − target|, (…,).
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

    The 2^{k/2} sums of one half are sorted, and what the sums of the other leave to be reached is
    looked up among them: of each the two neighbours are the only candidates.

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
    left, right = subset_sums(rows[:, :half]), subset_sums(rows[:, half:])
    places = np.array([_meet(*row, nonempty) for row in zip(left, right, goal, strict=True)])
    chosen = np.concatenate([
        places[:, :1] >> np.arange(half) & 1, places[:, 1:] >> np.arange(count - half) & 1
    ], axis=1).astype(bool)  # fmt: skip
    error = np.abs(np.where(chosen, rows, 0.0).sum(1) - goal)
    return Subset(chosen.reshape(items.shape), error.reshape(items.shape[:-1]))


def _meet(left: np.ndarray, right: np.ndarray, goal: float, nonempty: bool) -> tuple[int, int]:
    """Places in left and right, both beginning with the empty sum, of the best pair."""
    order = np.argsort(right)
    ranked = right[order]
    wanted = goal - left
    at = np.searchsorted(ranked, wanted)
    candidates = np.stack([np.maximum(at - 1, 0), np.minimum(at, len(right) - 1)])
    gaps = np.abs(ranked[candidates] - wanted)
    empty = (np.inf, 0)
    if nonempty:
        gaps[:, 0] = np.inf  # with the left half empty the right one must not be
        alone = np.abs(right[1:] - goal)
        empty = (float(alone.min()), int(alone.argmin()) + 1)
    side, best = np.unravel_index(gaps.argmin(), gaps.shape)
    if empty[0] < gaps[side, best]:
        return 0, empty[1]
    return int(best), int(order[candidates[side, best]])


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
