"""Deciding a claim from effects and their Monte Carlo errors.

Every function returns a :class:`~sims.judgement.settle.Finding` with one of three verdicts. With
margin δ fixed before the run:

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
from dataclasses import replace
from typing import Any

import numpy as np

from sims.errors import InputError
from sims.judgement.settle import FROZEN, Finding, Names, missing, settle


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
        return missing(gaps, margin, level, replicates)
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
    return settle(
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
    return settle(
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
    return settle(
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
        finding = missing(usable, margin, level, replicates)
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
    finding = settle(
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
