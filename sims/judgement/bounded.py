"""Equivalence where an effect carries, beside its Monte Carlo error, a bound on a bias."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sims.judgement.decide import equivalence
from sims.judgement.settle import Finding, Names


def bounded_equivalence(
    effects: Any,
    errors: Any,
    bounds: Any,
    *,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: Any = False,
) -> Finding:
    """Whether every effect is within ±margin of zero, wherever in its bound it lies.

    A bound such as quadrature's is no standard error: it is the same in every batch and more
    replicates do not lower it. So it comes off the room either way: an effect is inside if it is
    with the bound added to it, and outside if it is with the bound taken from it.

    Args:
        effects: one a point.
        errors: their MCSE.
        bounds: ≥ 0, one a point: how far off an effect may be for reasons that are not random.
        margin: δ ≥ 0, as the rest is in :func:`~sims.judgement.equivalence`.
        level: simultaneous confidence.
        batches: B, one number or one a point.
        replicates: replicates behind a point (the fewest).
        points: the point or points behind each effect.
        fixed: the number of batches was fixed before the run.
    """
    effects, bounds = (np.ravel(np.asarray(a, float)) for a in (effects, bounds))

    def decide(size: np.ndarray) -> Finding:
        return equivalence(
            np.copysign(size, effects),
            errors,
            margin=margin,
            level=level,
            batches=batches,
            replicates=replicates,
            points=points,
            fixed=fixed,
        )

    nearest = decide(np.maximum(np.abs(effects) - bounds, 0.0))
    if nearest.verdict == "refuted":
        return nearest
    farthest = decide(np.abs(effects) + bounds)
    if farthest.verdict != "refuted":
        return farthest
    # Outside or not, depending on where in its bound an effect lies: replicates cannot tell.
    reason = "within their bounds effects may lie on either side of the margin"
    return replace(
        farthest, verdict="inconclusive", reason=reason, p_value=nearest.p_value, needs={}
    )
