"""The three-valued decision that all claims share: see :mod:`sims.judgement.decide`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sims.errors import InputError
from sims.judgement.intervals import fixed_half_width, fixed_p, sequence_half_width, sequence_p

VERDICTS = ("supported", "refuted", "inconclusive")
Names = str | tuple[str, ...]
FROZEN = 1e-10
"""A Monte Carlo error below this share of effect and margin is that of values that do not vary."""


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
    effects: Any,
    errors: Any,
    room: Any,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None,
    *,
    words: str,
    fixed: Any,
    strict: bool = False,
) -> Finding:
    """The three-valued decision, from how far each effect lies inside its margin (``room``).

    ``words`` says what is claimed; under ``strict`` an effect without error has to be inside by
    more than 0. All the rest is as in :mod:`sims.judgement.decide`.
    """
    if not 0 < level < 1 or not np.isfinite(margin):
        raise InputError("level, margin", (level, margin), "level in (0, 1), a finite margin")
    effects, errors, room, batches, fixed = np.broadcast_arrays(
        *(np.ravel(np.asarray(a, float)) for a in (effects, errors, room, batches, fixed))
    )
    sampled = np.isfinite(batches)
    if (errors[~sampled] > 0).any():
        raise InputError("errors", errors[~sampled].max(), "0 where batches is inf (not sampled)")
    sound = np.isfinite(effects) & np.isfinite(errors) & (errors >= 0) & (batches >= 2)
    if not effects.size or not sound.all():
        return missing(np.where(sound, effects, np.nan), margin, level, replicates)
    if points is not None and len(points) != effects.size:
        raise InputError("points", len(points), f"{effects.size}, one an effect")
    k, alpha = effects.size, 1 - level
    count = np.where(sampled, batches, 2)
    frozen = sampled & (errors <= FROZEN * (np.abs(effects) + abs(margin)))

    def half_width(a: Any, more: Any = 1.0) -> np.ndarray:
        """At a share ``a``, and had every point so many times as many batches."""
        fewer, b = errors / np.sqrt(more), count * more
        return np.where(fixed, fixed_half_width(fewer, b - 1, a), sequence_half_width(fewer, b, a))

    def p_of(distance: np.ndarray) -> np.ndarray:
        student = fixed_p(distance, errors, count - 1)
        return np.where(fixed, student, sequence_p(distance, errors, count))

    single, joint = half_width(alpha), half_width(alpha / k)
    settled = (room - single > 0 if strict else room - single >= 0) & ~frozen
    beyond = -room - joint
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
        # One point outside settles the claim: no other needs more if one seems to be.
        seems = left & (room < 0)
        decisive = float(factor[seems].min() if seems.any() else factor[left].max())
        reason = f"{words}: open at {int(left.sum())} of {k}; " + _needed(decisive, replicates)
        asking = seems & (factor <= decisive) if seems.any() else left
        for index, name in enumerate(points or ()):
            for part in (name,) if isinstance(name, str) else name:
                if asking[index] and sampled[index]:
                    needs[part] = max(needs.get(part, 0.0), float(factor[index] * batches[index]))
    interval = float(effects[worst] - half), float(effects[worst] + half)
    # So few batches that nothing can be excluded have no interval.
    shown = interval if np.isfinite(half) else None
    return Finding(
        verdict, float(effects[worst]), shown, margin, level, replicates, reason, p, needs
    )


MOST = 1e9
"""Growth beyond which nothing is asked for."""


def _growth(half_width: Callable[..., np.ndarray], share: Any, room: np.ndarray) -> np.ndarray:
    """How many times as many batches a point needs for its interval to fit into its room."""
    low, high = np.zeros_like(room), np.full_like(room, np.log(MOST))
    for _ in range(40):
        middle = (low + high) / 2
        fits = half_width(share, np.exp(middle)) <= room
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return np.where(room > 0, np.exp(high), MOST)


def _needed(factor: float, replicates: int) -> str:
    """How many replicates would decide, if the effects stay where they are."""
    if not factor < 1e4:
        return "an effect lies at the margin: no affordable number of replicates decides"
    digits = 10.0 ** max(len(str(int(factor * replicates))) - 2, 0)
    return f"about {int(np.ceil(factor * replicates / digits) * digits):,} replicates would decide"


def missing(values: Any, margin: float, level: float, replicates: int) -> Finding:
    """What is found where numbers are missing: nothing."""
    values = np.ravel(np.asarray(values, float))
    bad = int((~np.isfinite(values)).sum())
    reason = f"{bad} of {values.size} values are missing" if values.size else "missing: no data"
    return Finding("inconclusive", None, None, margin, level, replicates, reason, 1.0)
