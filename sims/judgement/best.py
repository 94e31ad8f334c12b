"""Which of several candidates is best, from batches that all candidates share."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from sims.errors import InputError
from sims.estimates import mcse, skewness
from sims.judgement.decide import bound
from sims.judgement.evidence import Evidence
from sims.judgement.settle import Finding

Choice = tuple[ArrayLike, int]
"""Values (B, k) of the candidates, and the place of the one that is claimed to be best."""


def optimal_set(values: ArrayLike, level: float) -> np.ndarray:
    """Which candidates may have the least mean: those that no rival beats significantly.

    A rival beats one if the paired difference of their batches is above zero by more than its
    Student quantile, one-sided and simultaneous over the k − 1 rivals (Bonferroni): the candidate
    with the least expectation is in the set with probability ``level`` at least.

    Args:
        values: finite, (B, k), iid over batches, B ≥ 2 and k ≥ 2.
        level: in (0, 1).

    Returns:
        (k,) of bool.

    Raises:
        InputError: values are not finite and (B, k).
    """
    values = _shaped(values)
    if not np.isfinite(values).all():
        raise InputError("values", "missing ones", "finite")
    batches, count = values.shape
    gaps = values[:, :, None] - values[:, None, :]
    low = gaps.mean(0) - stdtrit(batches - 1, 1 - (1 - level) / (count - 1)) * mcse(gaps)
    return np.asarray(~(low > 0).any(axis=1))


def near_optimal(
    choices: Sequence[Choice], *, margin: float, level: float, replicates: int
) -> Finding:
    """Whether the candidate that is claimed to be best is near the best, in every case.

    Its mean is at most ``1 + margin`` times that of each rival. Each rival is a
    :func:`~sims.judgement.bound` on ``mean/mean of rival − 1``, tested by the paired batches of
    ``value − (1 + margin)·rival``, with t intervals: supported if every rival in every case passes
    at the full level (intersection–union), refuted if some rival fails at a share of it
    (Bonferroni over rivals and cases).

    Args:
        choices: one a case, named before the values were looked at. Means must be positive.
        margin: ≥ 0, relative. At 0 two equal candidates leave the claim open.
        level: of the verdict.
        replicates: behind a value (the fewest).

    Returns:
        A finding with the worst excess over a rival, relative. Inconclusive if a value is missing.

    Raises:
        InputError: values are not (B, k), or a mean is not positive.
    """
    effects, errors, batches, skewed = [], [], [], []
    for candidates, place in choices:
        values = _shaped(candidates)
        if (values.mean(0) <= 0).any():
            raise InputError("mean of a candidate", values.mean(0).min(), "positive")
        own, rivals = values[:, [place]], np.delete(values, place, axis=1)
        contrast = (own - (1 + margin) * rivals) / rivals.mean(0)
        effects.append(contrast.mean(0) + margin)
        errors.append(mcse(contrast))
        skewed.append(skewness(contrast))
        batches.append(np.full(rivals.shape[1], len(values)))
    evidence = Evidence(
        np.concatenate(effects), np.concatenate(errors), np.concatenate(batches), replicates,
        fixed=True, skewness=np.concatenate(skewed),
    )  # fmt: skip
    return bound(evidence, margin=margin, level=level)


def _shaped(values: ArrayLike) -> np.ndarray:
    values = np.asarray(values, float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise InputError("values", values.shape, "(B, k) with B and k at least 2")
    return values
