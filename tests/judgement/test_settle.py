"""Verdicts are three-valued, simultaneous, and never won by missing data."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from sims.errors import InputError
from sims.judgement.intervals import fixed_half_width
from tests.judgement.helpers import effects, judged

TESTS = ("equivalence", "bound", "ordering")


@pytest.mark.parametrize(
    ("test", "values", "verdict"),
    [
        ("equivalence", [0.01, -0.02], "supported"),
        ("equivalence", [0.01, -0.30], "refuted"),
        ("equivalence", [0.01, 0.095], "inconclusive"),
        ("bound", [-5.0, 0.05], "supported"),
        ("bound", [-5.0, 0.15], "refuted"),
        ("bound", [-5.0, 0.10], "inconclusive"),
        ("ordering", [0.3, 0.2], "supported"),
        ("ordering", [0.2, -0.3], "refuted"),
        ("ordering", [0.2, 0.11], "inconclusive"),
    ],
)
def test_three_verdicts(test, values, verdict):
    finding = judged(test, effects(values))
    assert finding.verdict == verdict
    assert finding.interval[0] < finding.effect < finding.interval[1]
    assert finding.effect == values[1]  # the one that decided
    assert ("would decide" in finding.reason) <= (verdict == "inconclusive")


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("values", "errors", "batches"),
    [
        ([], [], 64),
        ([0.0, math.nan], 0.1, 64),
        ([0.5], math.nan, 64),
        ([0.5], -1.0, 64),
        ([math.inf], 1, 64),
        ([0.5], 0.1, 1),
    ],
)
def test_missing_data_support_nothing(test, values, errors, batches):
    finding = judged(test, effects(values, errors, batches), margin=9.0)
    assert (finding.verdict, finding.interval) == ("inconclusive", None)
    assert "missing" in finding.reason


@pytest.mark.parametrize(
    ("values", "error", "outcome"),
    [
        ([0.05], 0.05, "supported"),
        ([0.0, 0.02, 0.07], 0.05, "supported"),  # the neediest point decides
        ([0.13, 0.0, 0.2], 0.15, "refuted"),  # the clearest one outside does, at its share
    ],
)
@pytest.mark.parametrize("skewness", [0.0, 0.8])
def test_replicates_that_would_decide_are_enough(values, error, outcome, skewness):
    """The skewness of an estimate falls with the root of their number, as its error does."""
    kept = judged("equivalence", effects(values, error, skewness=skewness))
    needed = int(kept.reason.split("about ")[1].split(" ")[0].replace(",", ""))
    assert kept.verdict == "inconclusive"
    for share, verdict in ((1.0, outcome), (0.9, "inconclusive")):
        more = share * needed / 512
        found = effects(values, error / more**0.5, 64 * more, skewness=skewness / more**0.5)
        assert judged("equivalence", found).verdict == verdict


def test_interval_shown_is_the_one_that_decided():
    """Of the worst point alone if all must be inside; of all points at once otherwise."""
    for values, verdict, share in (
        ([0.0, 0.02, -0.05], "supported", 1),
        ([0.0, 0.02, -0.09], "inconclusive", 3),
        ([0.0, 0.15, -0.4], "refuted", 3),
    ):
        found = judged("equivalence", effects(values))
        half = float(fixed_half_width(0.01, 63, 0.05 / share))
        assert found.verdict == verdict
        assert found.interval == pytest.approx((values[2] - half, values[2] + half))


def test_support_needs_no_share_of_the_level():
    """Intersection–union: k points inside are supported like one; to refute, k share."""
    # 1 − 0.2 = 0.8 inside, just more than the half width of one point.
    error = 0.79 / fixed_half_width(1.0, 63, 0.05)
    for values, verdict in (
        ([0.2] * 50, "supported"),
        ([1.8], "refuted"),
        ([1.8] + [0.0] * 49, "inconclusive"),
    ):
        assert judged("equivalence", effects(values, error), margin=1.0).verdict == verdict


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("others", [0, 6])
def test_a_refutation_pays_for_every_effect_that_was_looked_at(test, others):
    """Bonferroni: one effect 4.5 errors outside has k times its own two-sided p-value."""
    inside, outside = (0.9, 0.05) if test == "ordering" else (0.0, 0.95)
    found = effects(np.append(np.full(others, inside), outside), 0.1, 100)
    refuted = judged(test, found, margin=0.5)
    assert refuted.verdict == "refuted"
    assert refuted.p_value == pytest.approx((others + 1) * 2 * t.sf(4.5, 99), rel=1e-6)


def test_p_value_is_the_least_level_that_decides():
    for values in ([0.5, 0.4], [-0.5, 0.4]):
        found = effects(values, 0.1, skewness=0.1)
        decided = judged("ordering", found, margin=0.0, level=0.9)
        assert decided.verdict != "inconclusive"
        for share, expected in ((1.01, decided.verdict), (0.99, "inconclusive")):
            level = 1 - share * decided.p_value
            assert judged("ordering", found, margin=0.0, level=level).verdict == expected


def test_effects_without_sampling():
    assert judged("equivalence", effects([0.0, 0.1], 0.0, np.inf)).verdict == "supported"
    level = judged("ordering", effects([0.0], 0.0, np.inf), margin=0.0)  # not a rise
    assert (level.verdict, level.needs) == ("inconclusive", {})
    assert "no affordable" in level.reason
    with pytest.raises(InputError, match="not sampled"):
        judged("equivalence", effects([0.0], 0.1, np.inf))


@pytest.mark.parametrize("rounding", [0.0, 1e-17])
def test_values_that_do_not_vary_support_nothing(rounding):
    """Reused draws look like certainty. What they may do is refute."""
    for test, inside, outside in (
        ("equivalence", 0.01, 0.2),
        ("bound", -3, 0.2),
        ("ordering", 3, -1),
    ):
        for values in ([inside], [inside, inside]):
            found = judged(test, effects(values, [rounding, 0.001][: len(values)]))
            assert (found.verdict, found.needs, found.p_value) == ("inconclusive", {}, 1.0)
            assert "do not vary" in found.reason
        assert judged(test, effects([inside, outside], rounding)).verdict == "refuted"


def test_few_batches_decide_nothing_and_say_so():
    """However far inside or outside they lie; and they ask for as many as it takes."""
    for value, verdict in ((0.0, "supported"), (5.0, "refuted")):
        few, enough = (
            judged("equivalence", [replace(e, points=("a",))], margin=1.0)
            for e in effects([value, value], 1e-3, [63, 64])
        )
        assert few.verdict == "inconclusive"
        assert (few.p_value, few.needs) == (1.0, {"a": pytest.approx(64)})
        assert "open at 1 of 1 (1 with fewer than 64 batches)" in few.reason
        assert enough.verdict == verdict


def at_points(found, *points):
    return [replace(e, points=p) for e, p in zip(found, points, strict=True)]


def test_open_points_are_named():
    points = ("a",), ("b", "c"), ("d",)
    errors = [0.001, 0.05, 0.05]
    finding = judged("equivalence", at_points(effects([0.0, 0.02, 0.09], errors), *points))
    assert set(finding.needs) == {"b", "c", "d"}
    assert finding.needs["d"] > finding.needs["b"] == finding.needs["c"] > 64
    # One point that seems outside would settle the claim: the others need nothing.
    finding = judged("equivalence", at_points(effects([0.0, 0.09, 0.15], errors), *points))
    assert set(finding.needs) == {"d"}


@pytest.mark.parametrize(
    ("value", "slack", "verdict"),
    [
        (0.02, 0.0, "supported"),
        (0.02, 0.06, "supported"),
        (0.02, 0.09, "inconclusive"),
        (0.02, 0.5, "inconclusive"),  # not even when the bound alone is above the margin
        (-0.2, 0.05, "refuted"),
        (-0.2, 0.12, "inconclusive"),
    ],
)
def test_bounds_come_off_the_room_and_widen_the_interval(value, slack, verdict):
    size = abs(value)
    # One-sided claims have the same room on their one side.
    for test, one in (("equivalence", value), ("bound", size), ("ordering", 0.2 - size)):
        alone, found = (judged(test, effects([one], 1e-4, bound=b)) for b in (0.0, slack))
        assert found.verdict == verdict
        assert found.effect == one
        wider = np.subtract(found.interval, alone.interval)
        np.testing.assert_allclose(wider, [-slack, slack], atol=1e-12)


def test_only_batches_that_can_tell_are_asked_for():
    """Outside whatever the bound: they tell. By the bound alone: none do."""
    found = at_points(effects([1.15, 0.0], 0.05, bound=[0.05, 0.0]), ("a",), ("b",))
    outside = judged("equivalence", found, margin=1.0, level=0.9999)
    assert (outside.verdict, outside.needs.keys()) == ("inconclusive", {"a"})
    found = effects([0.0, 0.0], 1e-4, [64, 96], bound=[0.2, 0.05])
    either = judged("bound", at_points(found, ("a",), ("b",)))
    assert (either.verdict, either.needs) == ("inconclusive", {})
    assert "either side of the margin" in either.reason


def test_identity():
    for gaps, verdict in (
        ([[1e-16, -2e-15]], "supported"),
        ([1e-16, -1e-3], "refuted"),
        ([1e-16, math.nan], "inconclusive"),
        ([], "inconclusive"),
    ):
        found = [replace(effects([0.0])[0], values=np.array(gaps))]
        assert judged("identity", found, margin=1e-14).verdict == verdict
    ill = effects([8e-15, 8e-16], condition=[10.0, 1.0])
    assert judged("identity", ill, margin=1e-15).effect == pytest.approx(8e-16)


@pytest.mark.parametrize(
    ("behind", "fewest"), [((40, 9, 25), 9), ((40, None, 25), 25), ((None,), 512), ((), 512)]
)
def test_a_finding_rests_on_the_fewest_replicates_of_any_effect(behind, fewest):
    """An effect that does not say has the 512 of its experiment."""
    found = [replace(effects([0.0])[0], replicates=count) for count in behind]
    assert judged("equivalence", found).replicates == fewest
