"""Re-investment: the variance that decorrelation saves and optimal heads spend, by brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

pytestmark = pytest.mark.theory
QUERIES = np.linspace(-1, 1, 201)
KEYS = np.linspace(-1.5, 1.5, 40)


def bias_and_variance(log_bandwidth):
    """Squared bias and noise variance of a Gaussian smoother of fixed keys, means over queries."""
    gaps = (QUERIES[:, None] - KEYS) / np.exp(log_bandwidth)
    weights = np.exp(-(gaps**2) / 2)
    weights /= weights.sum(1, keepdims=True)
    bias = weights @ np.sin(3 * KEYS) - np.sin(3 * QUERIES)
    return np.array([(bias**2).mean(), 2 * (weights**2).sum(1).mean()])


def best(error_terms, shared, span):
    """The two terms where ``bias + shared · variance`` is least."""
    found = minimize_scalar(
        lambda at: error_terms(at) @ [1, shared], bounds=span, options={"xatol": 1e-10}
    )
    return error_terms(found.x)


def test_the_fall_between_two_optima_is_within_its_bounds():
    """For 300 random tables of bias and variance, and of other errors at the same temperatures."""
    rng = np.random.default_rng(0)
    moved = 0
    for _ in range(300):
        bias, other, variance = rng.exponential(size=(3, 40))
        low, high = np.sort(rng.uniform(0, 1, 2))
        before, after = bias + high * variance, bias + low * variance
        first, last = before.argmin(), after.argmin()
        spent = variance[last] - variance[first]
        gain = before[first] - after[last]
        assert spent >= 0
        assert low * spent - 1e-12 <= bias[first] - bias[last] <= high * spent + 1e-12
        saved = (high - low) * variance
        assert saved[first] - 1e-12 <= gain <= saved[last] + 1e-12
        lower = other.argmin()
        fall = before - other
        assert fall[first] <= before[first] - other[lower] <= fall[lower]
        moved += first != last
    assert moved > 50


def test_a_small_fall_splits_between_bias_and_variance_by_curvature():
    """``dE/dc = v`` and ``dβ/dE = −β′/(vβ″)`` of smoothers, by differences at the optimum."""
    span = (-3.0, 0.5)
    for shared in (0.2, 0.4, 0.8):
        below, middle, above = (
            best(bias_and_variance, c, span) for c in np.array([0.99, 1, 1.01]) * shared
        )
        errors = [below @ [1, 0.99 * shared], above @ [1, 1.01 * shared]]
        assert np.diff(errors)[0] / (0.02 * shared) == pytest.approx(middle[1], rel=1e-3)
        grid = np.array([bias_and_variance(at) for at in np.linspace(*span, 2001)]).T
        slope = np.gradient(*grid)
        curvature = np.gradient(slope, grid[1])
        near = np.abs(grid[1] - middle[1]).argmin()
        split = -slope[near] / (grid[1, near] * curvature[near])
        assert (above - below)[0] / np.diff(errors)[0] == pytest.approx(split, rel=0.02)
        assert 0.1 < split < 1


@pytest.mark.parametrize("width", [2, 4])
def test_the_bias_takes_a_constant_share_under_powers(width):
    """``d_k/(4 + d_k)`` of bias ``h⁴`` and variance ``h^{−d_k}``, though ρ falls from 0.9 to 0."""
    powers = [4.0, -float(width)]

    def terms(log_bandwidth):
        return np.exp(np.array(powers) * log_bandwidth)

    first, last = (best(terms, (1 + 3 * rho) / 4, (-4, 4)) for rho in (0.9, 0.0))
    gain = first @ [1, (1 + 3 * 0.9) / 4] - last @ [1, 1 / 4]
    assert (first - last)[0] / gain == pytest.approx(width / (4 + width), rel=1e-6)
