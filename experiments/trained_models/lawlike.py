"""Heads of the law, to compare with a trained layer: random subspaces on Gaussian keys."""

import numpy as np
from scipy.optimize import brentq

from sims.attention.attention import softmax

QUERIES = 32
"""Queries at which weights are averaged."""
SHARPEST = 8.0
"""Limit of the logarithm of what multiplies scores."""


def overlap_of(frames: np.ndarray) -> float:
    """Mean of ``‖U_hᵀU_g‖²/d_k`` over pairs of frames (H, d, d_k); one less it is the index."""
    heads, _, width = frames.shape
    joined = np.concatenate(list(frames), axis=1)
    total = ((joined.T @ joined) ** 2).sum() / width
    return float((total - heads) / (heads * (heads - 1)))


def mix_frames(
    rng: np.random.Generator, heads: int, dimension: int, width: int, overlap: float
) -> np.ndarray:
    """Random frames (H, d, d_k) whose mean overlap is a given one, or the Haar frames' if less.

    Each is a basis of ``√(1 − s) A + √s A_h`` with Gaussian A and A_h.
    """
    normal = rng.normal(size=(heads + 1, dimension, width))

    def mixed(share: float) -> np.ndarray:
        return np.linalg.qr((1 - share) ** 0.5 * normal[:1] + share**0.5 * normal[1:]).Q

    if overlap_of(mixed(1.0)) > overlap:
        return mixed(1.0)
    share = brentq(lambda share: overlap_of(mixed(share)) - overlap, 0.0, 1.0, xtol=1e-3)
    return mixed(share)


def shared_keys(weights: np.ndarray) -> np.ndarray:
    """``Σ_i w_hi w_gi`` (…, H, H), means over queries, of weights (…, H, query, key)."""
    rows = weights.reshape(*weights.shape[:-2], -1)
    return rows @ rows.swapaxes(-1, -2) / weights.shape[-2]


def selectivity(weights: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
    """n_eff/n (…, H), means over queries, of weights (…, H, query, key).

    n is that of all keys, or of those that each query sees, (query,).
    """
    effective = 1 / (weights**2).sum(-1)
    return (effective / (weights.shape[-1] if keys is None else keys)).mean(-1)


def shared_weights(
    rng: np.random.Generator, frames: np.ndarray, keys: int, share: float
) -> np.ndarray:
    """:func:`shared_keys` of softmax heads, (H, H), on isotropic keys and queries with one map.

    Args:
        rng: of keys and queries.
        frames: U, (H, d, d_k).
        keys: their number n.
        share: mean n_eff/n of the heads, to which the common temperature is set.
    """
    projected = rng.normal(size=(QUERIES + keys, frames.shape[1])) @ frames
    scores = projected[:, :QUERIES] @ projected[:, QUERIES:].swapaxes(1, 2)

    def attend(log_scale: float) -> np.ndarray:
        return softmax(np.exp(log_scale) * scores)

    def excess(log_scale: float) -> float:
        return float(selectivity(attend(log_scale)).mean() - share)

    return shared_keys(attend(brentq(excess, -SHARPEST, SHARPEST, xtol=1e-3)))
