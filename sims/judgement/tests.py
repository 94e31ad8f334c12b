"""The tests that an experiment file can name, each from effects to a finding.

A claim's test, its selection of effects, its margin and whether it is sequential stand in the file
before the run; :func:`decide` applies them. A new test is one function and one line here, and rows
of its own in the audit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sims.effects import Effect
from sims.errors import InputError, one_of
from sims.estimates import common, covariance_of_means
from sims.judgement import decide as tests_of
from sims.judgement.best import near_optimal
from sims.judgement.curves import law_of_curve
from sims.judgement.evidence import FEWEST, Evidence
from sims.judgement.settle import Finding, missing

if TYPE_CHECKING:
    from sims.judgement.scaling import Comparison, Fit
    from sims.study.schema import ClaimSpec


EXPONENT_SETS = 8
"""Sets of 4,000 draws behind an exponent's p-value: they fill one block of the sampler, and resolve
3·10⁻⁵, a fifth of what Holm asks of the first of 305 claims."""


NAMED = 3
"""Effects that the reason of a claim names, of those that are missing."""

EXPECTING = ("rate", "remainder", "exponent", "deviation")
"""Tests of a stated slope or exponent."""

FEWEST_POINTS = 4
"""Different abscissas from which on a law is fitted."""

POWERS = ("power", "log_power")
"""Laws whose exponent a claim may state."""

LEAST = 4.0
"""Margin of a law claim: differences of elpd below this are noise (Sivula, Magnusson & Vehtari
2020)."""


@dataclass(frozen=True)
class Rule:
    """How a claim is to be decided, as its file says.

    Attributes:
        test: a key of :data:`TESTS`.
        margin: δ ≥ 0, in the unit of the effects; of a law :data:`LEAST`, in units of elpd.
        level: confidence, in (0, 1).
        sequential: whether intervals have to hold whenever sampling stops.
        replicates: the fewest replicates of the experiment, for effects that do not say.
        expected: slope or exponent stated, for rates, exponents and deviations.
        law: the law stated, for laws; for exponents the law whose exponent it is, a power of x or,
            unless given, of log x.
        scatter: about the law, a share of the value.

    Raises:
        InputError: there is no such test, it lacks the number or law that it is about, or has one
            that it does not use.
    """

    test: str
    margin: float
    level: float
    sequential: bool = False
    replicates: int = 0
    expected: float | None = None
    law: str | None = None
    scatter: float = 0.0

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise InputError("test", self.test, one_of(TESTS, self.test))
        if self.test in EXPECTING and self.expected is None:
            raise InputError("expected", None, f"a number, for a {self.test}")
        if self.expected is not None and self.test not in EXPECTING:
            raise InputError("expected", self.expected, f"nothing, for the test `{self.test}`")
        if self.test == "exponent" and self.law not in (None, *POWERS):
            raise InputError("law", self.law, f"{', '.join(POWERS)}, for an exponent")
        if self.test != "exponent" and (self.test == "law") != (self.law is not None):
            raise InputError("law", self.law, "a law for the test `law` or `exponent`")
        if self.test == "law" and self.margin != LEAST:  # another one would be passed over
            raise InputError("margin", self.margin, f"{LEAST:g}, that of test law")
        if self.scatter and self.test not in ("law", "exponent"):
            raise InputError("scatter", self.scatter, f"nothing, for the test `{self.test}`")

    @classmethod
    def of(cls, claim: "ClaimSpec", replicates: int = 0) -> "Rule":
        """The rule of a claim, whose effects rest on so many replicates."""
        return cls(
            claim.test, claim.margin, claim.level, sequential=claim.sequential,
            replicates=replicates, expected=claim.expected, law=claim.law, scatter=claim.scatter,
        )  # fmt: skip


def decide(effects: Sequence[Effect], rule: Rule) -> Finding:
    """The finding of a rule on the effects that it selects."""
    finding = TESTS[rule.test](effects, rule)
    units = {effect.unit for effect in effects} - {"replicates"}
    if len(units) == 1 and finding.verdict == "inconclusive":
        words = finding.reason.replace("replicates would", f"{units.pop()} would")
        finding = replace(finding, reason=words)
    lost = [e.label for e in effects if e.values is None and not np.isfinite(e.value)]
    if lost and "missing" in finding.reason:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        finding = replace(finding, reason=f"{finding.reason}: {', '.join(lost[:NAMED])}{more}")
    return finding


def evidence(effects: Sequence[Effect], rule: Rule) -> Evidence:
    """Effects as arrays; a test that is not sequential takes t intervals for all of them."""
    return Evidence(
        np.array([effect.value for effect in effects]),
        np.array([effect.error for effect in effects]),
        np.array([effect.batches for effect in effects]),
        _replicates(effects, rule),
        tuple(effect.points for effect in effects),
        np.array([effect.fixed or not rule.sequential for effect in effects]),
        np.array([effect.bound for effect in effects]),
        np.array([effect.skewness for effect in effects]),
        np.array([effect.narrowing for effect in effects]),
    )


def _replicates(effects: Sequence[Effect], rule: Rule) -> int:
    """The fewest behind an effect that is sampled."""
    counts = [
        rule.replicates if effect.replicates is None else effect.replicates for effect in effects
    ]
    return min(counts, default=rule.replicates)


def _equivalence(effects: Sequence[Effect], rule: Rule) -> Finding:
    return tests_of.equivalence(evidence(effects, rule), margin=rule.margin, level=rule.level)


def _bound(effects: Sequence[Effect], rule: Rule) -> Finding:
    return tests_of.bound(evidence(effects, rule), margin=rule.margin, level=rule.level)


def _ordering(effects: Sequence[Effect], rule: Rule) -> Finding:
    return tests_of.ordering(evidence(effects, rule), margin=rule.margin, level=rule.level)


def _identity(effects: Sequence[Effect], rule: Rule) -> Finding:
    gaps = [np.ravel(e.value if e.values is None else e.values) for e in effects]
    conditions = [np.full(g.shape, e.condition) for g, e in zip(gaps, effects, strict=True)]
    return tests_of.identity(
        np.concatenate([*gaps, []]), margin=rule.margin, level=rule.level,
        condition=np.concatenate([*conditions, []]), replicates=_replicates(effects, rule),
    )  # fmt: skip


def _rate(effects: Sequence[Effect], rule: Rule) -> Finding:
    """A slope of effects with common draws, or of effects that are not sampled."""
    assert rule.expected is not None
    values = [effect.values for effect in effects if effect.values is not None]
    return tests_of.rate(
        evidence(effects, rule), np.array([effect.x for effect in effects], float),
        expected=rule.expected, margin=rule.margin, level=rule.level,
        values=np.stack(values, axis=-1) if values else None,
    )  # fmt: skip


def _remainder(effects: Sequence[Effect], rule: Rule) -> Finding:
    """A slope of gaps that may have either sign, all of them the sign of the largest."""
    largest = max((effect.value for effect in effects), key=abs, default=1.0)
    return _rate([effect.scaled(float(np.sign(largest))) for effect in effects], rule)


def _near_optimal(effects: Sequence[Effect], rule: Rule) -> Finding:
    choices = [(np.asarray(e.values), int(e.best)) for e in effects if e.best is not None]
    return near_optimal(
        choices, margin=rule.margin, level=rule.level, replicates=_replicates(effects, rule)
    )


def _exponent(effects: Sequence[Effect], rule: Rule) -> Finding:
    """The p of ``a x^p``, or of ``a (log x)^p``."""
    from sims.judgement.scaling import exponent_claim

    points = _points(effects, rule)
    if isinstance(points, Finding):
        return points
    assert rule.expected is not None
    return exponent_claim(
        _long_fit(*points, rule.law or "log_power", rule.scatter), expected=rule.expected,
        margin=rule.margin, level=rule.level, replicates=_replicates(effects, rule),
    )  # fmt: skip


def _deviation(effects: Sequence[Effect], rule: Rule) -> Finding:
    """How far a curve without sampling error is off the law ``a + b (log x)^expected``."""
    assert rule.expected is not None
    if any(np.isfinite(effect.batches) for effect in effects):
        raise InputError("effects", "sampled ones", "a curve of theory, for the test `deviation`")
    x, y, off = np.array([(e.x, e.value, e.bound) for e in effects], float).reshape(-1, 3).T
    return law_of_curve(x, y, off, exponent=rule.expected, margin=rule.margin, level=rule.level)


def _law(effects: Sequence[Effect], rule: Rule) -> Finding:
    from sims.judgement.scaling import law_claim

    points = _points(effects, rule)
    if isinstance(points, Finding):
        return points
    assert rule.law is not None
    compared = _compared(*points, rule.scatter)
    replicates = _replicates(effects, rule)
    return law_claim(compared, rule.law, level=rule.level, replicates=replicates)


def _points(effects: Sequence[Effect], rule: Rule) -> tuple[bytes, bytes, bytes] | Finding:
    """Abscissas, effects and their errors; or that a number is missing, or batches too few.

    The errors are a covariance where batches of all effects are known, since points of one
    experiment may share draws.
    """
    x, y, errors = np.array([(e.x, e.value, e.error) for e in effects], float).reshape(-1, 3).T
    if not x.size or not np.isfinite([x, y, errors]).all():
        return missing(np.where(np.isfinite(x + errors), y, np.nan), rule.margin, rule.level, 0)
    few = min(effect.batches for effect in effects) < FEWEST
    if few or len(set(x)) < FEWEST_POINTS:
        lack = f"{FEWEST} batches each" if few else f"{FEWEST_POINTS} different abscissas"
        reason = f"its {len(x)} points have not {lack}, which a law takes"
        return Finding("inconclusive", None, None, rule.margin, rule.level, 0, reason)
    values = [effect.values for effect in effects if effect.values is not None]
    if len(values) == len(effects):
        errors = covariance_of_means(np.stack(common(*values), axis=1))
    return x.tobytes(), y.tobytes(), errors.tobytes()


def _errors(of: bytes, count: int) -> np.ndarray:
    """Errors (k,), or a covariance (k, k)."""
    errors = np.frombuffer(of)
    return errors if len(errors) == count else errors.reshape(count, count)


@lru_cache(maxsize=16)
def _compared(x: bytes, y: bytes, errors: bytes, scatter: float) -> "Comparison":
    """The rival laws; kept, since several claims are about the same points."""
    from sims.judgement.scaling import compare

    at, values = np.frombuffer(x), np.frombuffer(y)
    return compare(at, values, _errors(errors, len(at)), scatter=scatter)


@lru_cache(maxsize=16)
def _long_fit(x: bytes, y: bytes, errors: bytes, law: str, scatter: float) -> "Fit":
    """The law with an exponent, by enough draws for a p-value that is to survive Holm's family."""
    from sims.judgement.scaling import fit

    at, values = np.frombuffer(x), np.frombuffer(y)
    return fit(at, values, _errors(errors, len(at)), law, scatter=scatter, sets=EXPONENT_SETS)


TESTS: dict[str, Callable[[Sequence[Effect], Rule], Finding]] = {
    "equivalence": _equivalence,
    "bound": _bound,
    "ordering": _ordering,
    "identity": _identity,
    "rate": _rate,
    "remainder": _remainder,
    "near_optimal": _near_optimal,
    "law": _law,
    "exponent": _exponent,
    "deviation": _deviation,
}
"""Every test by its name; ``bound`` (at most) and ``ordering`` (above) are one-sided."""
