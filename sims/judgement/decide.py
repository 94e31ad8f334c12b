"""Deciding a claim from effects and their Monte Carlo errors.

Every function returns a :class:`Finding` with one of three verdicts. With margin δ fixed before
the run:

- **supported**: at *every* point the test that the effect is outside rejects. Each is made at the
  full ``1 − level``: all must reject, so none needs a share of it (intersection–union);
- **refuted**: at *some* point the effect is outside, at ``(1 − level)/k`` for k points (Bonferroni:
  valid however points that share draws depend on each other);
- **inconclusive**: neither, or data are missing. Missing data never support anything.

So a true claim is refuted, or a false one supported, with probability at most ``1 − level``. Tests
invert the confidence sequences of :mod:`sims.judgement.intervals` over iid batches: the rates hold
at whatever moment sampling stops, also when it stops because of the verdict. Where the number of
batches was fixed before the run, ``fixed=True`` takes t intervals, which are narrower. One-sided
tests use the two-sided interval, which is a little strict.

An effect without sampling is declared so, by ``batches = inf``. One that does come from batches
and does not vary between them supports nothing: draws used again look like certainty. It may
refute.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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


def identity(
    gaps: Any,
    *,
    margin: float,
    condition: Any = 1.0,
    level: float = 0.95,
    replicates: int = 0,
) -> Finding:
    """Whether deterministic gaps are all within rounding: ``max |gap|/condition ≤ margin``.

    Args:
        gaps: any shape; relative where the two sides have a scale.
        margin: tolerance, in units of rounding if the gaps are.
        condition: how many times the computation enlarges rounding (its condition number, ≥ 1):
            one number, or one a gap.
        level: not used by the decision, since nothing is random; recorded.
        replicates: how many random cases were tried; recorded.
    """
    gaps = (np.abs(np.asarray(gaps, float)) / np.asarray(condition, float)).ravel()
    if not gaps.size or not np.isfinite(gaps).all():
        return _missing(gaps, margin, level, replicates)
    worst = float(gaps.max())
    verdict = "supported" if worst <= margin else "refuted"
    sign = "≤" if worst <= margin else ">"
    reason = f"largest gap of {gaps.size}: {worst:.2g} {sign} {margin:.2g}"
    return Finding(verdict, worst, (worst, worst), margin, level, replicates, reason, 0.0)


def equivalence(
    effects: Any,
    errors: Any,
    *,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: Any = False,
) -> Finding:
    """Whether every effect is within ±margin of zero.

    Args:
        effects: one a point, e.g. relative gaps between theory and simulation.
        errors: their MCSE; 0 for a deterministic effect (``batches`` inf).
        margin: δ ≥ 0, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point; inf: not sampled, hence without error.
        replicates: replicates behind a point (the fewest).
        points: of the experiment's grid, the point or points behind each effect: what needs more
            replicates if the verdict is open.
        fixed: the number of batches was fixed before the run (all, or one bool a point): t
            intervals, narrower with few batches, instead of confidence sequences.
    """
    return _decide(
        effects, errors, margin - np.abs(np.ravel(np.asarray(effects, float))), margin, level,
        batches, replicates, points, fixed=fixed, words=f"every effect within ±{margin:.3g}",
    )  # fmt: skip


def bound(
    excess: Any,
    errors: Any,
    *,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: Any = False,
) -> Finding:
    """Whether no excess over a bound is larger than the margin.

    Args:
        excess: value − upper bound (or lower bound − value), one a point.
        errors: their MCSE; 0 for a deterministic effect (``batches`` inf).
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point; inf: not sampled, hence without error.
        replicates: replicates behind a point (the fewest).
        points: of the experiment's grid, the point or points behind each effect: what needs more
            replicates if the verdict is open.
        fixed: the number of batches was fixed before the run (all, or one bool a point): t
            intervals, narrower with few batches, instead of confidence sequences.
    """
    return _decide(
        excess, errors, margin - np.ravel(np.asarray(excess, float)), margin, level,
        batches, replicates, points, fixed=fixed, words=f"every excess at most {margin:.3g}",
    )  # fmt: skip


def ordering(
    differences: Any,
    errors: Any,
    *,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: Any = False,
) -> Finding:
    """Whether every difference between neighbours is above the margin (0: strictly monotone).

    Args:
        differences: next − previous, one a pair of neighbours; paired over common draws if the
            points share them.
        errors: their MCSE; 0 for a deterministic effect (``batches`` inf).
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point; inf: not sampled, hence without error.
        replicates: replicates behind a point (the fewest).
        points: of the experiment's grid, the point or points behind each effect: what needs more
            replicates if the verdict is open.
        fixed: the number of batches was fixed before the run (all, or one bool a point): t
            intervals, narrower with few batches, instead of confidence sequences.
    """
    return _decide(
        differences, errors, np.ravel(np.asarray(differences, float)) - margin, margin, level,
        batches, replicates, points, fixed=fixed, strict=True,
        words=f"every step above {margin:.3g}",
    )  # fmt: skip


def rate(
    x: Any,
    y: Any,
    errors: Any,
    *,
    expected: float,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: bool = False,
) -> Finding:
    """Whether y falls (or rises) like ``x^expected``: slope of log y on log x, within ±margin.

    Weighted least squares with the errors of log y; the error of the slope is enlarged by the
    misfit where points scatter more about the line than their errors explain. The effect and the
    interval are of the slope itself.

    Args:
        x: positive, at least 3 values.
        y: positive.
        errors: MCSE of y, (k,), taken as independent; or the (k, k) covariance of y, as from
            :func:`batch_covariance` when points share draws; or all 0 for deterministic y
            (``batches`` inf).
        expected: the slope claimed.
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point; inf: not sampled, hence without error.
        replicates: replicates behind a point (the fewest).
        points: of the experiment's grid, the point or points behind each effect: what needs more
            replicates if the verdict is open.
        fixed: the number of batches was fixed before the run (all, or one bool a point): t
            intervals, narrower with few batches, instead of confidence sequences.
    """
    x, y, errors = (np.asarray(a, float) for a in (x, y, errors))
    spread = np.sqrt(np.diag(errors)) if errors.ndim == 2 else errors
    usable = np.concatenate([x.ravel(), y.ravel(), spread.ravel()])
    if x.shape != y.shape or x.ndim != 1 or spread.shape != y.shape:
        raise InputError("rate", (x.shape, y.shape, errors.shape), "(k,), (k,), (k,) or (k, k)")
    exact = bool(np.isinf(batches).all() and (spread == 0).all())
    bad = not np.isfinite(usable).all() or (x <= 0).any() or (y <= 0).any() or len(x) < 3
    if bad or (not exact and (spread <= 0).any()):
        reason = "a slope needs at least 3 positive values, each with its error"
        finding = _missing(usable, margin, level, replicates)
        return finding if not np.isfinite(usable).all() else replace(finding, reason=reason)
    weight = np.ones_like(y) if exact else (y / spread) ** 2
    design = np.stack([np.ones_like(x), np.log(x)], axis=1)
    solve = np.linalg.pinv(design * np.sqrt(weight)[:, None]) * np.sqrt(weight)
    intercept, slope = solve @ np.log(y)
    residual = np.log(y) - intercept - slope * np.log(x)
    misfit = float(weight @ residual**2) / (len(x) - 2)
    if exact:
        variance = misfit * float(np.sum(solve[1] ** 2))
        freedom = len(x) - 2
    else:
        covariance = errors if errors.ndim == 2 else np.diag(errors**2)
        variance = float(solve[1] / y @ covariance @ (solve[1] / y)) * max(misfit, 1.0)
        freedom = int(np.min(batches)) - 1
    perfect = exact and np.sqrt(variance) <= FROZEN * (abs(slope) + margin)
    error = 0.0 if perfect else np.sqrt(variance)
    finding = _decide(
        [slope - expected], [error], [margin - abs(slope - expected)], margin, level,
        np.inf if perfect else freedom + 1, replicates, points and [_together(points)],
        words=f"slope within {expected:.3g} ± {margin:.3g}", fixed=exact or fixed,
    )  # fmt: skip
    interval = finding.interval and (finding.interval[0] + expected, finding.interval[1] + expected)
    words = f"slope of {len(x)} points against {expected:.3g} ± {margin:.3g}"
    if finding.verdict == "inconclusive":
        words += ";" + finding.reason.partition(";")[2]
    return replace(finding, effect=float(slope), interval=interval, reason=words)


def batch_covariance(estimates: Any) -> np.ndarray:
    """Covariance (k, k) of the means of iid batches (B, k) of k points with common draws."""
    estimates = np.asarray(estimates, float)
    return np.atleast_2d(np.cov(estimates, rowvar=False)) / len(estimates)


def remainder(
    size: Any,
    gap: Any,
    errors: Any,
    *,
    order: float = 1.0,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    points: Sequence[Names] | None = None,
    fixed: Any = False,
) -> Finding:
    """Whether the gap between first-order theory and the truth falls like ``size^−order``.

    :func:`rate` of the gap, counted positive in the direction in which it is largest. A gap that
    changes sign has no logarithm: the claim is then inconclusive.

    Args:
        size: n, or the effective number of keys; at least 3 values.
        gap: first order less exact, or less simulated, one a size.
        errors: as in :func:`rate`.
        order: ≥ 0, what the theory says is left out.
        margin: δ on the exponent.
        level: confidence.
        batches: B.
        replicates: replicates behind a point (the fewest).
        points: as in :func:`equivalence`, like the next.
        fixed: t intervals.
    """
    gap = np.asarray(gap, float)
    largest = gap[np.nanargmax(np.abs(gap))] if np.isfinite(gap).any() else 1.0
    return rate(
        size, gap * np.sign(largest), errors, expected=-order, margin=margin, level=level,
        batches=batches, replicates=replicates, points=points, fixed=fixed,
    )  # fmt: skip


def _together(points: Sequence[Names]) -> tuple[str, ...]:
    """All the points behind several effects, each once."""
    names = [p for name in points for p in ((name,) if isinstance(name, str) else name)]
    return tuple(dict.fromkeys(names))


def _decide(
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
    """The three-valued decision, from how far each effect lies inside its margin (``room``)."""
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
        return _missing(np.where(sound, effects, np.nan), margin, level, replicates)
    if points is not None and len(points) != effects.size:
        raise InputError("points", len(points), f"{effects.size}, one an effect")
    k, alpha = effects.size, 1 - level
    count = np.where(sampled, batches, 2)
    frozen = sampled & (errors <= FROZEN * (np.abs(effects) + abs(margin)))

    def half_width(a: float) -> np.ndarray:
        student = fixed_half_width(errors, count - 1, a)
        return np.where(fixed, student, sequence_half_width(errors, count, a))

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
        width = np.where(room > 0, single, joint)[left]
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(np.isfinite(width), (width / np.abs(room[left])) ** 2, 4.0)
        factor = np.nan_to_num(factor, nan=np.inf)
        # One point outside settles the claim: no other needs more if one seems to be.
        seems = room[left] < 0
        decisive = float(np.min(factor[seems]) if seems.any() else np.max(factor))
        reason = f"{words}: open at {int(left.sum())} of {k}; " + _needed(decisive, replicates)
        if points is not None:
            for index, growth in zip(np.flatnonzero(left).tolist(), factor, strict=True):
                if seems.any() and growth > decisive:
                    continue
                name = points[index]
                for part in (name,) if isinstance(name, str) else name:
                    needs[part] = max(needs.get(part, 0.0), float(min(growth, 1e9)))
    interval = float(effects[worst] - half), float(effects[worst] + half)
    # So few batches that nothing can be excluded have no interval.
    shown = interval if np.isfinite(half) else None
    return Finding(
        verdict, float(effects[worst]), shown, margin, level, replicates, reason, p, needs
    )


def _needed(factor: float, replicates: int) -> str:
    """How many replicates would decide, if the effects stay where they are."""
    if not factor < 1e4:
        return "an effect lies at the margin: no affordable number of replicates decides"
    digits = 10.0 ** max(len(str(int(factor * replicates))) - 2, 0)
    return f"about {int(np.ceil(factor * replicates / digits) * digits):,} replicates would decide"


def _missing(values: Any, margin: float, level: float, replicates: int) -> Finding:
    values = np.ravel(np.asarray(values, float))
    bad = int((~np.isfinite(values)).sum())
    reason = f"{bad} of {values.size} values are missing" if values.size else "missing: no data"
    return Finding("inconclusive", None, None, margin, level, replicates, reason, 1.0)
