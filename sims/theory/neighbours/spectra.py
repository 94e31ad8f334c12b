"""Low-rank scores: the least error, the error of the keys' factors, the cost of calibration.

Everything follows from the second moments ``Σ_K = E kkᵀ`` and ``Σ_Q = E qqᵀ`` (of a cache: KᵀK and
QᵀQ), by eigenvalues of symmetric d × d matrices. Errors are ``E(kᵀ(M − I)q)²`` with M = ABᵀ, of a
cache ``‖KMQᵀ − KQᵀ‖²``. Derivations: docs/theory/low_rank_scores.md.
"""

import numpy as np

from sims.problem.design_laws import square_root


def squares(key_moment: np.ndarray, query_moment: np.ndarray) -> np.ndarray:
    """σ_i², descending: eigenvalues of Σ_QΣ_K, the squared singular values of KQᵀ, (…, d)."""
    root = np.asarray(square_root(query_moment))
    values = np.linalg.eigvalsh(root @ key_moment @ root)
    return np.asarray(np.maximum(values[..., ::-1], 0.0))


def optimum(values: np.ndarray, rank: int) -> np.ndarray:
    """The least error of rank r, ``Σ_{i>r} σ_i²``, from σ_i² (…, d)."""
    return np.asarray(values[..., rank:].sum(-1))


def keys_only_error(key_moment: np.ndarray, query_moment: np.ndarray, rank: int) -> np.ndarray:
    """The error of keys kept in the span P of the top r eigenvectors of Σ_K: ``tr Σ_K P⊥ Σ_Q``.

    Σ_K and P commute, so that only what is left out of the keys enters.
    """
    values, vectors = np.linalg.eigh(key_moment)
    lost = vectors[..., : values.shape[-1] - rank]
    seen = (lost * (query_moment @ lost)).sum(-2)
    return np.asarray((values[..., : lost.shape[-1]] * seen).sum(-1))


def excess_risk(
    key_moment: np.ndarray,
    query_moments: np.ndarray,
    rank: int,
    keys: float,
    queries: float,
    mean: np.ndarray | None = None,
) -> np.ndarray:
    """Mean risk of KQ-SVD calibrated on Gaussian keys and queries, less the optimum, to 1/n.

    ``Σ_{i≤r<j} σ_i²σ_j²/(σ_i² − σ_j²) · ((1 − 2μ_i²μ_j²)/n_K + V_ij/σ_i²σ_j²n_Q)`` in coordinates
    with ``Σ_K = I``, ``Σ_Q = diag(σ²)``; ``V = Σ_h (Σ_h,ii Σ_h,jj + Σ_h,ij²)`` is n_Q times the
    variance of an entry of the sample's moment. One head and a mean of 0 give the sum times
    ``1/n_K + 1/n_Q``. The calibration loss falls short of the optimum by as much.

    Args:
        key_moment: E kkᵀ, (d, d).
        query_moments: E qqᵀ of each of the m heads that share the keys, (m, d, d).
        rank: r.
        keys: n_K.
        queries: n_Q of each head.
        mean: μ of the keys, (d,); None: 0.

    Returns:
        A number; ∞ where σ_r = σ_{r+1} > 0.
    """
    root = np.asarray(square_root(key_moment))
    values, turn = np.linalg.eigh(root @ query_moments.sum(0) @ root)
    values = np.maximum(values[::-1], 0.0)
    maps = root @ turn[:, ::-1]
    reduced = maps.T @ query_moments @ maps
    diagonal = np.diagonal(reduced, axis1=1, axis2=2)
    noise = (diagonal[:, :, None] * diagonal[:, None] + reduced**2).sum(0)
    middle = np.zeros(len(values))
    if mean is not None:
        middle = turn[:, ::-1].T @ np.linalg.pinv(root) @ mean
    square = np.outer(values, values)
    with np.errstate(divide="ignore", invalid="ignore"):
        price = (square * (1 - 2 * np.outer(middle, middle) ** 2) / keys + noise / queries) / (
            values[:, None] - values
        )
    return np.asarray(np.where(square > 0, price, 0.0)[:rank, rank:].sum())
