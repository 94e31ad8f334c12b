"""Low-rank scores: the optimum, its gap to rivals, the price of calibration, effective keys.

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


def gap(key_moment: np.ndarray, query_moment: np.ndarray, rank: int) -> np.ndarray:
    """By how much K-SVD's error is above the optimum: ``Σ_{i≤r} σ_i² − tr PΣ_KPΣ_Q`` ≥ 0."""
    kept = squares(key_moment, query_moment)[..., :rank].sum(-1)
    values, vectors = np.linalg.eigh(key_moment)
    frame = vectors[..., values.shape[-1] - rank :]
    own = (values[..., -rank:] * (frame * (query_moment @ frame)).sum(-2)).sum(-1)
    return np.asarray(kept - own)


def excess(values: np.ndarray, rank: int) -> np.ndarray:
    """``Σ_{i≤r<j} σ_i²σ_j²/(σ_i² − σ_j²)``, of which calibration costs (1/n_K + 1/n_Q) times.

    ∞ where σ_r = σ_{r+1} > 0.
    """
    first, last = values[..., :rank, None], values[..., None, rank:]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(last > 0, first * last / (first - last), 0.0)
    return np.asarray(each.sum((-2, -1)))


def excess_risk(values: np.ndarray, rank: int, keys: float, queries: float) -> np.ndarray:
    """Mean risk of KQ-SVD calibrated on Gaussian keys and queries, less the optimum, to 1/n.

    The calibration loss falls short of the optimum by as much.
    """
    return (1 / keys + 1 / queries) * excess(values, rank)


def neighbour_ratio(keys: float, queries: float) -> float:
    """Excess risk of KQ-SVD over K-SVD's where Σ_Q ∝ I: K-SVD pays the keys' part alone."""
    return 1 + keys / queries


def log_keys_gain(error: np.ndarray, temperature: float) -> np.ndarray:
    """By how much E log n_eff of a softmax head rises with its score error: ``error/s²``.

    For keys N(0, Σ) the overlap is ``r = exp(xᵀMΣMᵀx/s²)``; KQ-SVD and K-SVD take off the scores a
    part that is uncorrelated with what they keep.
    """
    return np.asarray(error) / temperature**2


def sink_ratio(length: int) -> float:
    """``‖ΔP V‖₂/‖ΔS‖₂‖V‖₂`` of T tokens that look at their own key and, by half, at a sink.

    ``¼ (T − 2 + √T) √T/(T − 1)``, to first order in ΔS and with ΔS, V at their worst; above 1 from
    T = 11 on.
    """
    root = np.sqrt(length)
    return float((length - 2 + root) * root / (4 * (length - 1)))
