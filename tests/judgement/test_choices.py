"""Candidates that are best, or nearly: against SciPy's t tests, and verdicts that go every way."""

import numpy as np
import pytest
from scipy.stats import skew, ttest_1samp, ttest_rel

from sims.effects import Effect
from sims.errors import InputError
from sims.judgement import optimal_set
from tests.judgement.helpers import effects, judged


def near(*choices, margin=0.05):
    found = [Effect("", values=values, best=place) for values, place in choices]
    return judged("near_optimal", found, margin)


def drawn(means, batches=64, noise=0.18, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(batches, 1))
    return np.asarray(means) + common + noise * rng.normal(size=(batches, len(means))) + 10


def test_the_set_of_optima():
    """Of two candidates it is a one-sided paired t test; of eight equal ones any is in it."""
    for seed in range(30):
        values = drawn([0.0, 0.05], seed=seed)
        p = ttest_rel(values[:, 1], values[:, 0], alternative="greater").pvalue
        assert optimal_set(values, 0.95)[1] == (p > 0.05)
    assert optimal_set(drawn([0.0, 1.0, 2.0]), 0.95).tolist() == [True, False, False]
    kept = sum(optimal_set(drawn(np.zeros(8), seed=s), 0.9)[0] for s in range(400))
    assert kept >= 400 * 0.9 - 3 * np.sqrt(400 * 0.9 * 0.1)


@pytest.mark.parametrize(
    ("means", "place", "margin", "verdict"),
    [
        ([0.0, 0.5, 1.0], 0, 0.0, "supported"),
        ([0.0, 0.0, 1.0], 0, 0.05, "supported"),
        ([0.0, 0.0, 1.0], 0, 0.0, "inconclusive"),  # which of two equal ones is no question
        ([0.0, 0.3, 1.0], 1, 0.05, "supported"),
        ([0.0, 0.5, 1.0], 1, 0.05, "inconclusive"),
        ([0.0, 0.8, 1.0], 1, 0.05, "refuted"),
    ],
)
def test_verdicts(means, place, margin, verdict):
    found = near((drawn(means, seed=3), place), margin=margin)
    assert (found.verdict, found.replicates) == (verdict, 512)
    assert found.interval[0] < found.effect < found.interval[1]


def test_support_against_scipy():
    """Two candidates: the paired t test of value − (1 + δ)·rival, two-sided interval."""
    for seed in range(30):
        half = drawn([0.3, 0.0], batches=32, seed=seed, noise=0.7)
        shift = 0.1 * np.random.default_rng(seed).normal(size=2)
        # Without skewness, for which SciPy's test does not correct.
        values = np.concatenate([half, 2 * (np.array([10.3, 10.0]) + shift) - half])
        p = ttest_1samp(values[:, 0] - 1.05 * values[:, 1], 0.0, alternative="less").pvalue
        assert (near((values, 0)).verdict == "supported") == (2 * p <= 0.05)


def test_skewed_batches_are_corrected_for():
    """The verdict on a bound with the skewness of the paired contrast, by SciPy, over √B."""
    values = 10 + np.random.default_rng(1).exponential(size=(64, 2)) ** 2 + np.array([0.0, 2.0])
    contrast = (values[:, 0] - 1.05 * values[:, 1]) / values[:, 1].mean()
    by_hand = effects(
        [contrast.mean() + 0.05], contrast.std(ddof=1) / 8, skewness=skew(contrast) / 8
    )
    found, expected = near((values, 0)), judged("bound", by_hand, 0.05)
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-9)
    assert found.interval == pytest.approx(expected.interval, rel=1e-9)


def test_what_is_no_evidence_supports_nothing():
    """A case too noisy to see a rival that is better by 20 %, draws used again, a missing value."""
    sharp, blunt = drawn([0.0, 1.0]), drawn([2.0, 0.0], noise=27.0)
    assert near((sharp, 0)).verdict == "supported"
    assert near((sharp, 0), (blunt, 0)).verdict == "inconclusive"
    once = np.repeat(sharp[:1], 64, axis=0)
    assert near((once, 0)).verdict == "inconclusive"
    assert near((once, 1)).verdict == "refuted"
    sharp[3, 1] = np.nan
    assert near((sharp, 0)).verdict == "inconclusive"
    with pytest.raises(InputError, match="positive"):
        near((-drawn([0.0, 1.0]), 0))
