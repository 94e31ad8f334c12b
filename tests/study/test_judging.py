"""From effects to verdicts: the file's test, its selection of effects, and what is refused."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import xarray as xr

from sims.effects import Effect, of_batches
from sims.errors import InputError
from sims.estimates import mean_and_error, skewness
from sims.judgement import (
    Evidence,
    Finding,
    bound,
    equivalence,
    identity,
    near_optimal,
    ordering,
    rate,
)
from sims.judgement.tests import TESTS, Rule, decide
from sims.study.judging import chosen, examined
from sims.study.schema import ClaimSpec, LawName, TestName, TheorySpec
from sims.validation import parse

RNG = np.random.default_rng(3)
VALUES = RNG.normal([0.1, 0.4, 0.9], 0.2, (64, 3))
FAMILY = [of_batches(f"e{i}", v, f"p{i}", at={"n_eff": 10.0 * i}) for i, v in enumerate(VALUES.T)]
MEAN, ERROR = np.array([mean_and_error(v) for v in VALUES.T]).T
SKEWNESS = [float(skewness(v)) for v in VALUES.T]


@pytest.mark.parametrize("test", [equivalence, bound, ordering])
@pytest.mark.parametrize("sequential", [False, True])
def test_the_named_test_is_applied_to_the_effects(test, sequential):
    finding = decide(FAMILY, Rule(test.__name__, 0.5, 0.95, sequential=sequential, replicates=7))
    points = [("p0",), ("p1",), ("p2",)]
    evidence = Evidence(
        MEAN, ERROR, np.full(3, 64.0), 7, points, fixed=not sequential, skewness=SKEWNESS
    )
    assert finding == test(evidence, margin=0.5, level=0.95)


def test_every_test_of_the_schema_exists():
    assert set(TESTS) == set(ClaimSpec.model_fields["test"].annotation.__args__)


def test_bounds_and_batches_fixed_beforehand_are_the_effects_own():
    effects = [Effect("a", 0.4, 0.01, 64, bound=0.2), Effect("b", 0.1, 0.01, 64, fixed=True)]
    finding = decide(effects, Rule("equivalence", 0.5, 0.95, sequential=True))
    evidence = Evidence([0.4, 0.1], [0.01, 0.01], [64, 64], 0, ((), ()), [False, True], [0.2, 0.0])
    assert finding == equivalence(evidence, margin=0.5, level=0.95)
    assert finding.verdict == "inconclusive"


def test_identities_divide_by_their_condition():
    gaps = [Effect("a", values=np.array([[1.0, 8.0]]), condition=4.0), Effect("b", 1.5)]
    assert decide(gaps, Rule("identity", 2.0, 0.95)) == identity([0.25, 2.0, 1.5], margin=2.0)
    assert decide([], Rule("identity", 2.0, 0.95)).verdict == "inconclusive"


def test_rates_take_the_covariance_of_common_draws():
    x = np.array([1.0, 2.0, 4.0])
    values = np.exp(RNG.normal(0, 0.05, (64, 1)) + RNG.normal(0, 0.01, (64, 3))) / x
    effects = [of_batches("", v, "p", x=float(a)) for v, a in zip(values.T, x, strict=True)]
    rule = Rule("rate", 0.1, 0.95, expected=-1.0)
    mean, error = np.array([mean_and_error(v) for v in values.T]).T
    evidence = Evidence(mean, error, 64.0, 0, ("p",) * 3, fixed=True)
    assert decide(effects, rule) == rate(
        evidence, x, expected=-1.0, margin=0.1, level=0.95, values=values
    )
    negative = [e.scaled(-1.0) for e in effects]
    assert decide(negative, Rule("remainder", 0.1, 0.95, expected=-1.0)) == decide(effects, rule)


def test_rates_of_what_is_not_sampled():
    effects = [Effect("", 3.0 / x, x=x) for x in (1.0, 2.0, 4.0)]
    finding = decide(effects, Rule("rate", 0.1, 0.95, expected=-1.0))
    assert (finding.verdict, finding.effect) == ("supported", pytest.approx(-1.0))
    slow = [Effect("", -((e.x or 1.0) ** -0.5), x=e.x) for e in effects]
    assert decide(slow, Rule("remainder", 0.1, 0.95, expected=-1.0)).verdict == "refuted"
    for test in ("rate", "remainder"):
        assert decide([], Rule(test, 0.1, 0.95, expected=-1.0)).verdict == "inconclusive"


def test_exponents_take_the_covariance_of_common_draws():
    """Errors that nearly all points share tilt no line: they leave the exponent sharp."""
    x = np.array([16.0, 24.0, 48.0, 96.0])
    shared, own = RNG.normal(0, 0.2, (64, 1)), RNG.normal(0, 0.005, (64, 4))
    values = (1 + shared + own) * x
    effects = [
        of_batches("", v, "p", x=float(a), replicates=9) for v, a in zip(values.T, x, strict=True)
    ]
    rule = Rule("exponent", 0.05, 0.95, expected=1.0, law="power")
    found = decide(effects, rule)
    assert (found.verdict, found.replicates) == ("supported", 9)
    assert found.effect == pytest.approx(1.0, abs=0.01)
    # Draws enough for Holm's first step among 305 claims, 1.6·10⁻⁴.
    assert found.p_value < 0.05 / 305
    # As if they were independent, the slope of points with an error of 2.5 % each.
    alone = decide([replace(e, values=None) for e in effects], rule)
    assert alone.interval[1] - alone.interval[0] > 3 * (found.interval[1] - found.interval[0])
    wrong = decide(effects, replace(rule, expected=0.8))
    assert wrong.verdict == "refuted"
    few = decide([of_batches("", e.values[:63], x=e.x) for e in effects], rule)
    assert few.reason == "its 4 points have not 64 batches each, which a law takes"
    less = decide(effects[:3], rule)
    assert less.reason == "its 3 points have not 4 different abscissas, which a law takes"
    assert {few.verdict, less.verdict} == {"inconclusive"}


def test_choices_carry_their_candidates():
    values = RNG.normal([1.0, 1.5], 0.1, (64, 2))
    rule = Rule("near_optimal", 0.05, 0.95, replicates=3)
    expected = near_optimal([(values, 0)], margin=0.05, level=0.95, replicates=3)
    assert decide([Effect("case", values=values, best=0)], rule) == expected


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"test": "custom"}, "test"),
        ({"test": "rate"}, "expected"),
        ({"test": "law"}, "law"),
        ({"test": "bound", "law": "log"}, "law"),
    ],
)
def test_incomplete_rules_are_refused(options, field):
    with pytest.raises(InputError, match=field):
        Rule(margin=0.1, level=0.95, **options)


def claim(**where):
    return ClaimSpec(
        id="c",
        statement="s",
        test="bound",
        effects="f",
        where=where,
        margin=0.0,
        formula="f",
        kind="simulation",
        over=["seeds"],
    )


def test_where_selects_effects_by_their_facts():
    assert chosen(FAMILY, claim(n_eff={"at_least": 10.0})) == FAMILY[1:]
    assert chosen(FAMILY, claim(n_eff={"at_most": 10.0})) == FAMILY[:2]
    assert chosen(FAMILY, claim(n_eff=10.0)) == FAMILY[1:2]
    both = [replace(e, at={**e.at, "kernel": k}) for e, k in zip(FAMILY, "aba", strict=True)]
    assert chosen(both, claim(n_eff={"at_least": 10.0}, kernel="a")) == both[2:]
    with pytest.raises(InputError, match="where: got 'angle'; allowed: n_eff"):
        chosen(FAMILY, claim(angle=1.0))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"test": "law", "law": "log", "margin": 2.0}, "margin: got 2.0; allowed: 4, that of test"),
        ({"test": "law", "margin": 4.0}, "law: got None; allowed: a law"),
        ({"law": "log"}, "law: got 'log'; allowed: a law for the test `law` or `exponent`"),
        ({"test": "exponent", "law": "log", "expected": 1.0}, "law: got 'log'; allowed: power, "),
        ({"test": "rate"}, "expected: got None; allowed: a number, for a rate"),
        ({"expected": 1.0}, "expected: got 1.0; allowed: nothing, for the test `bound`"),
        ({"scatter": 0.1}, "scatter: got 0.1; allowed: nothing, for the test `bound`"),
    ],
)
def test_a_claim_has_what_its_test_uses_and_nothing_else(fields, words):
    """What a test does not use would be passed over: the test of laws has a margin of its own."""
    with pytest.raises(InputError, match=words):
        Rule.of(claim().model_copy(update=fields))
    assert Rule.of(claim().model_copy(update={"test": "law", "law": "log", "margin": 4.0}))


def test_the_schema_lists_the_tests_the_laws_and_the_accuracies():
    """They stand in the schema as words and numbers, since their modules are slow to import."""
    from sims.judgement.scaling import LAWS
    from sims.theory.exact.prediction import LEAST_RTOL, MOST_RTOL

    assert get_args(TestName) == tuple(TESTS)
    assert get_args(LawName) == tuple(LAWS)
    for rtol, allowed in ((LEAST_RTOL, True), (MOST_RTOL, True), (LEAST_RTOL / 2, False),
                          (MOST_RTOL * 2, False)):  # fmt: skip
        with nullcontext() if allowed else pytest.raises(InputError, match="rtol: got"):
            parse(TheorySpec, {"order": "exact", "rtol": rtol}, "file")


def results_with(estimates=None, predictions=None):
    """Results of the points p0 to p2, whose attributes and variables are these."""
    marks = {"p0": {}, "p1": {}, "p2": {}} | (estimates or {})
    return SimpleNamespace(
        points=list(marks),
        estimates={name: xr.Dataset(attrs=attrs) for name, attrs in marks.items()},
        predictions=predictions or {},
    )


SUPPORTED = Finding("supported", 0.1, (0.0, 0.2), 0.5, 0.95, 8, "every effect within", 0.01)
FAULT = {"faults": ["12 of 640 values are not finite"]}


@pytest.mark.parametrize("verdict", ["supported", "refuted"])
def test_nothing_is_decided_over_a_fault(verdict):
    finding = replace(SUPPORTED, verdict=verdict, needs={"p1": 40.0})
    found = examined(finding, FAMILY, results_with({"p1": FAULT, "p2": FAULT}))
    assert (found.verdict, found.p_value, found.needs) == ("inconclusive", 1.0, {})
    assert found.reason.startswith(
        "no evidence: 12 of 640 values are not finite (point p1 and 1 more); the numbers alone: "
    )
    theory = {"p0": xr.Dataset(attrs={"faults": ["lost in rounding"]})}
    assert "lost in rounding" in examined(finding, FAMILY, results_with({}, theory)).reason


def test_faults_of_points_that_an_effect_does_not_rest_on_are_not_its_own():
    assert examined(SUPPORTED, FAMILY[:1], results_with({"p1": FAULT})) == SUPPORTED
    # A sampled effect that names none may rest on any; one that is not sampled rests on none.
    nameless = [Effect("e", 0.1, 0.01, 16)]
    assert examined(SUPPORTED, nameless, results_with({"p1": FAULT})).verdict == "inconclusive"
    assert examined(SUPPORTED, [Effect("e", 0.1)], results_with({"p1": FAULT})) == SUPPORTED


def test_cautions_stand_in_the_reason():
    caution = {"cautions": ["a head attends to 1.2 keys at some query"]}
    found = examined(SUPPORTED, FAMILY, results_with({"p0": caution}))
    assert (found.verdict, found.p_value) == ("supported", 0.01)
    assert found.reason == (
        "every effect within; note: a head attends to 1.2 keys at some query (point p0)"
    )


def test_of_several_cautions_the_first_is_named_and_the_others_are_counted():
    marks = {"p0": {"cautions": ["first", "second"]}, "p1": {"cautions": ["third", "first"]}}
    found = examined(SUPPORTED, FAMILY, results_with(marks))
    assert found.reason == "every effect within; note: first (point p0 and 1 more), and 2 more"


def test_empty_neighbourhoods_need_a_theory_that_counts_them():
    """Reported where exact theory knows P(empty), or where there is no theory to compare with."""
    empty = {"empty_rate": 0.1, "cautions": ["no key in reach in 0.1 of all cases"]}
    knows = {"p0": xr.Dataset({"empty_probability": 0.1})}
    for predictions in ({}, knows):
        found = examined(SUPPORTED, FAMILY, results_with({"p0": empty}, predictions))
        assert found.verdict == "supported"
        assert "no key in reach" in found.reason
    found = examined(SUPPORTED, FAMILY, results_with({"p0": empty}, {"p0": xr.Dataset()}))
    assert found.verdict == "inconclusive"
    assert "does not count empty neighbourhoods" in found.reason
