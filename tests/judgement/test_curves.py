"""Deviation of a curve from a law: against brute force, and verdicts that can fail."""

import numpy as np
import pytest

from sims.effects import Effect, of_batches
from sims.errors import InputError
from sims.judgement.curves import deviation
from sims.judgement.tests import Rule, decide

X = np.logspace(2, 8, 13)


def test_root_of_the_logarithm_is_off_by_a_24th():
    """Concave: the nearest line has half the largest gap from the chord."""
    s = np.linspace(0, 1, 100001)
    root = np.sqrt(np.log(1e2) + s * np.log(1e6))
    level = (root - root[0]) / (root[-1] - root[0])
    assert deviation(np.exp(np.log(1e2) + s[::100] * np.log(1e6)), root[::100]) == pytest.approx(
        np.max(level - s) / 2, rel=1e-4
    )
    assert np.max(level - s) / 2 == pytest.approx(1 / 24, rel=1e-4)


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_deviation_by_brute_force(exponent):
    rng = np.random.default_rng(3)
    x = np.logspace(1, 3, 6)
    z = np.log(x) ** exponent
    y = 2 * z + 0.3 * rng.normal(size=6)
    slopes = np.linspace(1, 3, 4001)
    rest = y - slopes[:, None] * z
    best = 0.5 * (rest.max(1) - rest.min(1)).min() / (y[-1] - y[0])
    mixed = rng.permutation(6)
    assert deviation(x[mixed], y[mixed], exponent) == pytest.approx(best, rel=1e-3)


def curve(y, batches=np.inf):
    return [
        Effect(f"n = {x:g}", float(v), x=x, replicates=0, batches=batches)
        for x, v in zip(X, y, strict=True)
    ]


def judged(y, expected=1.0):
    return decide(curve(y), Rule("deviation", 0.02, 0.95, expected=expected))


def test_verdicts_go_both_ways():
    log = 3 * np.log(X) - 2
    assert judged(log).verdict == "supported"
    assert judged(log + 0.01 * np.ptp(log) * np.cos(7 * np.log(X))).verdict == "supported"
    assert judged(np.sqrt(log)).verdict == "refuted"
    assert judged(log, 0.5).verdict == "refuted"
    assert judged(np.sqrt(np.log(X)), 0.5).verdict == "supported"


def test_no_growth_is_no_logarithm():
    for y in (np.full(13, 2.0), -np.log(X)):
        found = judged(y)
        assert (found.verdict, found.effect) == ("refuted", 1.0)


def test_missing_numbers_leave_it_open():
    y = np.log(X)
    y[4] = np.nan
    assert judged(y).verdict == "inconclusive"
    assert judged(y).reason.endswith(" values are missing: n = 10000")
    assert judged(np.where(X < 1e6, np.nan, y)).reason.endswith("n = 1000 and 5 more")
    rule = Rule("deviation", 0.02, 0.95, expected=1.0)
    assert decide(curve(np.log(X))[:3], rule).verdict == "inconclusive"


def test_only_curves_without_sampling():
    sampled = [of_batches("n = 10", np.random.default_rng(0).normal(size=64), x=10.0)]
    with pytest.raises(InputError, match="deviation"):
        decide(sampled, Rule("deviation", 0.02, 0.95, expected=1.0))
    with pytest.raises(InputError, match="expected"):
        Rule("deviation", 0.02, 0.95)
