"""The experiment `collapse`: its verdicts and how they turn, ranks by hand, figure and caption."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.units import units_of
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads

SILENT = ("plain", "positions", "kept", "gauges", "channels", "entropies")
"""Beginnings of the names of units on which theory says nothing."""


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes."""
    whole = load_experiment("collapse", "smoke")
    smoke = whole.spec.at("smoke")
    tails = smoke.settings["tails"] | {"replicates": 256}
    symmetry = whole.spec.settings["symmetry"]
    spectra = symmetry["spectra"] | {"tokens": [24, 96]}
    depths = {
        name: {key: value for key, value in own.items() if key != "replicates"}
        for name, own in whole.spec.settings["depths"].items()
    }
    symmetry = symmetry | {"spectra": spectra}
    settings = smoke.settings | {"tails": tails, "symmetry": symmetry, "depths": depths}
    run = {"batches": 64, "replicates_per_batch": 2}
    smoke = smoke.model_copy(update={"settings": settings, "simulation": run})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: not point.startswith(SILENT))


def test_an_open_rank_decides_nothing(results, experiment):
    own = results.estimates["norm, fewer tokens"]
    other = own.assign(layer=own["layer"].where(own["layer"] > 2))
    changed = replace(results, estimates=results.estimates | {"norm, fewer tokens": other})
    found = verdicts(experiment, changed)
    assert found["layernorm-rank", "fewer tokens"] == "inconclusive"
    assert found["layernorm-rank-corrected", "LayerNorm"] == "inconclusive"


def test_ranks_need_a_gap(experiment):
    """Of one set and of many: 2 of integers, none of rounding, open without a gap."""
    ranking = experiment.module("ranking")
    tokens = np.array([[1.0, 0, 2], [2, 1, 2], [4, 3, 2], [3, 2, 2]])
    assert ranking.affine_rank(tokens) == 1
    assert ranking.affine_rank(np.tile(np.pi * tokens[:1], (3, 1))) == 0
    near = np.diag([1.0, 1.5e-9, 0.9e-9])
    assert np.isnan(ranking.rank(near, 1.0))
    many = np.random.default_rng(0).integers(-2, 3, size=(50, 3, 3)).astype(float)
    expected = [np.linalg.matrix_rank(each - each.mean(0)) for each in many]
    np.testing.assert_array_equal(ranking._many_ranks(many), expected)


@pytest.mark.parametrize("name", ["collapse", "head_recovery"])
def test_units_have_draws_of_their_own(name):
    streams = [unit.stream for unit in units_of(load_experiment(name, "smoke")).values()]
    assert len(set(streams)) == len(streams)


def test_single_sets_in_doubt_are_left_out_and_many_are_not(experiment):
    """One of 400 goes; three of 400 leave the row open, since what is not known is not judged."""
    certain = experiment.module("effects").certain
    gaps = np.zeros((20, 20))
    gaps[3, 7] = np.nan
    assert certain(gaps).shape == (399,)
    gaps[4, :2] = np.nan
    assert np.isnan(certain(gaps)).sum() == 3


def test_a_tail_that_nothing_was_seen_in_is_open_without_a_warning():
    """No draw below the lower value, or those of one batch alone: no exponent, and no division."""
    tail = load_experiment("collapse").module("effects").tail
    for seen in (0.0, 0.25):
        shares = np.full((4, 2), [0.0, 0.5])
        shares[0, 0] = seen
        data = xr.Dataset({"share": (("batch", "below"), shares)}, {"below": [0.05, 0.15]})
        results = SimpleNamespace(
            estimates={"tail": data}, prediction=lambda point: {"exponent": 1.0}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isnan(tail(results, "tail").value)
