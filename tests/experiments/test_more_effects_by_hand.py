"""What effects rest on: which target, which states, which share, which sign, by hand."""

import numpy as np
import pytest
import xarray as xr

from sims.problem import TARGETS
from sims.study.experiment import load_experiment
from sims.study.results import Results

BATCHES = 64


def results(name, estimates, predictions=None, at=None):
    data = {k: d.assign_attrs(replicates=9) for k, d in estimates.items()}
    return Results(name, "smoke", data, predictions or {}, {}, at or {}, {}, {})


def test_rates_change_is_of_many_heads_less_one():
    """One head falls like n^−0.5, many like n^−0.8."""
    effects, n = load_experiment("rates").module("effects"), np.array([100.0, 400.0, 1600.0])
    wobble = np.exp(0.01 * np.random.default_rng(0).normal(size=(BATCHES, 1, 1)))
    mse = wobble * np.stack([n**-0.5, n**-0.8])
    data = xr.Dataset(
        {"mse_of_heads": (("batch", "heads", "size"), mse)}, {"heads": [1, 8], "size": n}
    )
    found = effects.simulated_change(results("rates", {effects.ENSEMBLE: data}))
    assert found.value == pytest.approx(-0.3, abs=1e-9)


def test_rates_ensembles_are_of_the_targets_that_are_named():
    experiment = load_experiment("rates")
    settings = experiment.settings
    beta = settings["simulated"]["ensemble"]["beta"]
    assert settings["betas"].index(beta) > 0
    found = experiment.module("simulate").averaged(settings).amplitudes
    expected = TARGETS["holder"](1, beta=beta, levels=settings["levels"]).amplitude
    np.testing.assert_array_equal(found, np.stack([expected] * len(found)))
