"""What effects rest on: which target, which states, which share, which sign, by hand."""

import numpy as np
import pytest
import xarray as xr

from sims.problem import TARGETS
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import (
    families,
    is_mean_of,
    is_ratio_of,
)

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


def test_specializations_errors_by_both_roads_are_of_both_states():
    rng, roads = np.random.default_rng(0), []
    parts = ("squared_bias", "own", "cross", "heads_error", "mse")
    for dim in ("batch", "seed"):
        names = [f"{part}_{state}" for part in parts for state in ("before", "after")]
        size = {name: 3.0 if name.endswith("before") else 2.0 for name in names}
        data = {k: (dim, rng.uniform(v, v + 0.3, 20)) for k, v in size.items()}
        roads.append({f"{s}, {v}": xr.Dataset(data) for s, v in WAYS})
    for data in roads[0].values():
        data["hdi"] = ("batch", "step"), rng.uniform(0, 0.5, (20, 3))
        data["hdi_after"] = "batch", rng.uniform(0.5, 1, 20)
    found = families("specialization", *roads, settings={"variants": {}})["error by both roads"]
    for state in ("before", "after"):
        assert sum(state in effect.label for effect in found) == len(WAYS)


WAYS = [("single", "plain"), ("single", "penalty"), ("additive", "plain")]
WAYS += [("additive", "penalty"), ("additive", "weights")]


def test_specialization():
    """Diversity from the first step on; shares of the gain, by both roads; what a penalty does."""
    rng = np.random.default_rng(11)
    points = ("single, plain", "single, penalty")
    points += ("additive, plain", "additive, penalty", "additive, weights")
    parts = ("squared_bias", "own", "cross", "heads_error", "mse")
    roads = []
    for dim in ("batch", "seed"):
        names = [f"{part}_{state}" for part in parts for state in ("before", "after")]
        size = {name: 3.0 if name.endswith("before") else 2.0 for name in names}
        roads.append(
            {
                p: xr.Dataset({k: (dim, rng.uniform(v, v + 0.3, 20)) for k, v in size.items()})
                for p in points
            }
        )
    estimates, predictions = roads
    for data in estimates.values():
        data["hdi"] = ("batch", "step"), rng.uniform(0, 0.5, (20, 3))
        data["hdi_after"] = "batch", rng.uniform(0.5, 1, 20)
    found = families("specialization", estimates, predictions, settings={"variants": {}})
    data = estimates["single, plain"]
    is_mean_of(found["diversity rises"][0], data["hdi_after"].values - data["hdi"].values[:, 0])
    # Of weights learned and not, in one and the same stream.
    learned, plain = (estimates[f"additive, {variant}"] for variant in ("weights", "plain"))
    higher = (learned["hdi_after"] - plain["hdi_after"]).values
    lower = (learned["hdi"] - plain["hdi"]).values[:, 0]
    is_mean_of(found["learned weights rise further"][0], higher - lower)

    def fell(data, *names):
        whole = (sum(data[f"{n}_{state}"].values for n in names) for state in ("before", "after"))
        return np.subtract(*whole)

    is_ratio_of(found["share of covariance"][0], fell(data, "cross"), fell(data, "mse"))
    ambiguity = fell(data, "mse") - fell(data, "heads_error")
    is_ratio_of(found["share of ambiguity"][0], ambiguity, fell(data, "mse"))
    gap = next(e for e in found["share by both roads"] if e.label == "single, covariance")
    law, parts = predictions["single, plain"], ("squared_bias", "own", "cross")
    theory = fell(law, "cross").mean() / fell(law, *parts).mean()
    share = fell(data, "cross").mean() / fell(data, "mse").mean()
    assert gap.value == pytest.approx(share - theory)
    without, with_ = (estimates[p]["mse_after"].values for p in points[:2])
    is_mean_of(found["penalty lowers the error"][0], (without - with_) / without.mean())
