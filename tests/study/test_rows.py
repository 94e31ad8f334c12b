"""What a row has to be able to do: come out otherwise. Read off every experiment file."""

import re

import pytest

from sims.kinds import is_tested
from sims.study.experiment import experiments, load_experiment
from sims.study.schema import Range

LEAST_MARGINS = 5
"""By which first order has to miss where exact theory is on trial."""
LEAST_SHARE = 0.5
"""Of variance, where the mean squared error is."""
EXACT = "#exact-at-every-n"
APART = {
    # Ratios of errors of pairs of lines, at 140 effective keys and more: either theory is right.
    ("diversity", "counterexamples, by both roads"),
}
"""Rows by exact theory that do not claim to tell it from first order."""


ERROR = re.compile(r"\b(errors?|MSE)\b")
PART = re.compile(r"part of the error|squared bias", re.IGNORECASE)
"""Of rows that judge parts of the error one by one, squared bias among them, or one part alone."""
NOT_THE_ERROR = {
    ("diversity", "counterexamples, by both roads"),  # ratios, under noise alone but for one
    ("diversity", "indices by both roads"),
    # Of the curve of errors its best width alone.
    ("allocation", "redundant views, both roads, growth"),
    ("allocation", "redundant views, softmax, both roads, growth"),
    ("allocation", "redundant views, fixed temperature, simulation"),
    # A ratio of errors at two temperatures, between which bias and variance change places.
    ("temperature_transfer", "loss, both roads"),
}  # fmt: skip
"""Rows of both roads that speak of errors by theory and are on something else."""
DRAWN = {
    ("collapse", "soon, β = 4"),  # after how many layers tokens are one is no algebra
    # Whether a search finds what algebra says is there, or something beyond it.
    ("kq_svd", "reached by search"), ("kq_svd", "reached"), ("kq_svd", "worst case is a sink"),
}  # fmt: skip
"""Rows held to rounding, or to whole numbers, that draws could turn nevertheless."""


def rows():
    for name in experiments():
        for claim in load_experiment(name).claims:
            yield pytest.param(name, claim, id=f"{name}: {claim.regime}")


def least(claim, fact):
    """The bound from below that a claim's ``where`` sets on a fact; 0 if it sets none."""
    bound = claim.where.get(fact)
    return (bound.at_least or 0.0) if isinstance(bound, Range) else 0.0


@pytest.mark.parametrize(("name", "claim"), list(rows()))
def test_exact_rows_tell_exact_theory_from_first_order(name, claim):
    compares = claim.formula == EXACT and claim.kind == "both roads"
    if compares and (name, claim.regime) not in APART:
        assert least(claim, "first_order_gap") >= LEAST_MARGINS * claim.margin * (1 - 1e-9)


def on_the_error(name, claim):
    """Whether a row holds an error against theory's, by what it says and not by its effects' name.

    A row that speaks of an error and of theory is one until it is listed as one on something else.
    """
    words = " ".join([claim.regime, claim.effects, claim.statement])
    compares = claim.kind == "both roads" and claim.test == "equivalence" and "theory" in words
    found = compares and bool(ERROR.search(words)) and not PART.search(words)
    return found and (name, claim.regime) not in NOT_THE_ERROR


@pytest.mark.parametrize(("name", "claim"), list(rows()))
def test_rows_on_the_error_by_theory_are_no_rows_on_the_bias(name, claim):
    if on_the_error(name, claim):
        # Budgets of heads call the same share by a shorter name.
        share = max(least(claim, "variance_share"), least(claim, "share"))
        assert share >= LEAST_SHARE


def test_rows_on_the_error_are_found_whatever_their_effects_are_called():
    """Those that there are; every exception is of a row that there is and would be found."""
    every = [(name, claim) for name in experiments() for claim in load_experiment(name).claims]
    found = {(name, claim.effects) for name, claim in every if on_the_error(name, claim)}
    assert found >= {
        ("adding_heads", "gap to first order"),
        ("allocation", "error, views"), ("allocation", "error, softmax blocks"),
        ("decomposition", "first order, mean squared error"),
        ("decomposition", "drawn, exact, mean squared error"),
        ("diversity", "errors by both roads, gaussian"),
        ("diversity", "errors by both roads, softmax"),
        ("diversity", "gains by both roads, gaussian"), ("rates", "theory against simulation"),
        ("specialization", "error by both roads"),
    }  # fmt: skip
    assert ("decomposition", "first order, squared bias") not in found
    assert ("allocation", "noise, views") not in found
    known = {(name, claim.regime): claim for name, claim in every}
    for name, regime in NOT_THE_ERROR:
        # The row's words would make it one.
        assert on_the_error("elsewhere", known[name, regime])


@pytest.mark.parametrize(("name", "claim"), list(rows()))
def test_rows_that_no_draw_could_turn_are_not_counted_as_tested(name, claim):
    """An identity is algebra; ranks of generic matrices are, too."""
    if claim.test == "identity" and is_tested(claim.kind):
        assert (name, claim.regime) in DRAWN


def tells(spec):
    """Whether a file whose rows had been seen before says what had been seen."""
    return bool(spec.seen_before) or not any(claim.seen_before for claim in spec.claims)


@pytest.mark.parametrize("name", experiments())
def test_a_file_whose_rows_had_been_seen_says_what(name):
    assert tells(load_experiment(name).spec)


def test_the_rules_can_fail():
    """Planted: rows without ``where``, ones that ask for less, one seen, a rank as if tested."""
    row = next(c for c in load_experiment("decomposition").claims if c.formula == EXACT)
    bare, loose = (
        row.model_copy(update={"where": where})
        for where in ({}, {"first_order_gap": Range(at_least=4 * row.margin)})
    )
    spec = load_experiment("decomposition").spec
    seen = [row.model_copy(update={"seen_before": "At seed 5."})]
    assert not tells(spec.model_copy(update={"seen_before": "", "claims": seen}))
    for planted in (bare, loose):
        with pytest.raises(AssertionError):
            test_exact_rows_tell_exact_theory_from_first_order("decomposition", planted)
    shown = next(
        c
        for c in load_experiment("diversity").claims
        if c.effects == "errors by both roads, softmax"
    )
    for where in ({}, {"variance_share": Range(at_least=0.4)}):
        with pytest.raises(AssertionError):
            test_rows_on_the_error_by_theory_are_no_rows_on_the_bias(
                "diversity", shown.model_copy(update={"where": where})
            )
    rank = next(c for c in load_experiment("collapse").claims if c.id == "mlp-span")
    with pytest.raises(AssertionError):
        test_rows_that_no_draw_could_turn_are_not_counted_as_tested(
            "collapse", rank.model_copy(update={"kind": "simulation"})
        )
