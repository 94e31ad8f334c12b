"""Errors of numbers, on batches made by hand whose truth and law are known."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom, t

from sims.base import terms
from sims.base.estimates import jackknife, mcse, skewness
from sims.judgement.effects import share

RUNS = 20_000
LOW, HIGH = (int(binom.ppf(q, RUNS, 0.95)) for q in (5e-4, 1 - 5e-4))
"""Of 20,000 intervals at 95 %, how many cover: one false alarm in a thousand."""


def covered(mean, error, truth, batches):
    return int((np.abs(mean - truth) <= t.ppf(0.975, batches - 1) * error).sum())


@pytest.mark.parametrize("batches", [3, 8])
def test_the_error_of_a_mean_covers(batches):
    """So few batches tell s² with B − 1 from s² with B: 2.5 % and more of the intervals."""
    values = 3 + 2 * np.random.default_rng(0).normal(size=(batches, RUNS))
    assert LOW <= covered(values.mean(0), mcse(values), 3, batches) <= HIGH
    labelled = xr.DataArray(values.T, dims=("run", "batch"))
    np.testing.assert_allclose(terms.mcse(labelled), mcse(values))
    effects = share(values.T)
    np.testing.assert_allclose([effects.value, effects.error], [values.mean(0), mcse(values)])


def test_the_error_of_a_ratio_covers():
    """Numerator and denominator vary together, by 3 % a batch: nearly linear."""
    rng, batches, runs = np.random.default_rng(2), 16, 4000
    shared = 0.03 * rng.normal(size=(batches, runs))
    above, below = (c * (1 + shared + 0.01 * rng.normal(size=shared.shape)) for c in (3, 2))
    values = jackknife({"a": above, "b": below}, lambda m: m["a"] / m["b"])
    low, high = (int(binom.ppf(q, runs, 0.95)) for q in (5e-4, 1 - 5e-4))
    assert low <= covered(values.mean(0), mcse(values), 1.5, batches) <= high


def test_skewness_is_that_of_the_mean():
    """Exponential batches have skewness 2; the mean of B of them 2/√B. Of constants it is 0."""
    values = np.random.default_rng(3).exponential(size=(400_000, 1))
    assert skewness(values) * np.sqrt(len(values)) == pytest.approx(2, abs=0.05)
    means = np.random.default_rng(4).exponential(size=(64, RUNS)).mean(0)
    gaps = means - means.mean()
    # The sample skewness of 20,000 means is off by 0.017: 4 of those, a false alarm in 16,000.
    assert (gaps**3).mean() / gaps.std() ** 3 == pytest.approx(2 / 8, abs=0.07)
    assert skewness(np.ones(9)) == 0
