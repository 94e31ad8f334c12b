"""Sums of subsets of random items: how far they reach, how dense they lie, how often one is missed.

Items are products ``x_k = u_kv_k`` of two U[−1, 1], of density ``−½ ln|x|``, E x² = 1/9. A target
entry w is missed by more than ε if no subset sums to within ε of it. Derivations:
docs/theory/subset_sums.md.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise
from scipy.special import expit


def reach(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest subset sum of items (…, n')."""
    return np.minimum(items, 0.0).sum(-1), np.maximum(items, 0.0).sum(-1)


def tilt(items: np.ndarray, entry: np.ndarray) -> np.ndarray:
    """t of ``Σ x_k/(1 + e^{−t x_k}) = w``, (…,), for w inside the reach; ±∞ outside.

    The left side rises in t.
    """
    entry = np.asarray(entry, float) * np.ones(items.shape[:-1])
    low, high = reach(items)
    x = items.reshape(-1, items.shape[-1])
    w = entry.ravel()

    def excess(t: np.ndarray, row: np.ndarray) -> np.ndarray:
        return np.asarray((x[row] * expit(t[..., None] * x[row])).sum(-1) - w[row])

    bound = 1e4 / np.maximum(np.abs(x).max(-1, initial=0.0), 1e-300)
    root = elementwise.find_root(excess, (-bound, bound), args=(np.arange(len(w)),))
    outside = np.copysign(np.inf, entry - (low + high) / 2)
    return np.where((entry > low) & (entry < high), root.x.reshape(entry.shape), outside)


def density(items: np.ndarray, entry: np.ndarray) -> np.ndarray:
    """Number of subset sums per unit of length at w, by the saddlepoint; 0 outside the reach."""
    t = tilt(items, entry)
    inside = np.isfinite(t)
    t = np.where(inside, t, 0.0)
    p = expit(t[..., None] * items)
    count = np.logaddexp(0.0, t[..., None] * items).sum(-1) - t * entry
    spread = np.sqrt(2 * np.pi * (items**2 * p * (1 - p)).sum(-1))
    return np.where(inside, np.exp(count) / spread, 0.0)


def miss_probability(items: np.ndarray, entry: np.ndarray, tolerance: ArrayLike) -> np.ndarray:
    """P(no subset sum within ε of w) given the items: ``e^{−2ελ}``, or by the distance to reach.

    Args:
        items: (draws, n').
        entry: w, (draws,).
        tolerance: ε, any shape; it comes first in the result.
    """
    eps = np.asarray(tolerance, float)[..., None]
    low, high = reach(items)
    outside = np.maximum(np.maximum(low - entry, entry - high), 0.0)
    return np.where(outside > 0, outside > eps, np.exp(-2 * eps * density(items, entry)))


def products(rng: np.random.Generator, draws: int, count: int) -> np.ndarray:
    """Items (draws, n') of a pruned source: products of two U[−1, 1]."""
    return np.asarray(rng.uniform(-1, 1, (draws, count)) * rng.uniform(-1, 1, (draws, count)))


def log_error(items: np.ndarray, entry: np.ndarray, entries: ArrayLike) -> np.ndarray:
    """E log of the largest error of N independent entries, over drawn items (draws, n').

    With p(ε) the probability of a miss, ``P(largest ≤ ε) = (1 − p)^N``; integrated in log ε. One
    number for each N.
    """
    log = np.linspace(-40.0, 5.0, 301)
    miss = miss_probability(items, entry, np.exp(log)).mean(-1)
    count = np.asarray(entries, float)[..., None]
    above = -np.expm1(count * np.log1p(-np.minimum(miss, 1 - 1e-16)))
    return np.asarray(log[0] + np.trapezoid(above, log, axis=-1))
