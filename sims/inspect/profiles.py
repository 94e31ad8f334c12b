"""Error of the scores under a key cache of each rank, from second moments of keys and queries.

Moments (…, d_k, d_k) are ``keys``, ``E kkᵀ``, and ``queries``, ``Σ E qqᵀ`` of the heads that read
them.
"""

from collections.abc import Mapping

import numpy as np


def kq_profile(moments: Mapping[str, np.ndarray]) -> np.ndarray:
    """Error of KQ-SVD at each rank 0 … d_k − 1, as a share of the scores' squares.

    ``Σ_{i>r} σ_i²/Σσ_i²`` with σ_i² the eigenvalues of Σ_QΣ_K; no rank-r cache has a smaller one.
    """
    values, vectors = np.linalg.eigh(moments["queries"])
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    squares = np.linalg.eigvalsh(root.swapaxes(-1, -2) @ moments["keys"] @ root)
    return _tails(np.maximum(squares, 0.0))


def k_profile(moments: Mapping[str, np.ndarray]) -> np.ndarray:
    """Error of K-SVD at each rank, as :func:`kq_profile`: keys kept in their principal subspace."""
    values, vectors = np.linalg.eigh(moments["keys"])
    queried = (vectors * (moments["queries"] @ vectors)).sum(-2)
    return _tails(np.maximum(values, 0.0) * queried)


def _tails(ascending: np.ndarray) -> np.ndarray:
    """Shares lost if all but the last r of these parts are lost, r = 0 … n − 1."""
    total = ascending.sum(-1, keepdims=True)
    return np.asarray(np.cumsum(ascending, -1)[..., ::-1] / np.where(total > 0, total, 1.0))
