"""Confidence sequences: the martingale by quadrature, the closed form, coverage at every B."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, t

from sims.judgement.intervals import (
    fixed_half_width,
    fixed_p,
    sequence_half_width,
    sequence_p,
    skewed_distance,
    skewed_half_width,
)


@pytest.mark.parametrize("batches", [3, 8, 40, 500])
def test_bayes_factor_has_mean_one(batches):
    """∫ E_B(t) dF(t) = 1 under Student's law; p = 1/E_B where that is below 1."""

    def log_factor(x, g=1.0):
        spread, freedom = 1 + batches * g, batches - 1
        ratio = (1 + x**2 / freedom) / (1 + x**2 / (freedom * spread))
        return batches / 2 * np.log(ratio) - np.log(spread) / 2

    def weighed(x):
        return np.exp(log_factor(x) + t.logpdf(x, batches - 1))

    parts = [quad(weighed, a, b, limit=500)[0] for a, b in ((0, 10), (10, 100), (100, np.inf))]
    assert 2 * sum(parts) == pytest.approx(1, rel=1e-7)
    for x in (4.0, 8.0):
        p = min(1, np.exp(-log_factor(x)))
        assert sequence_p(x, 1.0, batches) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(("batches", "alpha"), [(16, 0.05), (64, 1e-3), (1000, 1e-6)])
def test_half_width_inverts_the_p_value(batches, alpha):
    found = brentq(lambda d: np.log(sequence_p(d, 0.3, batches) / alpha), 1e-3, 3)
    assert sequence_half_width(0.3, batches, alpha) == pytest.approx(found, rel=1e-9)
    half = fixed_half_width(0.3, batches - 1, alpha)
    assert fixed_p(half, 0.3, batches - 1) == pytest.approx(alpha)
    assert sequence_half_width(0.3, batches, alpha) > half
    assert np.isinf(sequence_half_width(0.3, 3, 1e-6))
    np.testing.assert_array_equal(
        sequence_p(np.array([1.0, 0.0, -1.0]), np.zeros(3), 5), [0.0, 1.0, 1.0]
    )


def test_coverage_at_every_number_of_batches():
    """Paths of 300 batches watched after each: at most α of them are ever excluded.

    The bound is that of the exact binomial at 99.9 %: once in a thousand a false alarm.
    """
    rng, alpha, trials = np.random.default_rng(4), 0.1, 4000
    values = rng.normal(size=(trials, 300))
    count = np.arange(1, 301)
    mean = values.cumsum(1) / count
    variance = (values**2).cumsum(1) / count - mean**2
    error = np.sqrt(np.maximum(variance, 0) / np.maximum(count - 1, 1))
    out = np.abs(mean) > sequence_half_width(error, np.maximum(count, 2), alpha)
    ever = out[:, 2:].any(1).sum()
    assert ever <= binom.ppf(0.999, trials, alpha)
    # The t interval does not bear being watched: this is what the sequence is for.
    watched = np.abs(mean) > fixed_half_width(error, np.maximum(count - 1, 1), alpha)
    assert watched[:, 2:].any(1).mean() > 3 * alpha


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
