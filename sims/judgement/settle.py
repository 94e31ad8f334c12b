"""The three-valued decision that all claims share: see :mod:`sims.judgement.decide`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from sims.errors import InputError
from sims.judgement.evidence import Evidence
from sims.judgement.intervals import (
    fixed_half_width,
    fixed_p,
    sequence_half_width,
    sequence_p,
    skewed_distance,
    skewed_half_width,
)

VERDICTS = ("supported", "refuted", "inconclusive")
"""What a claim may come to."""
FROZEN = 1e-10
"""A Monte Carlo error below this share of effect and margin is that of values that do not vary:
well above the rounding of a mean (1e-16), far below any error of a simulation that is sampled."""


@dataclass(frozen=True)
class Finding:
    """The outcome of a decision; the fields have the meaning that they have in ``Verdict``."""

    verdict: str
    effect: float | None
    interval: tuple[float, float] | None
    margin: float
    level: float
    replicates: int
    reason: str
    p_value: float | None = None
    needs: dict[str, float] = field(default_factory=dict)


def settle(
    evidence: Evidence,
    room: Callable[[np.ndarray], np.ndarray],
    nearest: np.ndarray,
    farthest: np.ndarray,
    *,
    margin: float,
    level: float,
    words: str,
    strict: bool = False,
) -> Finding:
    """The three-valued decision of every claim on effects; see :mod:`sims.judgement.decide`.

    A bound on an error that is not random is the same in every batch, and replicates do not lower
    it, unless it is said to be narrowing: then twice as many batches are asked for. So it comes off
    the room either way: an effect is inside if it is with the bound against it, and outside if it
    is with the bound in its favour.

    Args:
        evidence: the effects and their errors.
        room: from effects (k,) to how far each lies inside the margin (k,), in their unit.
        nearest: (k,), the effects as favourable to the claim as their bounds allow.
        farthest: (k,), as unfavourable.
        margin: δ, finite, in the unit of the effects.
        level: confidence of the verdict, in (0, 1).
        words: what is claimed.
        strict: whether an effect without error has to be inside by more than 0.

    Raises:
        InputError: level or margin are out of range.
    """
    if not 0 < level < 1 or not np.isfinite(margin):
        raise InputError("level, margin", (level, margin), "level in (0, 1), a finite margin")

    def decision(effects: np.ndarray) -> Finding:
        return _settle(evidence, effects, room(effects), margin, level, words, strict)

    if not np.any(evidence.bounds):
        return decision(np.asarray(evidence.effects))
    favourable = decision(nearest)
    open_outside = favourable.verdict == "inconclusive" and bool((room(nearest) < 0).any())
    if favourable.verdict == "refuted" or open_outside:
        # In the second case an effect seems outside wherever in its bound it lies, and more
        # replicates can tell.
        return favourable
    finding = decision(farthest)
    if finding.verdict != "refuted":
        return finding
    # Outside or not, depending on where in its bound an effect lies: replicates cannot tell,
    # unless they narrow the bound.
    reason = "within their bounds effects may lie on either side of the margin"
    asking = np.asarray(evidence.narrowing) & (room(nearest) >= 0) & (room(farthest) < 0)
    needs: dict[str, float] = {}
    for index in np.flatnonzero(asking):
        for name in evidence.points[index] if evidence.points else ():
            needs[name] = 2 * float(np.asarray(evidence.batches)[index])
    return replace(
        finding, verdict="inconclusive", reason=reason, p_value=favourable.p_value, needs=needs
    )


def _settle(
    evidence: Evidence,
    effects: np.ndarray,
    room: np.ndarray,
    margin: float,
    level: float,
    words: str,
    strict: bool,
) -> Finding:
    """The decision on effects (k,) with that room (k,), of Monte Carlo errors alone."""
    errors, batches = np.asarray(evidence.errors), np.asarray(evidence.batches)
    replicates = evidence.replicates
    sampled = np.isfinite(batches)
    sound = np.isfinite(effects) & np.isfinite(errors) & (errors >= 0) & (batches >= 2)
    if not effects.size or not sound.all():
        return missing(np.where(sound, effects, np.nan), margin, level, replicates)
    k, alpha = effects.size, 1 - level
    count = np.where(sampled, batches, 2)
    frozen = sampled & (errors <= FROZEN * (np.abs(effects) + abs(margin)))
    skewness = np.asarray(evidence.skewness)
    # How many times as many batches an effect takes before it may decide anything.
    short = evidence.fewest / count
    barred = sampled & (short > 1)

    def half_width(share: np.ndarray | float, growth: np.ndarray | float = 1.0) -> np.ndarray:
        """At an error rate ``share``, had every effect ``growth`` times as many batches."""
        error, b = errors / np.sqrt(growth), count * growth
        student = fixed_half_width(error, b - 1, share)
        half = np.where(evidence.fixed, student, sequence_half_width(error, b, share))
        return skewed_half_width(half, error, skewness / np.sqrt(growth))

    def p_of(distance: np.ndarray) -> np.ndarray:
        away = skewed_distance(distance, errors, skewness)
        student = fixed_p(away, errors, count - 1)
        p = np.where(evidence.fixed, student, sequence_p(away, errors, count))
        return np.where(barred | (distance <= 0), 1.0, p)

    single, joint = half_width(alpha), half_width(alpha / k)
    settled = (room - single > 0 if strict else room - single >= 0) & ~frozen & ~barred
    beyond = np.where(barred, -np.inf, -room - joint)
    refuted, supported = bool((beyond > 0).any()), bool(settled.all())
    verdict = "refuted" if refuted else "supported" if supported else "inconclusive"
    # A deterministic effect at its margin is settled, not at a positive distance.
    inside = np.where(settled & (errors == 0), 0.0, p_of(room))
    p_inside = float(np.max(np.where(frozen, 1.0, inside)))
    p_outside = float(min(1.0, k * np.min(p_of(-room))))
    p = {"supported": p_inside, "refuted": p_outside}.get(verdict, min(p_inside, p_outside))
    worst = int(np.argmax(beyond) if refuted else np.argmin(room - single))
    half = single[worst] if supported else joint[worst]
    of = f" (worst of {k} points shown)" if k > 1 else ""
    needs: dict[str, float] = {}
    if supported:
        reason = words + of
    elif refuted:
        reason = f"not {words}: {int((beyond > 0).sum())} of {k} wholly outside" + of
    elif frozen.any():
        still = int(frozen.sum())
        reason = (
            f"{words}: {still} of {k} values do not vary between batches, which supports nothing"
        )
    else:
        left = ~settled
        # What settles a point: its own interval on the inside, the joint one on the outside.
        factor = _growth(half_width, np.where(room > 0, alpha, alpha / k), np.abs(room))
        factor = np.maximum(factor, np.where(barred, short, 1.0))
        # One point outside settles the claim: no other needs more if one seems to be.
        seems = left & (room < 0)
        decisive = float(factor[seems].min() if seems.any() else factor[left].max())
        open_at = f"open at {int(left.sum())} of {k}"
        if barred.any():
            open_at += f" ({int(barred.sum())} with fewer than {evidence.fewest} batches)"
        reason = f"{words}: {open_at}; " + _needed(decisive, replicates)
        asking = seems & (factor <= decisive) if seems.any() else left
        for index, names in enumerate(evidence.points or ()):
            for name in names if asking[index] and sampled[index] else ():
                needs[name] = max(needs.get(name, 0.0), float(factor[index] * batches[index]))
    # What is reported is the estimate, and its bound as part of its interval.
    effect = float(np.asarray(evidence.effects)[worst])
    half = float(half + np.broadcast_to(evidence.bounds, effects.shape)[worst])
    # So few batches that nothing can be excluded have no interval.
    known = (effect - half, effect + half) if np.isfinite(half) else None
    return Finding(verdict, effect, known, margin, level, replicates, reason, p, needs)


MOST = 1e9
"""Largest growth of the number of batches that is searched: beyond what any run affords."""
AFFORDABLE = 1e4
"""Growth of the number of replicates from which on no number of them is said to decide."""
NOWHERE = "missing: no effect, or none where the claim applies"
"""The reason of a finding that rests on no effect."""


def _growth(
    half_width: Callable[..., np.ndarray], share: np.ndarray | float, room: np.ndarray
) -> np.ndarray:
    """How many times as many batches a point needs for its interval to fit into its room (k,)."""
    low, high = np.zeros_like(room), np.full_like(room, np.log(MOST))
    for _ in range(40):
        middle = (low + high) / 2
        fits = half_width(share, np.exp(middle)) <= room
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return np.where(room > 0, np.exp(high), MOST)


def _needed(factor: float, replicates: int) -> str:
    """A phrase: how many replicates would decide, if the effects stay where they are."""
    if not factor < AFFORDABLE:
        return "an effect lies at the margin: no affordable number of replicates decides"
    digits = 10.0 ** max(len(str(int(factor * replicates))) - 2, 0)
    return f"about {int(np.ceil(factor * replicates / digits) * digits):,} replicates would decide"


def missing(values: ArrayLike, margin: float, level: float, replicates: int) -> Finding:
    """The finding where numbers are missing: inconclusive, with their count as its reason."""
    values = np.ravel(np.asarray(values, float))
    bad = int((~np.isfinite(values)).sum())
    reason = f"{bad} of {values.size} values are missing" if values.size else NOWHERE
    return Finding("inconclusive", None, None, margin, level, replicates, reason, 1.0)
