"""Deciding a claim from its evidence: effects and their Monte Carlo errors.

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
batches was fixed before the run (``Evidence.fixed``), t intervals do, which are narrower. One-sided
tests use the two-sided interval, which is a little strict. Skewness of the batches is corrected
for; an estimate of fewer than 64 batches, which do not show it, decides nothing.

An effect without sampling is declared so, by ``batches = inf``. One that does come from batches
and does not vary between them supports nothing: draws used again look like certainty. It may
refute.

The arguments that most of them share: ``margin`` is δ, in the unit of the effects; ``level`` is the
confidence of the verdict, in (0, 1), simultaneous over the effects.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sims.errors import InputError
from sims.estimates import covariance_of_means, skewness
from sims.judgement.evidence import Evidence
from sims.judgement.settle import FROZEN, Finding, missing, settle


def identity(
    gaps: ArrayLike,
    *,
    margin: float,
    level: float = 0.95,
    condition: ArrayLike = 1.0,
    replicates: int = 0,
) -> Finding:
    """Whether deterministic gaps are all within rounding: ``max |gap|/condition ≤ margin``.

    Args:
        gaps: any shape; relative where the two sides have a scale.
        margin: tolerance, in units of rounding if the gaps are.
        level: not used by the decision, since nothing is random; recorded.
        condition: how many times the computation enlarges rounding (its condition number, ≥ 1):
            one number, or one a gap.
        replicates: how many random cases were tried; recorded.
    """
    values = (np.abs(np.asarray(gaps, float)) / np.asarray(condition, float)).ravel()
    if not values.size or not np.isfinite(values).all():
        return missing(values, margin, level, replicates)
    worst = float(values.max())
    verdict = "supported" if worst <= margin else "refuted"
    sign = "≤" if worst <= margin else ">"
    reason = f"largest gap of {values.size}: {worst:.2g} {sign} {margin:.2g}"
    return Finding(verdict, worst, (worst, worst), margin, level, replicates, reason, 0.0)


def equivalence(evidence: Evidence, *, margin: float, level: float) -> Finding:
    """Whether every effect is within ±margin of zero, wherever in its bound it lies.

    Args:
        evidence: effects such as relative gaps between theory and simulation.
        margin: δ ≥ 0.
        level: confidence of the verdict.
    """
    effects, bounds = np.asarray(evidence.effects), np.asarray(evidence.bounds)
    size = np.abs(effects)
    return settle(
        evidence,
        lambda effects: margin - np.abs(effects),
        np.copysign(np.maximum(size - bounds, 0.0), effects),
        np.copysign(size + bounds, effects),
        margin=margin,
        level=level,
        words=f"every effect within ±{margin:.3g}",
    )


def bound(evidence: Evidence, *, margin: float, level: float) -> Finding:
    """Whether no excess over a bound is larger than the margin.

    Args:
        evidence: effects ``value − upper bound`` (or ``lower bound − value``).
        margin: δ.
        level: confidence of the verdict.
    """
    return settle(
        evidence,
        lambda excess: margin - excess,
        evidence.effects - evidence.bounds,
        evidence.effects + evidence.bounds,
        margin=margin,
        level=level,
        words=f"every excess at most {margin:.3g}",
    )


def ordering(evidence: Evidence, *, margin: float, level: float) -> Finding:
    """Whether every difference between neighbours is above the margin (0: strictly monotone).

    Args:
        evidence: effects ``next − previous``, one a pair of neighbours; paired over common draws if
            the points share them.
        margin: δ.
        level: confidence of the verdict.
    """
    return settle(
        evidence,
        lambda differences: differences - margin,
        evidence.effects + evidence.bounds,
        evidence.effects - evidence.bounds,
        margin=margin,
        level=level,
        strict=True,
        words=f"every step above {margin:.3g}",
    )


def rate(
    evidence: Evidence,
    x: ArrayLike,
    *,
    expected: float,
    margin: float,
    level: float,
    values: ArrayLike | None = None,
) -> Finding:
    """Whether y falls (or rises) like ``x^expected``: slope of log y on log x, within ±margin.

    Weighted least squares with the errors of log y; the error of the slope is enlarged by the
    misfit where points scatter more about the line than their errors explain. The effect and the
    interval are of the slope itself.

    Args:
        evidence: y > 0 as effects (k,), k ≥ 3, with their MCSE; the slope's interval is that of the
            fewest batches. All errors 0 and batches inf: a deterministic y.
        x: positive, (k,).
        expected: the slope claimed.
        margin: δ, on the slope.
        level: confidence of the verdict.
        values: batches (B, k) of y where points share draws: the covariance of their means takes
            the place of the errors. None: the errors are independent.

    Raises:
        InputError: shapes do not agree, or y carries bounds on errors that are not random.
    """
    x, y = np.asarray(x, float), np.asarray(evidence.effects)
    errors = np.asarray(evidence.errors)
    joint = np.diag(errors**2) if values is None else covariance_of_means(np.asarray(values))
    if x.shape != y.shape or joint.shape != (y.size, y.size):
        raise InputError("rate", (x.shape, y.shape, joint.shape), "(k,), (k,), (k, k)")
    spread = errors if values is None else np.sqrt(np.diag(joint))
    if np.any(evidence.bounds):
        raise InputError("bounds", np.max(evidence.bounds), "0: a slope takes no bounds on y")
    usable = np.concatenate([x, y, spread])
    replicates = evidence.replicates
    exact = bool(np.isinf(evidence.batches).all() and (spread == 0).all())
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
        pull = solve[1] / y
        own = float(pull @ joint @ pull)
        variance = own * max(misfit, 1.0)
        freedom = int(np.min(evidence.batches)) - 1
        third = np.sum((pull * errors) ** 3 * evidence.skewness) / own**1.5
        skewed = float(third if values is None else skewness(np.asarray(values) @ pull))
    perfect = exact and np.sqrt(variance) <= FROZEN * (abs(slope) + margin)
    points = evidence.all_points
    off = Evidence(
        np.array([slope - expected]),
        0.0 if perfect else np.sqrt(variance),
        np.inf if perfect else freedom + 1,
        replicates,
        None if points is None else (points,),
        exact or bool(np.all(evidence.fixed)),
        skewness=0.0 if exact else skewed,
        fewest=2 if exact else evidence.fewest,  # deviations from a line are no batches
    )
    finding = equivalence(off, margin=margin, level=level)
    interval = finding.interval and (finding.interval[0] + expected, finding.interval[1] + expected)
    words = f"slope of {len(x)} points against {expected:.3g} ± {margin:.3g}"
    if finding.verdict == "inconclusive":
        words += ";" + finding.reason.partition(";")[2]
    return replace(finding, effect=float(slope), interval=interval, reason=words)


def remainder(
    evidence: Evidence,
    size: ArrayLike,
    *,
    order: float = 1.0,
    margin: float,
    level: float,
    values: ArrayLike | None = None,
) -> Finding:
    """Whether the gap between first-order theory and the truth falls like ``size^−order``.

    :func:`rate` of the gap, counted positive in the direction in which it is largest. A gap that
    changes sign has no logarithm: the claim is then inconclusive.

    Args:
        evidence: gaps as effects, first order less exact, or less simulated, one a size.
        size: n, or the effective number of keys; at least 3 values.
        order: ≥ 0, what the theory says is left out.
        margin: δ on the exponent.
        level: confidence of the verdict.
        values: batches of the gaps, as in :func:`rate`.
    """
    gaps = np.asarray(evidence.effects)
    sign = np.sign(gaps[np.nanargmax(np.abs(gaps))]) if np.isfinite(gaps).any() else 1.0
    return rate(
        replace(evidence, effects=gaps * sign, skewness=np.asarray(evidence.skewness) * sign), size,
        expected=-order, margin=margin, level=level,
        values=None if values is None else np.asarray(values) * sign,
    )  # fmt: skip
