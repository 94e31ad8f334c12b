"""Means of iid batches and functions of them, each with its Monte Carlo standard error (MCSE).

Batches come first: an array (B, …) holds B iid estimates of the same expectation. A function of
several expectations, such as a ratio, is estimated by *pseudo-values*: one per batch, whose mean is
the estimate and whose spread gives its MCSE as if they were iid. No JAX.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

Batches = Mapping[str, np.ndarray]
"""Name of an expectation to its batch estimates (B, …) or their means (…)."""


def mcse(values: np.ndarray) -> np.ndarray:
    """Monte Carlo standard error ``s/√B`` of the mean of iid batches (B, …); s has ddof 1.

    NaN for a single batch.
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    # ``std`` looks at so much first that for small arrays it takes twice as long.
    gaps = values - values.mean(0)
    count = len(values)
    return np.asarray(np.sqrt((gaps * gaps).sum(0) / (count * (count - 1))))


def not_finite(values: np.ndarray) -> int:
    """Number of NaN or infinite values in batches (B, …), ignoring missing entries.

    An entry is missing if it is NaN in every batch while others are not.
    """
    if np.isfinite(values.sum()):  # of a sum that is, all are
        return 0
    bad = ~np.isfinite(values)
    absent = np.isnan(values).all(axis=0)
    return int(bad.sum() if absent.all() else bad[:, ~absent].sum())


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean of iid batches (B,) and its MCSE."""
    return float(values.mean()), float(mcse(values))


def skewness(values: np.ndarray) -> np.ndarray:
    """Skewness ``g₁/√B`` of the mean of iid batches (B, …), g₁ = m₃/m₂^{3/2} that of the batches.

    It is 0 where the batches do not vary.
    """
    gaps = values - values.mean(axis=0)
    spread = (gaps**2).mean(axis=0) ** 1.5 * np.sqrt(len(values))
    return np.asarray((gaps**3).mean(axis=0) / np.where(spread > 0, spread, np.inf))


def dependence_p(values: np.ndarray) -> np.ndarray:
    """p-value of independence of batches (B, …) against positive correlation of neighbours.

    It uses ranks, so that it is valid for any distribution; NaN where batches do not vary.
    """
    from scipy.stats import rankdata  # slow to load

    ranks = rankdata(values, axis=0)
    count = len(values)
    gaps = ranks - ranks.mean(0)
    with np.errstate(invalid="ignore"):
        correlation = (gaps[1:] * gaps[:-1]).sum(0) / (gaps * gaps).sum(0)
    # As of a random permutation: mean −1/B, variance (B − 1)²/(B²(B + 1)).
    return np.asarray(ndtr(-(count * correlation + 1) * (count + 1) ** 0.5 / (count - 1)))


def ratio(top: np.ndarray, bottom: np.ndarray, axis: int = 0) -> np.ndarray:
    """Ratio of two means over batches, as pseudo-values along ``axis``, to first order."""
    scale = bottom.mean(axis, keepdims=True)
    quotient = top.mean(axis, keepdims=True) / scale
    return np.asarray(quotient + (top - quotient * bottom) / scale)


def falls(values: np.ndarray, later: Any, earlier: Any) -> np.ndarray:
    """Relative falls ``1 − later/earlier`` of means, as pseudo-values (N, B, …).

    Args:
        values: batches of N problems, (N, B, …, K).
        later: index of the K, or several that broadcast with ``earlier``.
        earlier: index of those that the falls are relative to.
    """
    return 1 - ratio(values[..., later], values[..., earlier], axis=1)


def jackknife(batches: Batches, statistic: Callable[[Batches], np.ndarray]) -> np.ndarray:
    """Jackknife pseudo-values ``B·T − (B − 1)·T₍₋b₎``, (B, …), of a function T of batch means.

    Their mean is the estimate with its bias of order 1/B removed.

    Args:
        batches: estimates (B, …) of each expectation, all of the same B ≥ 2.
        statistic: function from the means (…) to T. It is called with the means, and with a leading
            axis of B leave-one-out means, so it must act on the last axes only.

    Source: Efron & Stein (1981), doi:10.1214/aos/1176345462.
    """
    count = len(next(iter(batches.values())))
    left_out = {k: (v.sum(0) - v) / (count - 1) for k, v in batches.items()}
    full = statistic({k: v.mean(0) for k, v in batches.items()})
    return np.asarray(count * full - (count - 1) * np.asarray(statistic(left_out)))
