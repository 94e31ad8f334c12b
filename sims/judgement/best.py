"""Which of several candidates is best, from batches that all candidates share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from sims.errors import InputError
from sims.judgement.decide import Finding

Choice = tuple[np.ndarray, int, Sequence[Any]]
"""Values (B, k) of the candidates, the place of the one said to be best, and labels (k,)."""


def optimal_set(values: Any, level: float) -> np.ndarray:
    """Which candidates may have the least mean: those that no rival beats significantly.

    A rival beats one if the paired difference of their batches is above zero by more than its
    Student quantile, one-sided and simultaneous over the k − 1 rivals (Bonferroni): the candidate
    with the least expectation is in the set with probability ``level`` at least.

    Args:
        values: (B, k), iid over batches, B ≥ 2 and k ≥ 2.
        level: in (0, 1).

    Returns:
        (k,) of bool.
    """
    low = _contrasts(values, level, 1)[1]
    return np.asarray(~(low > 0).any(axis=1))


def in_optimal_set(
    choices: Sequence[Choice], *, margin: float, level: float, replicates: int
) -> Finding:
    """Whether the candidates said to be best are in the sets of optima, in every case.

    Supported: each is in its :func:`optimal_set`, and each set leaves out some label. Refuted: one
    is outside even with contrasts simultaneous over all cases. Inconclusive: outside only by
    the weaker standard, or a set leaves out nothing, so that being in it says nothing.

    Args:
        choices: one a case.
        margin: recorded; the decision has none.
        level: of each set, and of all together where it refutes.
        replicates: behind a value (the fewest).

    Returns:
        A finding with the worst relative contrast of a claimed best with a rival. Its p-value is,
        if supported, the level at which every set still leaves something out (being in a set that
        leaves out nothing by more than chance would say nothing); if refuted, that of the
        exclusion.
    """
    worst, outside, blunt = (0.0, -np.inf, np.inf), 0, 0
    sharp, beaten = 0.0, 1.0
    for values, place, labels in choices:
        inside = optimal_set(values, level)
        p = _beaten(values)
        left_out = min(max(p[[x == label for x in labels]]) for label in set(labels))
        sharp, beaten = max(sharp, left_out), min(beaten, float(p[place]))
        outside += not inside[place]
        kept = {label for label, stays in zip(labels, inside, strict=True) if stays}
        blunt += kept == set(labels)
        effect, low, high = (part[place] for part in _contrasts(values, level, len(choices)))
        rival = int(np.nanargmax(low))
        if low[rival] > worst[1]:
            worst = float(effect[rival]), float(low[rival]), float(high[rival])
    cases = len(choices)
    verdict = "refuted" if worst[1] > 0 else "inconclusive" if outside or blunt else "supported"
    reason = (
        f"the best claimed is in the set of optima in {cases - outside} of {cases} cases; the set "
        f"leaves something out in {cases - blunt} (worst contrast with a rival shown)"
    )
    p_value = beaten * cases if verdict == "refuted" else sharp
    return Finding(
        verdict, worst[0], worst[1:], margin, level, replicates, reason, min(p_value, 1.0)
    )


def _beaten(values: np.ndarray) -> np.ndarray:
    """The level at which some rival beats each candidate, Bonferroni over rivals, (k,)."""
    batches, count = values.shape
    gaps = values[:, :, None] - values[:, None, :]
    error = gaps.std(0, ddof=1) / np.sqrt(batches)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stdtr(batches - 1, -gaps.mean(0) / error)
    return np.minimum((count - 1) * np.nanmin(p, axis=1), 1.0)


def _contrasts(values: Any, level: float, cases: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value i less value j over the mean of j, (k, k), and its interval; NaN on the diagonal."""
    values = np.asarray(values, float)
    if values.ndim != 2 or min(values.shape) < 2 or not np.isfinite(values).all():
        raise InputError("values", values.shape, "finite, (B, k) with B and k at least 2")
    batches, count = values.shape
    gaps = (values[:, :, None] - values[:, None, :]) / values.mean(0)
    gaps[:, np.arange(count), np.arange(count)] = np.nan
    half = stdtrit(batches - 1, 1 - (1 - level) / ((count - 1) * cases))
    half = half * gaps.std(0, ddof=1) / np.sqrt(batches)
    effect = gaps.mean(0)
    return effect, effect - half, effect + half
