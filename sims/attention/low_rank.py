"""Low-rank caches: keys (d) stored as r numbers, by factors calibrated on a sample of tokens.

A score ``kᵀq`` becomes ``(Aᵀk)ᵀ(Bᵀq)`` with key map A and query map B, both (d, r). Keys may be
centred first: that shifts all scores of a query equally, which softmax does not see. Caches are
stacks of rows, keys (…, T, d) and queries (…, T', d); the methods differ in the criterion for A and
B:

================= ========================================================================
:func:`kq_svd`    the score matrix KQᵀ: no rank-r factors have a smaller Frobenius error
:func:`k_svd`     the keys only: A = B = top right singular vectors of K
:func:`joint_svd` keys and queries stacked ("Eigen"): A = B = top right ones of [K; Q]
================= ========================================================================

Values are compressed alike: ``VABᵀW_O`` for ``VW_O`` is :func:`kq_svd` of V and W_Oᵀ. Source: arXiv
2512.05916.
"""

from dataclasses import dataclass

import numpy as np

from sims.base.errors import InputError

CUTOFF = 1e-12
"""Singular values below this share of the largest one count as 0 in pseudo-inverses."""


@dataclass(frozen=True)
class LowRank:
    """A low-rank cache.

    Attributes:
        key_map: A, (…, d, r); what is stored of a key k is ``Aᵀk``.
        query_map: B, (…, d, r).
    """

    key_map: np.ndarray
    query_map: np.ndarray

    def stored(self, keys: np.ndarray) -> np.ndarray:
        """Cached numbers (…, T, r) of keys (…, T, d)."""
        return np.asarray(keys @ self.key_map)

    def scores(self, keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Scores (…, T, T') of keys (…, T, d) with queries (…, T', d)."""
        return np.asarray(self.stored(keys) @ (queries @ self.query_map).swapaxes(-1, -2))

    @property
    def product(self) -> np.ndarray:
        """Product ABᵀ, (…, d, d), for KQ-SVD an oblique projector."""
        return np.asarray(self.key_map @ self.query_map.swapaxes(-1, -2))


def kq_svd(keys: np.ndarray, queries: np.ndarray, rank: int) -> LowRank:
    """Cache by KQ-SVD: ``A = K⁺Û``, ``B = KᵀÛ`` with Û the top r left singular vectors of KQᵀ.

    Keys and queries enter through the triangular factors of their QR decompositions, so that the
    singular vectors are those of a d × d matrix. Where r exceeds the rank of KQᵀ the surplus
    columns of Û meet zeros.

    Args:
        keys: keys of the calibration sample, (…, T, d).
        queries: (…, T', d); queries of several heads that share the keys are stacked
            (:func:`stacked`).
        rank: r, 1 to d.
    """
    d = keys.shape[-1]
    if rank > d:
        raise InputError("rank", rank, f"at most the head width {d}")
    key_triangle = _triangle(keys)
    query_triangle = _triangle(queries)
    left = np.linalg.svd(key_triangle @ query_triangle.swapaxes(-1, -2), full_matrices=True)[0][
        ..., :rank
    ]
    inverse = np.linalg.pinv(key_triangle, rcond=CUTOFF)
    return LowRank(inverse @ left, key_triangle.swapaxes(-1, -2) @ left)


def k_svd(keys: np.ndarray, rank: int) -> LowRank:
    """Cache by K-SVD: both maps are the top r right singular vectors of the keys."""
    frame = np.linalg.svd(_triangle(keys))[2].swapaxes(-1, -2)[..., :rank]
    return LowRank(frame, frame)


def joint_svd(keys: np.ndarray, queries: np.ndarray, rank: int) -> LowRank:
    """Cache by Eigen: both maps are top r right singular vectors of stacked keys and queries."""
    return k_svd(np.concatenate([keys, queries], axis=-2), rank)


def stacked(queries: np.ndarray) -> np.ndarray:
    """Queries (…, m, T, d) of m heads that share one key head, as (…, mT, d)."""
    return np.asarray(queries.reshape(*queries.shape[:-3], -1, queries.shape[-1]))


def _triangle(rows: np.ndarray) -> np.ndarray:
    """R (d, d) of rows = (orthonormal)·R; fewer rows than d are filled up with zeros."""
    missing = rows.shape[-1] - rows.shape[-2]
    if missing >= 0:
        return np.pad(rows, [(0, 0)] * (rows.ndim - 2) + [(0, missing), (0, 0)])
    return np.asarray(np.linalg.qr(rows, mode="r"))
