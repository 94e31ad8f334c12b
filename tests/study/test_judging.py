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
from sims.judgement import Finding, Rule
from sims.judgement.tests import TESTS
from sims.study.judging import chosen, examined
from sims.study.schema import ClaimSpec, TestName, TheorySpec
from sims.validation import parse

RNG = np.random.default_rng(3)
VALUES = RNG.normal([0.1, 0.4, 0.9], 0.2, (64, 3))
FAMILY = [of_batches(f"e{i}", v, f"p{i}", at={"n_eff": 10.0 * i}) for i, v in enumerate(VALUES.T)]


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
        ({"test": "rate"}, "expected: got None; allowed: a number, for a rate"),
        ({"expected": 1.0}, "expected: got 1.0; allowed: nothing, for a bound"),
    ],
)
def test_a_claim_has_what_its_test_uses_and_nothing_else(fields, words):
    """What a test does not use would be passed over."""
    with pytest.raises(InputError, match=words):
        Rule.of(claim().model_copy(update=fields))


def test_the_schema_lists_the_tests_and_the_accuracies():
    """They stand in the schema as words and numbers, since their modules are slow to import."""
    from sims.theory.exact.prediction import LEAST_RTOL, MOST_RTOL

    assert get_args(TestName) == tuple(TESTS)
    for rtol, allowed in (
        (LEAST_RTOL, True),
        (MOST_RTOL, True),
        (LEAST_RTOL / 2, False),
        (MOST_RTOL * 2, False),
    ):
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


SUPPORTED = Finding("supported", 0.1, (0.0, 0.2), 8, "every effect within", 0.01)
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
