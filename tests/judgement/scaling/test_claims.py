"""Verdicts on laws and exponents from made-up posteriors: no sampling."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from sims.errors import InputError
from sims.judgement.scaling import exponent_claim, law_claim
from sims.judgement.scaling.compare import Comparison
from sims.judgement.scaling.laws import Fit, Points

BATCH = {"level": 0.95, "replicates": 1000}
X = np.geomspace(8, 64, 8)
EVEN = np.tile([-1.0, 1.0], 4)


def compared(problem=None, misfit=(), **elpd):
    fits = {law: SimpleNamespace(misfit=dict(misfit).get(law, 0.5)) for law in elpd}
    return Comparison(fits, {k: np.asarray(v, float) for k, v in elpd.items()}, {}, {}, problem)


def test_a_clear_difference_decides():
    both = compared(power=2 * EVEN, log=np.full(8, -2.0))
    better, worse = (law_claim(both, law, **BATCH) for law in ("power", "log"))
    assert (better.verdict, worse.verdict) == ("supported", "refuted")
    error = np.sqrt(8) * 2 * EVEN.std(ddof=1)
    half = norm.ppf(0.95) * error
    assert better.effect == pytest.approx(16)
    assert better.interval == pytest.approx((16 - half, 16 + half))
    assert better.p_value == worse.p_value == pytest.approx(norm.sf(16 / error))


def test_the_best_of_several_rivals_pays_for_the_choice():
    three = compared(power=0.6 * EVEN, log=np.full(8, -0.6), constant=np.full(8, -5.0))
    error = np.sqrt(8) * 0.6 * EVEN.std(ddof=1)
    found = law_claim(three, "log", **BATCH)
    assert found.verdict == "refuted"
    assert found.p_value == pytest.approx(2 * norm.sf(4.8 / error))
    # To be better than all rivals takes the worst p-value and no such payment.
    assert law_claim(three, "power", **BATCH).p_value == pytest.approx(norm.sf(4.8 / error))


@pytest.mark.parametrize("level", [-0.1, 0.0, 1.0, 1.1])
def test_levels_that_leave_no_chance_or_no_doubt_are_refused(level):
    both = compared(power=2 * EVEN, log=np.full(8, -2.0))
    with pytest.raises(InputError, match=rf"level: got {level}; allowed: in \(0, 1\)"):
        law_claim(both, "power", level=level, replicates=1000)


@pytest.mark.parametrize(
    "gap",
    [
        np.eye(8)[0] * -16,  # all of the difference sits in one point
        np.full(8, -0.4),  # certain, but less than what counts
    ],
)
def test_doubtful_or_small_differences_leave_it_open(gap):
    both = compared(power=np.zeros(8), log=gap)
    for law in ("power", "log"):
        found = law_claim(both, law, **BATCH)
        assert found.verdict == "inconclusive"
        assert "not told apart" in found.reason


def test_a_law_that_does_not_describe_the_points_loses():
    rivals = {"power": np.zeros(8), "log": np.eye(8)[0] * -16}
    both = compared(misfit={"log": 1e-9}, **rivals)
    assert law_claim(both, "power", **BATCH).verdict == "supported"
    assert law_claim(both, "log", **BATCH).verdict == "refuted"
    neither = compared(misfit={"power": 1e-9, "log": 1e-9}, **rivals)
    assert law_claim(neither, "power", **BATCH).reason == "no law describes the points"


def test_a_sampler_that_did_not_converge_decides_nothing():
    both = compared("divergences", power=np.zeros(8), log=np.full(8, -9.0))
    found = law_claim(both, "power", **BATCH)
    assert (found.verdict, found.reason) == ("inconclusive", "divergences")


@pytest.mark.parametrize(
    ("centre", "misfit", "verdict", "p"),
    [
        (-0.5, 0.5, "supported", 1 / 2001),  # no draw outside proves no probability of 0
        (-0.9, 0.5, "refuted", 1 / 2001),
        (-0.59, 0.5, "inconclusive", 1.0),
        (-0.5, 1e-9, "inconclusive", 1.0),
    ],
)
def test_exponent_against_its_region(centre, misfit, verdict, p):
    draws = centre + 0.03 * np.linspace(-1, 1, 2000).reshape(2, 1000)
    fitted = Fit(
        "power", Points.of(X, X**centre, 0.01 * X**centre), 1.0, 2000.0, 0, misfit,
        np.zeros((8, 2, 1000)), {"exponent": draws},
    )  # fmt: skip
    found = exponent_claim(fitted, expected=-0.5, margin=0.1, **BATCH)
    assert (found.verdict, found.p_value) == (verdict, pytest.approx(p))
    assert found.effect == pytest.approx(centre)
    assert found.interval == pytest.approx((centre - 0.0285, centre + 0.0285), abs=1e-4)
