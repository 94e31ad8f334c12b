"""`trained_heads`: rows on the heads' outputs, their correlations and their variance."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.judging import effects_of
from tests.experiments.test_trained_heads_experiment import made

effects = load_experiment("trained_heads").module("effects")


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("trained_heads")


def changed(results, change):
    """Results whose layers have other covariances."""
    return replace(
        results,
        estimates={
            name: data.assign(covariance=change(data["covariance"]))
            for name, data in results.estimates.items()
        },
    )


def test_variance_against_identical_heads_by_hand(experiment):
    """The mean of all covariances at the end, random over identical heads'; errors do not enter."""
    results = made(experiment)
    rng = np.random.default_rng(3)
    results = changed(
        results, lambda c: c * xr.DataArray(rng.uniform(1, 2, c.shape[:-2]), dims=c.dims[:-2])
    )
    layer = next(one for one in effects.layers(results) if one.values == "free")
    last = results.estimates[layer.point]["covariance"].sel(values="free").isel(step=-1)
    own, twins = (
        last.sel(start=start).mean(("head", "head2", "replicate")).values
        for start in ("random", "identical")
    )
    quotient = own.mean() / twins.mean()
    by_hand = 1 - quotient - (own - quotient * twins) / twins.mean()  # the delta method
    found = effects.below_identical(results, layer, "covariance")
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)
    family = effects_of(experiment, results)["less variance than identical heads"]
    [effect] = [
        e for e in family if e.label == f"{layer.stream}, free, {layer.heads} of {layer.width}"
    ]
    assert effect.value == pytest.approx(by_hand.mean(), rel=1e-9)
