"""Sets of optima: their coverage, and verdicts that go every way."""

import numpy as np
import pytest

from sims.errors import InputError
from sims.judgement import in_optimal_set, optimal_set

OPTIONS = {"margin": 0.0, "level": 0.95, "replicates": 7}


def drawn(means, batches=20, noise=0.1, seed=0):
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


@pytest.mark.parametrize(
    ("means", "place", "verdict"),
    [
        ([0.0, 0.0, 1.0], 0, "supported"),
        ([0.0, 0.5, 1.0], 1, "refuted"),
        ([0.0, 0.0, 0.0], 0, "inconclusive"),
    ],
)
def test_verdicts(means, place, verdict):
    found = in_optimal_set([(drawn(means, seed=3), place, "abc")], **OPTIONS)
    assert found.verdict == verdict
    assert found.interval[0] < found.effect < found.interval[1]
    assert found.replicates == 7


def test_labels_count():
    """Two candidates of one label: leaving out one of them leaves out no label."""
    values = drawn([0.0, 0.0, 1.0])
    assert in_optimal_set([(values, 0, "aba")], **OPTIONS).verdict == "inconclusive"
    assert in_optimal_set([(values, 0, "abc")], **OPTIONS).verdict == "supported"


def test_bad_input():
    with pytest.raises(InputError, match="values"):
        optimal_set([[1.0, np.nan], [1.0, 2.0]], 0.95)
