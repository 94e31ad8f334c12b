"""Answers on made-up effects: intervals cover, words and "always" are right, effects are theirs."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from sims.base.arrays import extremum
from sims.judgement.answers import answer, read_answers, write_answers
from sims.judgement.changes import changes
from sims.judgement.effects import Effects, gap, outcome_over_pairs, share, sized_outcome, slope
from sims.judgement.families import adjusted
from sims.judgement.outcomes import outcome_calls
from sims.judgement.summaries import summarize
from sims.judgement.tally import Tally, tally, word_of
from sims.judgement.wording import percent
from sims.report.claims import page
from sims.study.schema import QuestionSpec
from tests.by_hand import refused

RNG = np.random.default_rng()
ROWS = 200
PARAMETERS = pd.DataFrame({"s": np.linspace(0, 1, 1000), "kernel": ["gaussian", "softmax"] * 500})

NONE = PARAMETERS[[]]


@pytest.fixture(autouse=True)
def _same_draws(monkeypatch):
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(5))


def asked(effects, parameters=PARAMETERS, smoke=False, labels=None, **changes):
    declared = {
        "id": "falls",
        "question": "Does it fall?",
        "asks": effects.kind,
        "effect": "falls",
        "status": "confirmatory",
    }
    if effects.size is not None:
        declared["quantity"] = "error"
    question = QuestionSpec.model_validate(declared | changes)
    origin = {"experiment": "made_up", "law": "made up"}
    return answer(question, effects, parameters, smoke=smoke, labels=labels, **origin)


def batches(truth, error=0.1, draws=32, skewed=False):
    """Batches, normal or of skewness 2, of a given standard error of their mean."""
    shape = len(truth), draws
    noise = RNG.exponential(size=shape) - 1 if skewed else RNG.standard_normal(shape)
    return truth[:, None] + error * draws**0.5 * noise


def simulated(*moments, skewed=False, **fields):
    return share(batches(*moments, skewed=skewed), **fields)


def test_intervals_cover():
    """Of a share and of T95, in 95 % of samples, with Monte Carlo errors on every problem."""
    covered = {"share": 0, "T95": 0}
    for _ in range(200):
        truth = RNG.normal(0.3, 1, ROWS)
        made = summarize(simulated(truth), np.ones(ROWS, bool)).simulated
        covered["share"] += made.interval[0] <= 0.61791 <= made.interval[1]
        gaps = gap(1 + batches(RNG.exponential(0.01, ROWS), 0.002), np.ones(ROWS))
        low, high = summarize(gaps, np.ones(ROWS, bool)).within_interval
        covered["T95"] += low <= 0.01 * np.log(20) <= high
    assert min(covered.values()) >= 184, covered  # of 95 %, less once in 100
    test = binomtest(57, 100).proportion_ci(), binomtest(60, 100).proportion_ci()
    made = tally(np.repeat([1.0, 0.0, -1.0], [57, 3, 40]))
    assert made.interval == pytest.approx((test[0].low, test[1].high))
    assert (tally(np.ones(9)).interval[1], tally(-np.ones(9)).interval[0]) == (1, 0)


@pytest.mark.parametrize(
    ("share_of_truth", "word"),
    [(1.0, "nearly always"), (0.85, "usually"), (0.5, "sometimes"), (0.1, "rarely"), (0, "never")],
)
def test_words_and_always(share_of_truth, word):
    """A planted false claim is called false; a true one is not, though one call in 700 is wrong."""
    truth = np.where(np.arange(ROWS) < share_of_truth * ROWS, 1.0, -1.0)
    made = asked(simulated(truth), says="always")
    assert (made.word, made.always) == (word, "no" if share_of_truth < 1 else "not refuted")
    assert made.result.problems == made.result.simulated.total == ROWS
    assert made.result.simulated.bracket[0] == pytest.approx(share_of_truth, abs=0.01)
    assert (made.counterexample is None) == (share_of_truth == 1)
    assert asked(simulated(truth), smoke=True).word == "too few to say"


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ((95, 5), "nearly always"),
        ((94, 6), "usually"),
        ((67, 33), "usually"),
        ((66, 34), "sometimes"),
        ((34, 66), "sometimes"),
        ((33, 67), "rarely"),
        ((0, 80), "never"),
        ((0, 79), "too few to say"),
        ((1, 79), "rarely"),
    ],
)
def test_a_share_gives_the_word_and_never_needs_the_interval(counts, word):
    """An interval across an edge leaves no word open; half of undecided problems count."""
    holds, fails = counts
    assert word_of(Tally(holds, fails, 0)) == word
    assert word_of(Tally(50, 10, 40)) == "usually"
    assert word_of(Tally(0, 60, 20)) == "rarely"


def test_an_upper_bound_on_failures_covers():
    """Of a share of 3 %, in 95 % of 2,000 samples; fewer than 1,870 are seen once in 1,000 runs."""
    fails = RNG.binomial(150, 0.03, 2000)
    bounds = np.array([Tally(150 - count, count, 30).most_failing for count in range(20)])
    assert (bounds[fails] >= 0.03).sum() > 1870
    assert Tally(100, 0, 0).most_failing == pytest.approx(1 - 0.05**0.01)


@pytest.mark.parametrize(
    ("falls", "right"),
    [
        ([0.05, -0.0099, 0.0, 0.02], {1}),
        ([0.05, -0.0101, 0.0, 0.02], {-1}),
        ([0.0101, 0.0, 0.0, 0.0], {1}),
        ([0.0099] * 4, {2}),
    ],
)
def test_outcomes_at_an_edge_are_called_wrongly_once_in_a_hundred(falls, right):
    """Over four pairs and three looks, at 16 batches of a spread that decides few problems.

    Of 4,000 problems at most 40 are expected, and 60 are exceeded once in 1,000 runs.
    """
    draws = np.array(falls) + 0.02 * RNG.standard_normal((4000, 64, 4))
    call = np.zeros(4000)
    for batches in (16, 32, 64):
        seen = draws[:, :batches]
        error = seen.std(1, ddof=1) / batches**0.5
        new = outcome_calls(seen.mean(1), error, np.full(4000, batches - 1.0), 3, 0.01)
        call = np.where(call == 0, new, call)
    assert (~np.isin(call, [0, *right])).sum() <= 60
    sure = outcome_calls(np.array([falls]), np.full((1, 4), 1e-6), np.array([9.0]), 3, 0.01)
    assert set(sure) == right


def test_level_problems_count_as_the_question_says():
    falls = np.repeat([0.05, -0.05, 0.001], [60, 20, 120])[:, None] * np.ones(4)
    draws = [row + 1e-5 * RNG.standard_normal((32, 4)) for row in falls]
    effects = outcome_over_pairs(draws, looks=3, size=np.linspace(0, 1, ROWS))
    made = asked(effects, tolerance="order", says="always")
    assert (made.word, made.as_stated()) == ("rarely", "false as stated")
    counted = made.result.simulated
    assert (counted.holds, counted.fails, counted.level, counted.bracket[0]) == (60, 20, 120, 0.3)
    assert made.result.size == pytest.approx((0.25, 0.5, 0.75))
    wider = asked(replace(effects, value=3 * effects.value), tolerance="order").result
    shares = [(each.holds, each.fails, each.level) for each in wider.beyond.values()]
    assert shares == [(60, 20, 120), (0, 0, 200)]
    assert (made.always, falls[made.counterexample, 0]) == ("no", -0.05)
    never_rises = asked(effects, tolerance="order", level_holds=True)
    assert (never_rises.word, never_rises.result.simulated.bracket[0]) == ("usually", 0.9)
    assert never_rises.as_stated() == ""
    assert asked(effects, tolerance="order", built_in="by law").as_stated() == "built in (by law)"


def test_where_one_field_decides_there_is_no_share():
    """One kernel holds always and one never does; with some exceptions it is a share."""
    kernel = np.array(["gaussian", "softmax"] * 100)
    truth = np.where(kernel == "gaussian", 1.0, -1.0)
    table = pd.DataFrame({"s": RNG.random(ROWS), "kernel": kernel})
    made = asked(simulated(truth), table)
    assert made.word == "depends on a condition"
    assert made.conditions.in_words() == "kernel: 100 % for gaussian; 0 % for softmax"
    truth[:40:4] *= -1
    assert asked(simulated(truth), table).conditions is None


def test_parameters_that_change_nothing_are_seldom_named():
    """Of 20 parameters one is named in 5 % of samples; without Bonferroni's step in 64 %."""
    named = 0
    for _ in range(100):
        effects = Effects(np.where(RNG.random(ROWS) < 0.5, 1.0, -1.0), np.zeros(ROWS), "share")
        table = pd.DataFrame(RNG.random((ROWS, 20)), columns=[f"p{k}" for k in range(20)])
        named += bool(changes(effects, np.ones(ROWS, bool), table, by_theory=False))
    assert named <= 13  # 5 %, less once in 1,000


def test_a_true_claim_is_seldom_refuted():
    """Of 400 ledgers with 5 claims that all hold, just so, in every problem: 5 % at the most."""
    refuted = 0
    for _ in range(400):
        rows = [asked(simulated(np.zeros(80)), NONE, id=f"q{i}", says="always") for i in range(5)]
        assert {one.always for one in rows} <= {"no", "not refuted"}
        refuted += any(one.always == "no" for one in adjusted(rows, [[f"q{i}" for i in range(5)]]))
    assert refuted <= 30
    values = {"a": 0.02, "b": 0.001, "c": 0.015, "added": 1e-9}
    four = [replace(rows[0], id=id, p_value=p) for id, p in values.items()]
    by_holm = [(one.adjusted, one.family) for one in adjusted(four, [["a", "b", "c", "later"]])]
    assert by_holm == [(0.045, 4), (0.004, 4), (0.045, 4), (None, 0)]
    assert adjusted(four, [[*"abcde"]])[2].always == "not refuted"


def test_a_failure_counts_if_fresh_draws_confirm_it():
    """A claim that just holds in all of 200 problems is called false in 5 % of 400 samples.

    One problem that fails by five standard errors among 199 that hold by three is named in 87 %
    (91 % without the correction for skewness, 80 % by Bonferroni's test); a failure of one half of
    the draws is none.
    """
    refuted = found = 0
    for _ in range(400):
        edge = asked(simulated(np.zeros(ROWS), skewed=True), NONE)
        refuted += edge.always == "no"
        planted = asked(simulated(np.r_[np.full(ROWS - 1, 0.3), -0.5]), NONE)
        found += planted.counterexample == ROWS - 1
    assert refuted <= 32  # 5 %, less once in 100
    assert found >= 324  # 87 %, less once in 1,000
    half = batches(np.ones(ROWS))
    half[7, ::2] -= 3
    assert asked(share(half), NONE).counterexample is None
    by_theory = Effects(np.r_[1.0, -1e-9], np.zeros(2), "share")
    assert (asked(by_theory, NONE).always, asked(by_theory, NONE).counterexample) == ("no", 1)


def test_theory_is_asked_of_more_problems_than_simulation():
    s = PARAMETERS["s"].to_numpy()
    truth = np.where(RNG.random(1000) < s, 1.0, -1.0)
    effects = simulated(truth[:ROWS], predicted=truth.copy(), valid=s < 0.995)
    effects.predicted[:10] *= -1
    strata = {"large": {"s": {"at_least": 0.5}}, "few": {"s": {"at_most": 0.01}}}
    made = asked(effects, strata=strata)
    assert (made.result.theory.total, made.result.theory.undecided, made.result.contradictions) == (
        1000,
        5,
        10,
    )
    assert made.result.theory.holds == (effects.predicted[s < 0.995] > 0).sum()
    assert (made.word, list(made.strata)) == ("sometimes", ["large"])
    assert made.strata["large"].theory.total == 500
    (change,) = made.where
    assert (change.parameter, len(change.values)) == ("s", 4)
    assert change.values == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=0.1)
    assert change.in_words() == (
        f"s: {percent(change.values[0])} in the lowest quarter of problems, "
        f"{percent(change.values[-1])} in the highest"
    )
    named = asked(effects, labels={"s": "kernel"})
    assert [change.parameter for change in named.where] == ["kernel"]
    part = {"text": "softmax", "where": {"kernel": "softmax", "s": {"at_least": 0.1}}}
    restricted = asked(effects, restrict=part)
    assert (restricted.result.theory.total, restricted.result.problems, restricted.restriction) == (
        450,
        50,
        "softmax",
    )
    assert (restricted.word, restricted.result.contradictions) == ("sometimes", 0)
    with refused(r"column of parameters: got 'h'; allowed: s, kernel"):
        asked(effects, strata={"a": {"h": 1.0}})
    with refused(r"effects of falls: got '200 simulated, 1000 predicted'"):
        asked(effects, PARAMETERS[:500])


@pytest.mark.parametrize(
    ("kind", "by_theory", "left_out"),
    [
        *[(k, t, "no meaning") for k in ("share", "mean") for t in (True, False)],
        *[(k, t, "no parameter") for k in ("share", "mean") for t in (True, False)],
        ("gap", False, "no meaning"),
        ("gap", False, "no parameter"),
        ("share", True, "out of range"),
        ("mean", True, "out of range"),
        ("share", False, "undecided"),
    ],
)
def test_groups_and_the_whole_agree(kind, by_theory, left_out):
    """What has no answer is in no group: a group's number lies where its own problems' effects do.

    Problems of s above ½ hold and have large effects, those below fail and have small ones; every
    third is left out, with effects that would move each group's number.
    """
    s = (np.arange(ROWS) + 0.5) / ROWS
    silent = np.arange(ROWS) % 3 == 0
    value = np.where(s < 0.5, -1.0, 2.0) * RNG.uniform(1, 1.1, ROWS)
    value[silent] = np.where(s < 0.5, 90.0, -90.0)[silent]
    valid, error = np.ones(ROWS, bool), np.full(ROWS, 1e-3)
    if left_out == "no meaning":
        value[silent] = np.nan
    elif left_out == "no parameter":
        s[silent] = np.nan
    elif left_out == "out of range":
        valid = ~silent
    else:
        error[silent] = 1e9
    effects = Effects(value, error, kind, value if by_theory else None, valid)
    table = pd.DataFrame({"s": s, "few": np.arange(ROWS) < 19})
    (change,) = changes(effects, np.ones(ROWS, bool), table, by_theory)
    assert change.parameter == "s"
    low, high = {"share": (0, 1), "gap": (1.1, 2.2), "mean": (-1.05, 2.1)}[kind]
    assert change.values == pytest.approx([low, low, high, high], rel=0.05, abs=1e-9)
    if kind == "share" and left_out != "no parameter":
        both = [summarize(effects, half) for half in (s < 0.5, s > 0.5)]
        parts = [one.theory if by_theory else one.simulated for one in both]
        assert [(one.holds, one.fails) for one in parts] == [(0, 66), (67, 0)]
    if kind == "mean" and left_out != "no parameter":
        assert summarize(effects, s < 0.5).value == pytest.approx(low, rel=0.01)


def test_the_page_of_an_answer_names_the_reason_of_undecided_problems():
    """Batches of simulation; theory's range, with simulation or alone."""
    silent = np.arange(ROWS) < 0.06 * ROWS
    value = np.where(silent, 0.0, 1.0)
    everywhere = np.ones(ROWS)
    alone = np.where(silent, np.inf, 0.0)[:, None]
    monte_carlo = "Monte Carlo error after 32 batches"
    outside = "outside theory's range"
    by_theory = simulated(everywhere, 0.5, predicted=everywhere, valid=~silent)
    wide = gap(1 + 0.05 * batches(1 - value, 0.01), everywhere)
    cases = [
        (simulated(value, 0.01), None, monte_carlo, "simulation"),
        (by_theory, None, outside, "theory; no contradictions"),
        (Effects(everywhere[:, None], alone, "outcome"), "order", outside, "theory"),
        (wide, "methods", monte_carlo, "both"),
    ]
    for effects, tolerance, reason, method in cases:
        made = asked(effects, tolerance=tolerance)
        assert made.result.decided_by() == method
        assert f" and is undecided in 6 % ({reason})." in page([made])


def test_gaps_and_their_tolerance(tmp_path):
    truth = np.where(np.arange(ROWS) < 0.9 * ROWS, 0.02, 0.2)
    values = (1 + truth)[:, None] * 3 * (1 + 0.02 * RNG.standard_normal((ROWS, 32)))
    made = asked(gap(values, np.full(1000, 3.0)), tolerance="methods", says="always")
    assert (made.result.near.holds, made.result.near.fails) == (180, 20)
    assert (made.always, made.word) == ("no", "usually")
    assert 0.18 < made.result.within[0] < 0.2 < made.result.within[1] < 0.22
    assert 0.01 < made.result.visible < 0.02
    assert asked(gap(values, np.full(1000, 3.0)), status="exploratory").word == ""
    write_answers([made], tmp_path / "answers.json", "answers")
    assert read_answers(tmp_path / "answers.json") == [made]


def test_stock_effects():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    curves = np.stack([x**-1.05, x**-1.4, np.exp(-x / 3)])
    each = np.array([-1.0, -1.35, -1.0])
    found = slope(x, np.repeat(curves[:2, None], 4, 1), each, rival=x, predicted=curves)
    np.testing.assert_allclose(found.value, [0.05, 0.05], atol=1e-12)
    np.testing.assert_allclose(found.predicted, [0.05, 0.05, -0.1], atol=1e-12)
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    noisy = curves[:1, None] * (1 + 0.02 * RNG.standard_normal((1, 4000, 4)))
    by_hand = [np.polyfit(np.log(x), np.log(m), 1)[0] for m in noisy[0].reshape(40, 100, 4).mean(1)]
    error = slope(x, noisy, -1.0).error
    np.testing.assert_allclose(error, np.std(by_hand) / np.sqrt(40), rtol=0.4)
    grid = np.array([[3, 2, 1.0, 2], [1, 2, 3, 4], [3, 1, 2, np.nan], [3, 2, 1, np.nan]])
    np.testing.assert_array_equal(extremum(grid), [2, np.nan, 1, np.nan])


def test_estimates_are_means_over_problems():
    share_of_pairs = np.repeat([0.0, 0.5, 1.0, 0.5], 50)
    made = asked(Effects(share_of_pairs, np.zeros(ROWS), "mean"), status="exploratory")
    assert made.result.value == 0.5
    assert made.result.interval[1] - 0.5 == pytest.approx(1.972 * np.sqrt(0.125 / 199), rel=1e-3)
    assert (made.word, made.always, made.counterexample) == ("", "", None)
    assert asked(simulated(np.ones(ROWS)), status="exploratory").word == ""


def test_a_failure_is_told_as_the_question_compares():
    """The step of a ladder with both numbers, a rival, or the effect alone; a fall is negative."""
    falls = np.tile([0.1, -0.5], (ROWS, 1))[:, None] * np.ones((32, 1))
    steps = outcome_over_pairs(falls + 1e-3 * RNG.standard_normal(falls.shape), size=np.ones(ROWS))

    def told(effects, **fields):
        return asked(effects, tolerance="order", **fields).worst["effect"]

    ladder = told(steps, compared=["a", "b", "c"])
    assert re.fullmatch(
        r"From b to c the error rises by 50 % \(± \S+ %\): from 0.9 to 1.35 of that of a\.", ladder
    )
    assert told(steps, compared=["x", "y"]).startswith("Compared with y, the error rises by 50 % (")
    assert "the claim needs a positive one" in told(steps)
    with refused("questions, falls, compared"):
        told(steps, compared=["x"])
    falling = sized_outcome(falls[..., 1])
    assert told(replace(falling, error=falling.error + 0.01)).startswith("There the error rises")


def test_of_certain_failures_the_largest_is_told():
    """Theory states no error: all its failures are certain."""
    value = np.where(np.arange(ROWS) == 7, -3.0, -1.0)
    effects = Effects(value, np.zeros(ROWS), "share")
    assert effects.confirmed_failure(np.ones(ROWS, bool)) == (7, 0.0)
