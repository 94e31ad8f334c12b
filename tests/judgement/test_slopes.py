"""Slopes on logarithmic axes: against NumPy's and SciPy's fits, with common draws and without."""

import math

import numpy as np
import pytest
from scipy.stats import linregress, skew

from sims.errors import InputError
from sims.judgement.intervals import fixed_half_width
from tests.judgement.helpers import curve, effects, judged

X = np.array([1.0, 2.0, 4.0, 8.0])


def slope(y, errors, batches=64, x=X, expected=-1.0, test="rate", margin=0.1, **fields):
    return judged(test, effects(y, errors, batches, x=x, **fields), margin, expected=expected)


def test_rate():
    supported = slope(3 / X, 0.01 / X)
    assert supported.verdict == "supported"
    assert slope(3 / X**2, 0.01 / X).verdict == "refuted"
    assert slope(3 / X, 1 / X).verdict == "inconclusive"
    few = slope(3 / X, 0.01 / X, [200, 64, 200, 200])
    assert few.interval == supported.interval
    for y in (-3 / X, np.where(X > 4, np.nan, X)):
        assert slope(y, 0.01 / X).verdict == "inconclusive"
    assert slope(3 / X, 0.0).verdict == "inconclusive"  # draws used again
    with pytest.raises(InputError, match="bounds"):
        slope(3 / X, 0.01 / X, bound=0.1)


@pytest.mark.parametrize("scatter", [0.0, 1e-3])
def test_a_curve_without_sampling_has_a_slope(scatter):
    y = 3 / X[:3] * (1 + scatter * np.array([1, -2, 1]))
    assert slope(y, 0.0, np.inf, X[:3]).verdict == "supported"
    assert slope(y, 0.0, np.inf, X[:3], expected=-0.5).verdict == "refuted"


def test_interval_covers_with_common_draws():
    """Points that share draws: the covariance of the batches gives the right interval."""
    rng, hits, trials = np.random.default_rng(1), 0, 400
    for _ in range(trials):
        shared = rng.normal(size=(64, 1))
        y = (3 / X) * (1 + 0.05 * (shared * np.log(X) + 0.2 * rng.normal(size=(64, 4))))
        low, high = judged("rate", curve(X, y), 1e-9, 0.9, expected=-1.0).interval
        hits += low <= -1 <= high
    assert hits / trials > 0.9 - 3 * math.sqrt(0.09 / trials)


def test_points_that_scatter_about_the_law():
    """Where misfit exceeds the errors, the slope's error is that of ordinary regression."""
    x = np.geomspace(1, 64, 7)
    y = np.exp(0.1 * np.random.default_rng(3).normal(size=7)) / x
    off, near = (slope(y, share * y, x=x, margin=1.0) for share in (0.005, 10.0))
    line = linregress(np.log(x), np.log(y))
    half = float(fixed_half_width(line.stderr, 63, 0.05))
    assert off.effect == pytest.approx(line.slope)
    assert off.interval == pytest.approx((line.slope - half, line.slope + half))
    # Where the errors explain the scatter, they alone count: σ/√Sxx.
    half = float(fixed_half_width(10 / math.sqrt(7 * np.log(x).var()), 63, 0.05))
    assert near.interval == pytest.approx((line.slope - half, line.slope + half))


def test_a_slope_of_common_draws_has_the_error_and_skewness_of_its_batches():
    """Draws that tilt the line are skewed, those of each point alone are not.

    NumPy's fit says what each point pulls at the slope; the slope of every batch is then at hand.
    """
    rng = np.random.default_rng(2)
    tilts, own = rng.exponential(size=(64, 1)) - 1, rng.normal(size=(64, 4))
    values = (3 / X) * (1 + 0.05 * tilts * np.log(X) + 0.002 * own)
    mean, error = values.mean(0), values.std(0, ddof=1) / 8
    pull = [np.polyfit(np.log(X), unit / mean, 1, w=mean / error)[0] for unit in np.eye(4)]
    slopes = values @ np.array(pull)
    line, (misfit,), *_ = np.polyfit(np.log(X), np.log(mean), 1, w=mean / error, full=True)
    assert misfit < 2  # no more scatter than the errors explain
    by_hand = judged(
        "equivalence", effects([0.0], slopes.std(ddof=1) / 8, skewness=skew(slopes) / 8), 1.0
    )
    found = judged("rate", curve(X, values), 1.0, expected=-1.0)
    assert skew(slopes) > 1
    assert found.interval == pytest.approx(line[0] + np.array(by_hand.interval), rel=1e-9)


def test_a_slope_is_as_skewed_as_the_points_that_pull_at_it():
    """Third cumulants of independent terms add up: Σ (c_j e_j)³ κ_j over the variance to 3/2."""
    kappa = np.array([0.1, 0.3, 0.0, -0.1])
    found = slope(8 / X, 0.16 / X, skewness=kappa)
    # Equal relative errors: least squares of log y, without weights.
    pull = (np.log(X) - np.log(X).mean()) / np.sum((np.log(X) - np.log(X).mean()) ** 2)
    spread = 0.02 * np.sqrt(np.sum(pull**2))
    third = np.sum((0.02 * pull) ** 3 * kappa) / spread**3
    assert abs(third) > 0.05
    by_hand = judged("equivalence", effects([0.0], spread, skewness=third))
    assert found.interval == pytest.approx([end - 1 for end in by_hand.interval], rel=1e-6)
