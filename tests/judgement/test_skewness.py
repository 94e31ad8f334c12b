"""Skewness in a verdict: of a slope whose points share draws, and of batches still to come."""

import numpy as np
import pytest
from scipy.stats import skew

from sims.judgement import Evidence, equivalence, rate


def test_a_slope_of_common_draws_is_as_skewed_as_its_batches():
    """Draws that tilt the line are skewed, those of each point alone are not.

    NumPy's fit says what each point pulls at the slope; the slope of every batch is then at hand.
    """
    x, rng = np.array([1.0, 2.0, 4.0, 8.0]), np.random.default_rng(2)
    tilts, own = rng.exponential(size=(64, 1)) - 1, rng.normal(size=(64, 4))
    values = (3 / x) * (1 + 0.05 * tilts * np.log(x) + 0.002 * own)
    mean, error = values.mean(0), values.std(0, ddof=1) / 8
    pull = np.array(
        [np.polyfit(np.log(x), unit / mean, 1, w=mean / error)[0] for unit in np.eye(4)]
    )
    slopes = values @ pull
    fit = np.polyfit(np.log(x), np.log(mean), 1, w=mean / error, full=True)
    assert fit[1] < 2  # no more scatter than the errors explain
    by_hand = equivalence(
        Evidence([0.0], slopes.std(ddof=1) / 8, 64, skewness=skew(slopes) / 8), margin=1, level=0.95
    )
    found = rate(
        Evidence(mean, error, 64, skewness=skew(values) / 8), x,
        expected=-1.0, margin=1.0, level=0.95, values=values,
    )  # fmt: skip
    assert skew(slopes) > 1
    assert found.interval == pytest.approx(fit[0][0] + np.array(by_hand.interval), rel=1e-9)


@pytest.mark.parametrize("skewness", [0.0, 0.8, 2.0])
def test_batches_that_would_decide_have_less_skewness(skewness):
    """That of an estimate falls with the root of their number, as its error does."""
    asked = {"margin": 0.1, "level": 0.95}
    kept = equivalence(Evidence([0.02], 0.1, 64, 6400, points=("p",), skewness=skewness), **asked)
    assert kept.verdict == "inconclusive"
    growth = kept.needs["p"] / 64
    assert growth > 4
    for share, verdict in ((1.001, "supported"), (0.97, "inconclusive")):
        more = share * growth
        found = equivalence(
            Evidence([0.02], 0.1 / more**0.5, 64 * more, 1, skewness=skewness / more**0.5), **asked
        )
        assert found.verdict == verdict
