"""Re-investment: the variance that decorrelation saves and optimal heads spend, by brute force."""

import numpy as np
import pytest

pytestmark = pytest.mark.theory


def least(bias, variance, shared):
    """Bias, variance of a head and error where ``bias + shared · variance`` is least."""
    error = bias + shared * variance
    place = error.argmin()
    return np.array([bias[place], variance[place], error[place]])


def test_the_fall_between_two_optima_is_within_its_bounds():
    """For 300 random tables of bias and variance."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        bias, variance = rng.exponential(size=(2, 40))
        after, before = np.sort(rng.uniform(0, 1, 2))
        first, last = least(bias, variance, before), least(bias, variance, after)
        returned, spent, gain = (first - last) * [1, -1, 1] + 1e-12
        assert after * spent <= returned <= before * spent + 2e-12
        assert (before - after) * first[1] <= gain <= (before - after) * last[1] + 2e-12


@pytest.mark.parametrize(
    ("powers", "before", "after"),
    [([1.0], 0.9, 0.2), ([2.0], 0.9, 0.2), ([0.5, 3.0], 0.505, 0.495)],
)
def test_the_fall_splits_between_bias_and_variance_by_curvature(powers, before, after):
    """``dβ/dE = −β′/(vβ″)`` of sums of ``v^{−r}``, which is ``1/(1 + r)`` of one at any size."""
    variance = np.geomspace(0.01, 100, 200_001)
    r = np.array(powers)
    bias = (variance[:, None] ** -r).sum(1)
    first, last = least(bias, variance, before), least(bias, variance, after)
    returned, _, gain = first - last
    slopes = r * np.sqrt(first[1] * last[1]) ** -r
    split = slopes.sum() / (slopes @ (r + 1))
    assert returned / gain == pytest.approx(split, rel=0.02)
