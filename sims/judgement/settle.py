"""The three-valued decision that the tests on sampled effects share.

With margin δ fixed before the run, and the *room* of an effect how far it lies inside the margin:

- **supported**: at *every* point the test that the effect is outside rejects. Each is made at the
  full ``1 − level``: all must reject, so none needs a share of it (intersection–union);
- **refuted**: at *some* point the effect is outside, at ``(1 − level)/k`` for k points (Bonferroni:
  valid however points that share draws depend on each other);
- **inconclusive**: neither, or data are missing. Missing data never support anything.

So a true claim is refuted, or a false one supported, with probability at most ``1 − level``. Tests
invert t intervals over iid batches, whose number is fixed before the run. One-sided tests use the
two-sided interval, which is a little strict. Skewness of the batches is corrected for; an estimate
of fewer than 64 batches, which do not show it, decides nothing.

An effect that comes from batches and does not vary between them supports nothing, since draws used
again look like certainty. It may refute.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from sims.effects import Effect
from sims.errors import InputError
from sims.judgement.intervals import (
    fixed_half_width,
    fixed_p,
    skewed_distance,
    skewed_half_width,
)

if TYPE_CHECKING:
    from sims.study.schema import ClaimSpec

Answer = Literal["supported", "refuted", "inconclusive"]
VERDICTS = get_args(Answer)
"""What a claim may come to."""
FEWEST = 64
"""Batches from which on their skewness can be told from chance, and so be corrected: fewer decide
nothing. Error rates at the level that Holm asks for were measured from here on."""
FROZEN = 1e-10
"""A Monte Carlo error below this share of effect and margin is that of values that do not vary:
well above the rounding of a mean (1e-16), far below any error of a simulation that is sampled."""
MOST = 1e9
"""Largest growth of the number of batches that is searched: beyond what any run affords."""
AFFORDABLE = 1e4
"""Growth of the number of replicates from which on no number of them is said to decide."""


@dataclass(frozen=True)
class Rule:
    """How a claim is to be decided, as its file says.

    Attributes:
        test: a key of :data:`sims.judgement.tests.TESTS`.
        margin: δ ≥ 0, in the unit of the effects.
        level: confidence of the verdict, in (0, 1), simultaneous over the effects.
        replicates: the fewest replicates of the experiment, for effects that do not say.
        expected: slope stated, for rates.

    Raises:
        InputError: the rule lacks the number that its test is about, or has one that the test does
            not use.
    """

    test: str
    margin: float
    level: float
    replicates: int = 0
    expected: float | None = None

    def __post_init__(self) -> None:
        states = self.test == "rate"
        if states != (self.expected is not None):
            allowed = f"a number, for a {self.test}" if states else f"nothing, for a {self.test}"
            raise InputError("expected", self.expected, allowed)

    @classmethod
    def of(cls, claim: "ClaimSpec", replicates: int = 0) -> "Rule":
        """The rule of a claim, whose effects rest on so many replicates."""
        return cls(
            claim.test,
            claim.margin,
            claim.level,
            replicates,
            claim.expected,
        )


@dataclass(frozen=True)
class Finding:
    """The outcome of a decision; the fields have the meaning that they have in ``Verdict``."""

    verdict: str
    effect: float | None
    interval: tuple[float, float] | None
    replicates: int
    reason: str
    p_value: float | None = None
    needs: dict[str, float] = field(default_factory=dict)


def missing(values: ArrayLike, rule: Rule) -> Finding:
    """The finding where numbers are missing: inconclusive, with their count as its reason."""
    values = np.ravel(np.asarray(values, float))
    reason = f"{(~np.isfinite(values)).sum()} of {values.size} values are missing"
    if not values.size:
        reason = "missing: no effect, or none where the claim applies"
    return Finding("inconclusive", None, None, rule.replicates, reason, 1.0)


def settle(
    effects: Sequence[Effect],
    rule: Rule,
    room: np.ndarray,
    words: str,
    *,
    strict: bool = False,
    fewest: int = FEWEST,
) -> Finding:
    """The three-valued decision on effects with that room.

    A bound on an error that is not random is the same in every batch: an effect is inside if it is
    with the bound against it, and outside if it is with the bound in its favour. Replicates do not
    lower it.

    Args:
        effects: k of them.
        rule: its margin and level.
        room: how far each effect lies inside the margin (k,), in the unit of the effects.
        words: what is claimed.
        strict: whether an effect without error has to be inside by more than 0.
        fewest: batches from which on an effect may decide.

    Raises:
        InputError: an effect that is not sampled has an error.
    """
    values, errors, batches, skewness, bounds = np.array(
        [(e.value, e.error, e.batches, e.skewness, e.bound) for e in effects], float
    ).T
    if (errors[np.isinf(batches)] > 0).any():
        raise InputError("error of an effect", errors.max(), "0 where batches is inf (not sampled)")
    k, alpha = len(effects), 1 - rule.level
    sound = np.isfinite(values) & np.isfinite(errors) & (errors >= 0) & (batches >= 2)
    if not sound.all():
        return missing(np.where(sound, values, np.nan), rule)
    sampled = np.isfinite(batches)
    count = np.where(sampled, batches, 2)
    frozen = sampled & (errors <= FROZEN * (np.abs(values) + rule.margin))
    # How many times as many batches an effect takes before it may decide anything.
    short = fewest / count
    barred = sampled & (short > 1)

    def half_width(share: np.ndarray | float, growth: np.ndarray | float = 1.0) -> np.ndarray:
        """At an error rate ``share``, had every effect ``growth`` times as many batches."""
        error, b = errors / np.sqrt(growth), count * growth
        half = fixed_half_width(error, b - 1, share)
        return skewed_half_width(half, error, skewness / np.sqrt(growth))

    def p_of(distance: np.ndarray) -> np.ndarray:
        away = skewed_distance(distance, errors, skewness)
        return np.where(barred | (distance <= 0), 1.0, fixed_p(away, errors, count - 1))

    least, most = room - bounds, room + bounds
    single, joint = half_width(alpha), half_width(alpha / k)
    settled = (least - single > 0 if strict else least - single >= 0) & ~frozen & ~barred
    beyond = np.where(barred, -np.inf, -most - joint)
    refuted, supported = bool((beyond > 0).any()), bool(settled.all())
    verdict = "refuted" if refuted else "supported" if supported else "inconclusive"
    # A deterministic effect at its margin is settled, not at a positive distance.
    inside = np.where(settled & (errors == 0), 0.0, p_of(least))
    p_inside = float(np.max(np.where(frozen, 1.0, inside)))
    p_outside = float(min(1.0, k * np.min(p_of(-most))))
    p = {"supported": p_inside, "refuted": p_outside}.get(verdict, min(p_inside, p_outside))
    # One point outside settles the claim: no other needs more if one seems to be.
    shown = most if (most < 0).any() else least
    outside = shown < 0
    worst = int(np.argmax(beyond) if refuted else np.argmin(shown - single))
    of = f" (worst of {k} points shown)" if k > 1 else ""
    asking, needed = np.zeros(k, bool), count
    if supported:
        reason = words + of
    elif refuted:
        reason = f"not {words}: {(beyond > 0).sum()} of {k} wholly outside" + of
    elif (~barred & (shown < -joint)).any():
        reason = "within their bounds effects may lie on either side of the margin"
    elif frozen.any():
        reason = (
            f"{words}: {frozen.sum()} of {k} values do not vary between batches, which supports "
            "nothing"
        )
    else:
        # What settles a point: its own interval on the inside, the joint one on the outside.
        factor = _growth(half_width, np.where(shown > 0, alpha, alpha / k), np.abs(shown))
        factor = np.maximum(factor, np.where(barred, short, 1.0))
        still = outside if outside.any() else ~settled
        decisive = float(factor[still].min() if outside.any() else factor[still].max())
        asking, needed = still & sampled & (factor <= decisive), factor * count
        open_at = f"open at {(~settled).sum()} of {k}"
        if barred.any():
            open_at += f" ({barred.sum()} with fewer than {fewest} batches)"
        reason = f"{words}: {open_at}; {_needed(decisive, rule.replicates)}"
    needs: dict[str, float] = {}
    for effect, asks, of_effect in zip(effects, asking, needed, strict=True):
        for name in effect.points if asks else ():
            needs[name] = max(needs.get(name, 0.0), float(of_effect))
    # What is reported is the estimate, and its bound as part of its interval.
    value = effects[worst].value
    half = float((single if supported else joint)[worst] + bounds[worst])
    # So few batches that nothing can be excluded have no interval.
    known = (value - half, value + half) if np.isfinite(half) else None
    return Finding(verdict, value, known, rule.replicates, reason, p, needs)


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
