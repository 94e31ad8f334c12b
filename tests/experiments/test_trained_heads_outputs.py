"""`trained_heads`: rows on the heads' outputs, their correlations and their variance."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.judging import effects_of
from tests.experiments.test_trained_heads_experiment import chosen, made, regimes

effects = load_experiment("trained_heads").module("effects")
WORDS = "outputs across seeds"


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


def test_heads_that_vary_more_than_identical_ones_refute_their_row_alone(experiment):
    """Twice the variance throughout: no other row asks for it, as correlations are the same."""
    results = made(experiment)
    double = changed(results, lambda c: c * xr.where(c["start"] == "random", 4.0, 1.0))
    found = regimes(experiment, double)
    assert {r for r, v in found.items() if v == "refuted" and "covariance" not in r} == {
        "less variance than identical heads, pooled",
        "less variance than identical heads, free",
    }


def test_rows_of_outputs_are_about_their_own_heads(experiment):
    """Four free heads that err less where their outputs are more alike refute one row."""
    results = made(experiment)
    mean = ("batch", "replicate")
    mirrored = changed(
        results,
        lambda c: xr.where(
            (c["values"] == "free") & (c.sizes["head"] == 4), 2 * c.mean(mean) - c, c
        ).transpose(*c.dims),
    )
    found = regimes(experiment, mirrored)
    assert found[f"error against {WORDS}, four free heads"] == "refuted"
    others = {v for r, v in found.items() if WORDS in r and "four" not in r}
    assert others == {"supported"}
    assert chosen(found, "errors across seeds") == {"supported"}


def test_rows_of_outputs_along_the_path(experiment):
    """Outputs that become more alike refute the rows of outputs along the path."""
    found = regimes(experiment, made(experiment, covariance=(0.01, 0.5)))
    assert chosen(found, "outputs along the path") == {"refuted"}
    assert chosen(found, "errors along the path") == {"supported"}
