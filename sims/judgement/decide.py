"""Deciding a claim from effects and their Monte Carlo standard errors.

Every function returns a :class:`Finding` with one of three verdicts. With margin δ fixed before
the run and simultaneous confidence intervals for the effects of all points of the claim:

- **supported**: every interval lies where the claim says, within δ;
- **refuted**: some interval lies wholly outside;
- **inconclusive**: neither, or data are missing. Missing data never support anything.

Intervals are ``effect ± t · error`` with t the Student quantile of B − 1 degrees of freedom (B
iid batches) at ``1 − (1 − level)/2k`` for k points (Bonferroni: valid however the points depend on
each other, as they do when they share draws). They are two-sided throughout, so one-sided claims
are judged a little more strictly than their level says.

This is deliberately plain, for a fixed number of batches; nothing outside this module knows how
an interval is made.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sims.errors import InputError

VERDICTS = ("supported", "refuted", "inconclusive")


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


def identity(gaps: Any, *, margin: float, level: float = 0.95, replicates: int = 0) -> Finding:
    """Whether deterministic gaps are all within rounding: ``max |gap| ≤ margin``.

    Args:
        gaps: any shape; relative where the two sides have a scale.
        margin: tolerance.
        level: not used by the decision, since nothing is random; recorded.
        replicates: how many random cases were tried; recorded.
    """
    gaps = np.abs(np.asarray(gaps, float)).ravel()
    if not gaps.size or not np.isfinite(gaps).all():
        return _missing(gaps, margin, level, replicates)
    worst = float(gaps.max())
    verdict = "supported" if worst <= margin else "refuted"
    sign = "≤" if worst <= margin else ">"
    reason = f"largest gap of {gaps.size}: {worst:.2g} {sign} {margin:.2g}"
    return Finding(verdict, worst, (worst, worst), margin, level, replicates, reason)


def equivalence(
    effects: Any, errors: Any, *, margin: float, level: float, batches: Any, replicates: int
) -> Finding:
    """Whether every effect is within ±margin of zero.

    Args:
        effects: one a point, e.g. relative gaps between theory and simulation.
        errors: their MCSE; 0 for a deterministic effect.
        margin: δ ≥ 0, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point.
        replicates: replicates behind a point (the fewest).
    """
    return _decide(
        effects, errors, margin, level, batches, replicates,
        room=lambda low, high: margin - np.maximum(high, -low),
        outside=lambda low, high: np.maximum(low, -high) - margin,
        distance=lambda effect: np.abs(np.abs(effect) - margin),
        inside_words=f"every effect within ±{margin:.3g}",
    )  # fmt: skip


def bound(
    excess: Any, errors: Any, *, margin: float, level: float, batches: Any, replicates: int
) -> Finding:
    """Whether no excess over a bound is larger than the margin.

    Args:
        excess: value − upper bound (or lower bound − value), one a point.
        errors: their MCSE; 0 for a deterministic effect.
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point.
        replicates: replicates behind a point (the fewest).
    """
    return _decide(
        excess, errors, margin, level, batches, replicates,
        room=lambda low, high: margin - high,
        outside=lambda low, high: low - margin,
        distance=lambda effect: np.abs(effect - margin),
        inside_words=f"every excess at most {margin:.3g}",
    )  # fmt: skip


def ordering(
    differences: Any, errors: Any, *, margin: float, level: float, batches: Any, replicates: int
) -> Finding:
    """Whether every difference between neighbours is above the margin (0: strictly monotone).

    Args:
        differences: next − previous, one a pair of neighbours; paired over common draws if the
            points share them.
        errors: their MCSE; 0 for a deterministic effect.
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point.
        replicates: replicates behind a point (the fewest).
    """
    return _decide(
        differences, errors, margin, level, batches, replicates,
        room=lambda low, high: low - margin,
        outside=lambda low, high: margin - high,
        distance=lambda effect: np.abs(effect - margin),
        inside_words=f"every step above {margin:.3g}",
        strict=True,
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
) -> Finding:
    """Whether y falls (or rises) like ``x^expected``: slope of log y on log x, within ±margin.

    Weighted least squares with the errors of log y; the error of the slope is enlarged by the
    misfit where points scatter more about the line than their errors explain. The effect and the
    interval are of the slope itself.

    Args:
        x: positive, at least 3 values.
        y: positive.
        errors: MCSE of y, (k,), taken as independent; or the (k, k) covariance of y, as from
            :func:`batch_covariance` when points share draws; or all 0 for deterministic y.
        expected: the slope claimed.
        margin: δ, in the unit of the effects.
        level: simultaneous confidence.
        batches: B, one number or one a point.
        replicates: replicates behind a point (the fewest).
    """
    x, y, errors = (np.asarray(a, float) for a in (x, y, errors))
    spread = np.sqrt(np.diag(errors)) if errors.ndim == 2 else errors
    usable = np.concatenate([x.ravel(), y.ravel(), spread.ravel()])
    if x.shape != y.shape or x.ndim != 1 or spread.shape != y.shape:
        raise InputError("rate", (x.shape, y.shape, errors.shape), "(k,), (k,), (k,) or (k, k)")
    exact = bool((spread == 0).all())
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
    finding = _decide(
        [slope - expected], [np.sqrt(variance)], margin, level, freedom + 1, replicates,
        room=lambda low, high: margin - np.maximum(high, -low),
        outside=lambda low, high: np.maximum(low, -high) - margin,
        distance=lambda effect: np.abs(np.abs(effect) - margin),
        inside_words=f"slope within {expected:.3g} ± {margin:.3g}",
    )  # fmt: skip
    if finding.effect is None or finding.interval is None:
        return finding
    low, high = (bound + expected for bound in finding.interval)
    words = f"slope of {len(x)} points against {expected:.3g} ± {margin:.3g}"
    if finding.verdict == "inconclusive":
        words += ";" + finding.reason.partition(";")[2]
    return replace(finding, effect=float(slope), interval=(low, high), reason=words)


def batch_covariance(estimates: Any) -> np.ndarray:
    """Covariance (k, k) of the means of iid batches (B, k) of k points with common draws."""
    estimates = np.asarray(estimates, float)
    return np.atleast_2d(np.cov(estimates, rowvar=False)) / len(estimates)


def _decide(
    effects: Any,
    errors: Any,
    margin: float,
    level: float,
    batches: Any,
    replicates: int,
    *,
    room: Callable[[Any, Any], Any],
    outside: Callable[[Any, Any], Any],
    distance: Callable[[Any], Any],
    inside_words: str,
    strict: bool = False,
) -> Finding:
    """The three-valued decision, by the room an interval has inside and how far it is outside."""
    if not 0 < level < 1 or not np.isfinite(margin):
        raise InputError("level, margin", (level, margin), "level in (0, 1), a finite margin")
    effects, errors, batches = np.broadcast_arrays(
        np.ravel(np.asarray(effects, float)),
        np.ravel(np.asarray(errors, float)),
        np.ravel(np.asarray(batches, float)),
    )
    sound = np.isfinite(effects) & np.isfinite(errors) & (errors >= 0) & (batches >= 2)
    if not effects.size or not sound.all():
        return _missing(np.where(sound, effects, np.nan), margin, level, replicates)
    k = effects.size
    half = stdtrit(batches - 1, 1 - (1 - level) / (2 * k)) * errors
    low, high = effects - half, effects + half
    left, beyond = room(low, high), outside(low, high)
    refuted = bool((beyond > 0).any())
    supported = bool((left > 0).all() if strict else (left >= 0).all())
    worst = int(np.argmax(beyond) if refuted else np.argmin(left))
    verdict = "refuted" if refuted else "supported" if supported else "inconclusive"
    of = f" (worst of {k} points shown)" if k > 1 else ""
    if supported:
        reason = inside_words + of
    elif refuted:
        count = int((beyond > 0).sum())
        reason = f"not {inside_words}: {count} of {k} wholly outside" + of
    else:
        open_ = left <= 0 if strict else left < 0
        away = distance(effects[open_])
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = float(np.max((half[open_] / away) ** 2))
        reason = f"{inside_words}: open at {int(open_.sum())} of {k}; " + _needed(
            factor, replicates
        )
    return Finding(
        verdict, float(effects[worst]), (float(low[worst]), float(high[worst])),
        margin, level, replicates, reason,
    )  # fmt: skip


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
    return Finding("inconclusive", None, None, margin, level, replicates, reason)
