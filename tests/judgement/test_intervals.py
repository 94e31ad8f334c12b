"""Confidence sequences: the martingale by quadrature, the closed form, coverage at every B."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, t

from sims.judgement import Evidence, equivalence, ordering
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


def test_few_batches_exclude_nothing():
    assert np.isinf(sequence_half_width(1.0, 3, 1e-6))
    assert sequence_half_width(0.0, 3, 1e-6) == 0
    finding = equivalence(Evidence([0.5], 0.1, batches=3), margin=0.1, level=1 - 1e-9)
    assert (finding.verdict, finding.interval) == ("inconclusive", None)
    np.testing.assert_array_equal(sequence_p([1.0, 0.0, -1.0], 0.0, 5), [0.0, 1.0, 1.0])


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


def test_support_needs_no_share_of_the_level():
    """Intersection–union: k points inside are supported like one; to refute, k share."""
    # 1 − 0.2 = 0.8 inside, just more than the half width of one point.
    error = 0.79 / sequence_half_width(1.0, 20, 0.05)
    for effects, verdict in (
        ([0.2] * 50, "supported"),
        ([1.8], "refuted"),
        ([1.8] + [0.0] * 49, "inconclusive"),
    ):
        found = equivalence(Evidence(effects, error, 20, fewest=2), margin=1.0, level=0.95)
        assert found.verdict == verdict


def test_p_value_is_the_least_level_that_decides():
    for effects in ([0.5, 0.4], [-0.5, 0.4]):
        evidence = Evidence(effects, 0.1, 64, skewness=0.1)
        finding = ordering(evidence, margin=0.0, level=0.9)
        verdict = finding.verdict
        assert verdict != "inconclusive"
        for level, expected in ((1 - 1.01 * finding.p_value, verdict),
                                (1 - 0.99 * finding.p_value, "inconclusive")):  # fmt: skip
            assert ordering(evidence, margin=0.0, level=level).verdict == expected


def test_open_points_are_named():
    points = ["a", ("b", "c"), "d"]
    run = {"errors": [0.001, 0.03, 0.03], "batches": 16, "points": points, "fewest": 2}
    finding = equivalence(Evidence([0.0, 0.02, 0.09], **run), margin=0.1, level=0.95)
    assert set(finding.needs) == {"b", "c", "d"}
    assert finding.needs["d"] > finding.needs["b"] == finding.needs["c"] > 16
    # One point that seems outside would settle the claim: the others need nothing.
    finding = equivalence(Evidence([0.0, 0.09, 0.15], **run), margin=0.1, level=0.95)
    assert set(finding.needs) == {"d"}


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
    assert skewed_half_width(0.0, 0.0, skewness) == 0
    assert skewed_half_width(np.inf, error, skewness) == np.inf


def test_few_batches_decide_nothing_and_say_so():
    """However far inside or outside they lie; and they ask for as many as it takes."""
    for effect in (0.0, 5.0):
        run = {"replicates": 63, "points": ["a"], "fixed": True}
        few, enough = (
            equivalence(Evidence([effect], 1e-3, batches, **run), margin=1.0, level=0.95)
            for batches in (63, 64)
        )
        assert few.verdict == "inconclusive"
        assert (few.p_value, few.needs) == (1.0, {"a": pytest.approx(64)})
        assert "open at 1 of 1 (1 with fewer than 64 batches)" in few.reason
        assert enough.verdict == ("refuted" if effect else "supported")
