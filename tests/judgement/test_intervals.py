"""p-values, Student's and with Hall's transformation in front, and bounds of outcomes."""

import numpy as np
import pytest
from scipy.stats import t

from sims.judgement.intervals import fixed_p, skewed_distance
from sims.judgement.outcomes import outcome_calls


@pytest.mark.parametrize(("batches", "alpha"), [(16, 0.05), (64, 1e-3), (1000, 1e-6)])
def test_the_p_value_is_students(batches, alpha):
    half = 0.3 * t.isf(alpha / 2, batches - 1)
    assert fixed_p(half, 0.3, batches - 1) == pytest.approx(alpha)
    none = fixed_p(np.array([1.0, 0.0, -1.0]), np.zeros(3), 4)
    np.testing.assert_array_equal(none, [0.0, 1.0, 1.0])


@pytest.mark.parametrize("skewness", [0.0, 0.05, -0.2, 0.31, 0.6, 1.0])
def test_the_skewed_distance_is_halls_on_the_farther_side(skewness):
    """It rises with the distance, and skewness of either sign takes off from it."""
    k, error, t = abs(skewness), 0.3, np.linspace(0.5, 12, 50)
    found = skewed_distance(t * error, error, skewness) / error
    cubic = t - k * t**2 / 3 + k**2 * t**3 / 27 - k / 6
    np.testing.assert_allclose(found, np.where(k * t < 4.5, cubic, t / 4 - k / 6))
    assert (np.diff(found) > 0).all()
    assert (found <= skewed_distance(t * error, error, 0.9 * skewness) / error + 1e-12).all()
    assert skewed_distance(np.zeros(1), np.zeros(1), skewness) == 0


@pytest.mark.parametrize(("beyond", "call"), [(-0.01, 0), (0.01, 1)])
def test_bounds_of_an_outcome_hold_together_over_pairs_and_looks(beyond, call):
    """With probability 0.99, two-sided, by Bonferroni: of four pairs at three looks."""
    edge = t.isf(0.005 / (4 * 3), 9)
    falls = np.full((1, 4), 0.01 + 1e-3 * (edge + beyond))
    assert outcome_calls(falls, np.full((1, 4), 1e-3), np.array([9.0]), 3, 0.01) == call
