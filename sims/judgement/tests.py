"""The tests that an experiment file can name, each from effects to a finding.

A claim's test, its selection of effects and its margin stand in the file before the run;
:func:`decide` applies them. A new test is one function and one line here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from sims.effects import Effect, of_batches
from sims.errors import InputError
from sims.estimates import covariance_of_means, mcse, skewness
from sims.judgement.settle import FEWEST, FROZEN, Finding, Rule, missing, settle

NAMED = 3
"""Effects that the reason of a claim names, of those that are missing."""
FEWEST_POINTS = 4
"""Different abscissas from which on a law is fitted: three points of four always meet one."""


def decide(effects: Sequence[Effect], rule: Rule) -> Finding:
    """The finding of a rule on the effects that it selects."""
    counts = [rule.replicates if e.replicates is None else e.replicates for e in effects]
    rule = replace(rule, replicates=min(counts, default=rule.replicates))
    finding = TESTS[rule.test](effects, rule) if effects else missing([], rule)
    units = {effect.unit for effect in effects} - {"replicates"}
    if len(units) == 1 and finding.verdict == "inconclusive":
        words = finding.reason.replace("replicates would", f"{units.pop()} would")
        finding = replace(finding, reason=words)
    lost = [e.label for e in effects if e.values is None and not np.isfinite(e.value)]
    if lost and "missing" in finding.reason:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        finding = replace(finding, reason=f"{finding.reason}: {', '.join(lost[:NAMED])}{more}")
    return finding


def _values(effects: Sequence[Effect]) -> np.ndarray:
    return np.array([effect.value for effect in effects])


def equivalence(effects: Sequence[Effect], rule: Rule, fewest: int = FEWEST) -> Finding:
    """Whether every effect is within ±margin of zero, wherever in its bound it lies."""
    room, words = rule.margin - np.abs(_values(effects)), f"every effect within ±{rule.margin:.3g}"
    return settle(effects, rule, room, words, fewest=fewest)


def bound(effects: Sequence[Effect], rule: Rule) -> Finding:
    """Whether no excess over a bound is larger than the margin."""
    words = f"every excess at most {rule.margin:.3g}"
    return settle(effects, rule, rule.margin - _values(effects), words)


def ordering(effects: Sequence[Effect], rule: Rule) -> Finding:
    """Whether every difference between neighbours is above the margin (0: strictly monotone)."""
    words = f"every step above {rule.margin:.3g}"
    return settle(effects, rule, _values(effects) - rule.margin, words, strict=True)


def identity(effects: Sequence[Effect], rule: Rule) -> Finding:
    """Whether deterministic gaps are all within rounding: ``max |gap|/condition ≤ margin``."""
    gaps = np.concatenate(
        [np.ravel(e.value if e.values is None else e.values) / e.condition for e in effects]
    )
    if not gaps.size or not np.isfinite(gaps).all():
        return missing(gaps, rule)
    worst = float(np.abs(gaps).max())
    inside = worst <= rule.margin
    reason = f"largest gap of {gaps.size}: {worst:.2g} {'≤' if inside else '>'} {rule.margin:.2g}"
    verdict, interval = "supported" if inside else "refuted", (worst, worst)
    return Finding(verdict, worst, interval, rule.replicates, reason, 0.0)


def rate(effects: Sequence[Effect], rule: Rule) -> Finding:
    """Whether y falls (or rises) like ``x^expected``: slope of log y on log x, within ±margin.

    Weighted least squares with the errors of log y, or their covariance where points share draws;
    the error of the slope is enlarged by the misfit where points scatter more about the line than
    their errors explain. The effect and the interval are of the slope itself, that of the fewest
    batches.

    Raises:
        InputError: y carries bounds on errors that are not random.
    """
    assert rule.expected is not None
    x, y, errors, skewed, bounds, batches = np.array(
        [(e.x, e.value, e.error, e.skewness, e.bound, e.batches) for e in effects], float
    ).T
    if bounds.any():
        raise InputError("bounds", bounds.max(), "0: a slope takes no bounds on y")
    known = [effect.values for effect in effects if effect.values is not None]
    values = np.stack(known, axis=-1) if known else None
    joint = np.diag(errors**2) if values is None else covariance_of_means(values)
    spread = np.sqrt(np.diag(joint))
    exact = bool(np.isinf(batches).all() and (spread == 0).all())
    usable = np.concatenate([x, y, spread])
    if not np.isfinite(usable).all():
        return missing(usable, rule)
    if min(x.min(), y.min()) <= 0 or len(x) < 3 or not (exact or (spread > 0).all()):
        reason = "a slope needs at least 3 positive values, each with its error"
        return replace(missing(usable, rule), reason=reason)
    weight = np.ones_like(y) if exact else (y / spread) ** 2
    design = np.stack([np.ones_like(x), np.log(x)], axis=1)
    solve = np.linalg.pinv(design * np.sqrt(weight)[:, None]) * np.sqrt(weight)
    intercept, slope = solve @ np.log(y)
    residual = np.log(y) - intercept - slope * np.log(x)
    misfit = float(weight @ residual**2) / (len(x) - 2)
    if exact:
        variance, third, count = misfit * float(np.sum(solve[1] ** 2)), 0.0, len(x) - 1.0
        if np.sqrt(variance) <= FROZEN * (abs(slope) + rule.margin):
            variance, count = 0.0, np.inf
    else:
        pull = solve[1] / y
        own = float(pull @ joint @ pull)
        variance, count = own * max(misfit, 1.0), float(batches.min())
        third = float(
            np.sum((pull * errors) ** 3 * skewed) / own**1.5
            if values is None
            else skewness(values @ pull)
        )
    off = Effect(
        "slope",
        float(slope - rule.expected),
        float(np.sqrt(variance)),
        count,
        tuple(dict.fromkeys(name for effect in effects for name in effect.points)),
        third,
    )
    # Deviations from a line are no batches.
    finding = equivalence([off], rule, fewest=2 if exact else FEWEST)
    low, high = finding.interval or (-np.inf, np.inf)
    interval = finding.interval and (low + rule.expected, high + rule.expected)
    words = f"slope of {len(x)} points against {rule.expected:.3g} ± {rule.margin:.3g}"
    if finding.verdict == "inconclusive":
        words += ";" + finding.reason.partition(";")[2]
    return replace(finding, effect=float(slope), interval=interval, reason=words)


def near_optimal(effects: Sequence[Effect], rule: Rule) -> Finding:
    """Whether the candidate that is claimed to be best is near the best, in every case.

    Its mean is at most ``1 + margin`` times that of each rival: a :func:`bound` on
    ``mean/mean of rival − 1``, tested by the paired batches of ``value − (1 + margin)·rival``.
    At margin 0 two equal candidates leave the claim open.

    Raises:
        InputError: a mean is not positive.
    """
    excesses = []
    for effect in effects:
        values = np.asarray(effect.values, float)
        if (values.mean(0) <= 0).any():
            raise InputError("mean of a candidate", values.mean(0).min(), "positive")
        best = int(effect.best or 0)
        rivals = np.delete(values, best, axis=1)
        contrast = (values[:, [best]] - (1 + rule.margin) * rivals) / rivals.mean(0)
        excesses += [of_batches("", excess) for excess in (contrast + rule.margin).T]
    return bound(excesses, rule)


def optimal_set(values: np.ndarray, level: float) -> np.ndarray:
    """Which candidates may have the least mean: those that no rival beats significantly.

    A rival beats one if the paired difference of their batches is above zero by more than its
    Student quantile, one-sided and simultaneous over the k − 1 rivals (Bonferroni): the candidate
    with the least expectation is in the set with probability ``level`` at least.

    Args:
        values: finite, (B, k), iid over batches, B ≥ 2 and k ≥ 2.
        level: in (0, 1).

    Returns:
        (k,) of bool.
    """
    batches, count = values.shape
    gaps = values[:, :, None] - values[:, None, :]
    low = gaps.mean(0) - stdtrit(batches - 1, 1 - (1 - level) / (count - 1)) * mcse(gaps)
    return np.asarray(~(low > 0).any(axis=1))


TESTS: dict[str, Callable[[Sequence[Effect], Rule], Finding]] = {
    "equivalence": equivalence,
    "bound": bound,
    "ordering": ordering,
    "identity": identity,
    "rate": rate,
    "near_optimal": near_optimal,
}
"""Every test by its name; ``bound`` (at most) and ``ordering`` (above) are one-sided."""
