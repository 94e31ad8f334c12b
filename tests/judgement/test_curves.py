"""Deviation of a curve from a law: against brute force, and verdicts that can fail."""

import numpy as np
import pytest

from sims.effects import Effect
from sims.errors import InputError
from sims.judgement import Rule, decide
from sims.judgement.curves import deviation, deviation_error

X = np.logspace(2, 8, 13)


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


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_error_of_a_deviation_holds_what_errors_of_the_curve_can_do_to_it(exponent):
    """Curves anywhere within their bounds, at the ends of them mostly; and it is no loose one."""
    rng, largest = np.random.default_rng(4), 0.0
    for _ in range(60):
        x = np.logspace(1, 3, 6)
        y = np.log(x) ** 0.8 + 0.02 * rng.normal(size=6)
        bounds = rng.uniform(0, 0.1, 6)
        off = deviation_error(x, y, bounds, exponent)
        moved = y + bounds * rng.choice([-1, 1], 6)
        change = abs(deviation(x, moved, exponent) - deviation(x, y, exponent))
        assert change <= off + 1e-9
        largest = max(largest, change / off)
        mixed = rng.permutation(6)
        again = deviation_error(x[mixed], y[mixed], bounds[mixed], exponent)
        assert again == pytest.approx(off)
    assert largest > 0.6


def test_what_falls_for_sure_is_off_by_one_for_sure():
    assert deviation_error(X, -np.log(X), np.full(13, 0.1)) == 0.0
    for slope in (0.001, -0.001):
        assert deviation_error(X, slope * np.log(X), np.full(13, 0.1)) == np.inf
    assert deviation_error(X, np.full(13, 2.0), np.zeros(13)) == 0.0


def judged(y, expected=1.0, bound=0.0, batches=np.inf):
    found = [
        Effect(f"n = {x:g}", float(v), x=x, batches=batches, bound=off)
        for x, v, off in zip(X, y, np.broadcast_to(bound, 13).tolist(), strict=True)
    ]
    return decide(found, Rule("deviation", 0.02, 0.95, expected=expected))


def test_a_verdict_holds_wherever_in_its_bounds_the_curve_lies():
    """A rise of 10 that is off by 0.8 % and by 4.2 %: open from where a bound reaches 2 %."""
    log = np.log(X) / np.log(1e6) * 10
    near, far = log + 0.08 * np.cos(12 * np.arange(13)), np.sqrt(np.log(X)) * 10
    for y, reached, verdict in ((near, (0.05, 0.2), "supported"), (far, (0.05, 0.5), "refuted")):
        exact = judged(y)
        small, large = (judged(y, bound=np.eye(13)[6] * off) for off in reached)
        assert exact.verdict == small.verdict == verdict
        assert small.effect == exact.effect
        assert exact.interval == (exact.effect, exact.effect)
        share = reached[0] / (y[-1] - y[0])
        assert small.interval == pytest.approx((exact.effect - share, exact.effect + share))
        assert (large.verdict, large.p_value) == ("inconclusive", 1.0)
        assert "off by up to" in large.reason
    unknown = judged(0.001 * log, bound=np.full(13, 0.1))
    assert (unknown.verdict, unknown.interval) == ("inconclusive", None)


def test_verdicts_go_both_ways():
    log = 3 * np.log(X) - 2
    assert judged(log).verdict == "supported"
    assert judged(log + 0.01 * np.ptp(log) * np.cos(7 * np.log(X))).verdict == "supported"
    assert judged(np.sqrt(log)).verdict == "refuted"
    assert judged(log, 0.5).verdict == "refuted"
    assert judged(np.sqrt(np.log(X)), 0.5).verdict == "supported"
    for y in (np.full(13, 2.0), -np.log(X)):  # no growth is no logarithm
        assert judged(y).effect == 1.0
    lost = judged(np.where(X < 1e6, np.nan, log))
    assert (lost.verdict, lost.effect) == ("inconclusive", None)
    assert lost.reason.endswith("n = 1000 and 5 more")
    with pytest.raises(InputError, match="deviation"):
        judged(log, batches=64)
