"""Intervals: Student's quantiles, and Hall's transformation inverted."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t

from sims.judgement.intervals import (
    fixed_half_width,
    fixed_p,
    skewed_distance,
    skewed_half_width,
)


@pytest.mark.parametrize(("batches", "alpha"), [(16, 0.05), (64, 1e-3), (1000, 1e-6)])
def test_half_width_inverts_the_p_value(batches, alpha):
    half = fixed_half_width(0.3, batches - 1, alpha)
    assert half == pytest.approx(0.3 * t.isf(alpha / 2, batches - 1))
    assert fixed_p(half, 0.3, batches - 1) == pytest.approx(alpha)
    np.testing.assert_array_equal(
        fixed_p(np.array([1.0, 0.0, -1.0]), np.zeros(3), 4), [0.0, 1.0, 1.0]
    )


@pytest.mark.parametrize("skewness", [0.0, 0.05, -0.2, 0.31, 0.6, 1.0])
def test_skewed_half_width_inverts_the_distance(skewness):
    """By Hall's cubic solved numerically, on the side where it is farther away."""
    k, error = abs(skewness), 0.3
    for q in (0.5, 2.0, 3.7, 9.0):
        half = float(skewed_half_width(q * error, error, skewness))
        assert skewed_distance(half, error, skewness) == pytest.approx(q * error)
        wide = brentq(lambda t, q: t - k * t**2 / 3 + k**2 * t**3 / 27 - k / 6 - q, 0, 100, (q,))
        assert half / error == pytest.approx(wide if k * wide < 4.5 else 4 * (q + k / 6))
        assert half >= skewed_half_width(q * error, error, 0.9 * skewness) >= q * error
    assert skewed_half_width(np.zeros(1), np.zeros(1), skewness) == 0
    assert skewed_half_width(np.inf, error, skewness) == np.inf
