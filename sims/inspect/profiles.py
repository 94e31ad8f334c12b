"""Error of the scores under a key cache of each rank, from second moments of keys and queries.

Moments (…, d_k, d_k) are ``keys``, ``E kkᵀ``, and ``queries``, ``Σ E qqᵀ`` of the heads that read
them. Keys are centred by key head: softmax ignores a constant on all keys of a head.
"""

import math
from collections.abc import Mapping

import numpy as np

from sims.attention.low_rank import k_svd, kq_svd


def kq_profile(moments: Mapping[str, np.ndarray]) -> np.ndarray:
    """Error of KQ-SVD at each rank 0 … d_k − 1, as a share of the scores' squares.

    ``Σ_{i>r} σ_i²/Σσ_i²`` with σ_i² the eigenvalues of Σ_QΣ_K; no rank-r cache has a smaller one.
    """
    root = _root(moments["queries"])
    squares = np.linalg.eigvalsh(root @ moments["keys"] @ root.swapaxes(-1, -2))
    return _tails(np.maximum(squares, 0.0))


def k_profile(moments: Mapping[str, np.ndarray]) -> np.ndarray:
    """Error of K-SVD at each rank, as :func:`kq_profile`: keys kept in their principal subspace.

    It depends on the basis in which a model stores keys and queries, as does that cache.
    """
    values, vectors = np.linalg.eigh(moments["keys"])
    queried = (vectors * (moments["queries"] @ vectors)).sum(-2)
    return _tails(np.maximum(values, 0.0) * queried)


def rank_within(errors: np.ndarray, tolerance: float) -> int:
    """Median over key heads of the least rank with an error within a tolerance, rounded up."""
    return math.ceil(np.median((errors > tolerance).sum(-1)))


def compression(name: str, moments: Mapping[str, np.ndarray], rank: int) -> np.ndarray:
    """Maps (…, d_k, d_k) from keys to keys with the scores of a cache of a rank.

    Args:
        name: ``kq_svd`` or ``k_svd``.
        moments: second moments of centred keys and of queries.
        rank: numbers stored of each key.
    """
    width = moments["keys"].shape[-1]
    if rank == width:
        return np.eye(width)
    keys = _root(moments["keys"])
    if name == "k_svd":
        return k_svd(keys, rank).product
    return kq_svd(keys, _root(moments["queries"]), rank).product


def _root(moment: np.ndarray) -> np.ndarray:
    """Rows R with ``RᵀR`` equal to a second moment."""
    values, vectors = np.linalg.eigh(moment)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[..., None] * vectors.swapaxes(-1, -2))


def _tails(ascending: np.ndarray) -> np.ndarray:
    """Shares lost if all but the last r of these parts are lost, r = 0 … n − 1."""
    total = ascending.sum(-1, keepdims=True)
    return np.asarray(np.cumsum(ascending, -1)[..., ::-1] / np.where(total > 0, total, 1.0))
