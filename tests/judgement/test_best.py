"""Sets of optima: their coverage, and verdicts that go every way."""

import numpy as np
import pytest
from scipy.stats import binom, skew

from sims.errors import InputError
from sims.judgement import Evidence, bound, near_optimal, optimal_set


def near(choices, margin=0.05):
    return near_optimal(choices, margin=margin, level=0.95, replicates=7)


def drawn(means, batches=64, noise=0.18, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(batches, 1))
    return np.asarray(means) + common + noise * rng.normal(size=(batches, len(means))) + 10


def test_pairs_against_scipy():
    """Of two candidates the set is a one-sided paired t test."""
    from scipy.stats import ttest_rel

    for seed in range(30):
        values = drawn([0.0, 0.05], seed=seed)
        p = ttest_rel(values[:, 1], values[:, 0], alternative="greater").pvalue
        assert optimal_set(values, 0.95)[1] == (p > 0.05)


def test_coverage():
    """The true best of five is left out in 5% at most: 400 sets, 3 standard errors above that."""
    missed = sum(
        not optimal_set(drawn([0.0, 0.01, 0.02, 0.1, 0.3], seed=s), 0.95)[0] for s in range(400)
    )
    assert missed <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)
    assert optimal_set(drawn([0.0, 1.0, 2.0]), 0.95).tolist() == [True, False, False]


def test_coverage_among_equals():
    """Eight equally good: any one is in the set at the level, which takes Bonferroni's share."""
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
    found = near([(drawn(means, seed=3), place)], margin=margin)
    assert found.verdict == verdict
    assert found.interval[0] < found.effect < found.interval[1]
    assert found.replicates == 7


def test_support_against_scipy():
    """Two candidates: the paired t test of value − (1 + δ)·rival, two-sided interval."""
    from scipy.stats import ttest_1samp

    for seed in range(30):
        half = drawn([0.3, 0.0], batches=32, seed=seed, noise=0.7)
        shift = 0.1 * np.random.default_rng(seed).normal(size=2)
        # Without skewness, for which SciPy's test does not correct.
        values = np.concatenate([half, 2 * (np.array([10.3, 10.0]) + shift) - half])
        p = ttest_1samp(values[:, 0] - 1.05 * values[:, 1], 0.0, alternative="less").pvalue
        found = near([(values, 0)], margin=0.05)
        assert (found.verdict == "supported") == (2 * p <= 0.05)


def test_skewed_batches_are_corrected_for():
    """The verdict on a bound with the skewness of the paired contrast, by SciPy, over √B."""
    values = 10 + np.random.default_rng(1).exponential(size=(64, 2)) ** 2 + np.array([0.0, 2.0])
    found = near([(values, 0)])
    contrast = (values[:, 0] - 1.05 * values[:, 1]) / values[:, 1].mean()
    by_hand = [
        bound(
            Evidence(
                np.array([contrast.mean() + 0.05]), contrast.std(ddof=1) / 8, 64, 7,
                fixed=True, skewness=correction,
            ),
            margin=0.05, level=0.95,
        )
        for correction in (skew(contrast) / 8, 0.0)
    ]  # fmt: skip
    assert found.p_value == pytest.approx(by_hand[0].p_value, rel=1e-9)
    assert found.interval == pytest.approx(by_hand[0].interval, rel=1e-9)
    assert found.p_value > 1.1 * by_hand[1].p_value


def test_one_blunt_case_leaves_the_claim_open():
    """Absence of evidence supports nothing: too noisy to see a rival that is better by 20 %."""
    sharp, blunt = drawn([0.0, 1.0]), drawn([2.0, 0.0], noise=27.0)
    assert near([(sharp, 0)]).verdict == "supported"
    assert near([(sharp, 0), (blunt, 0)]).verdict == "inconclusive"


def test_reused_draws_support_nothing():
    once = np.repeat(drawn([0.0, 1.0])[:1], 64, axis=0)
    assert near([(once, 0)]).verdict == "inconclusive"
    assert near([(once, 1)]).verdict == "refuted"


def test_missing_values_leave_the_claim_open():
    values = drawn([0.0, 1.0])
    values[3, 1] = np.nan
    assert near([(values, 0)]).verdict == "inconclusive"


def test_false_alarms():
    """A claim just false is supported, one just true refuted, in 5 % of 600 runs at most (99.9 %).

    Just false: one of four rivals is better by the margin; just true: all four are.
    """
    runs, allowed = 600, binom.ppf(0.999, 600, 0.05)
    best = 10.0 / 1.05 - 10.0
    wrong = {"supported": 0, "refuted": 0}
    for seed in range(runs):
        false = drawn([0.0, 1.0, best, 2.0, 3.0], seed=seed)
        wrong["supported"] += near([(false, 0)]).verdict == "supported"
        true = drawn([0.0, best, best, best, best], seed=seed)
        wrong["refuted"] += near([(true, 0)] * 2).verdict == "refuted"
    assert max(wrong.values()) <= allowed
    assert wrong["supported"] >= 3  # of 15 expected: the test is not idle


def test_bad_input():
    with pytest.raises(InputError, match="values"):
        optimal_set([[1.0, np.nan], [1.0, 2.0]], 0.95)
    with pytest.raises(InputError, match="positive"):
        near([(-drawn([0.0, 1.0]), 0)])
