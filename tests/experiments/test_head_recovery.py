"""The experiment `head_recovery`: its verdicts, which can turn, and counts by hand."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.helpers import verdicts
from tests.experiments.runs import both_roads


@pytest.fixture(scope="module")
def experiment():
    """At smaller sizes."""
    whole = load_experiment("head_recovery", "smoke")
    orbit = whole.spec.settings["orbit"] | {"n": 24, "queries": 4, "replicates": 32}
    smoke = whole.spec.at("smoke")
    settings = smoke.settings | {"orbit": orbit}
    smoke = smoke.model_copy(update={"settings": settings, "simulation": {"batches": 64}})
    fidelities = whole.spec.fidelities | {"smoke": smoke}
    return replace(whole, spec=whole.spec.model_copy(update={"fidelities": fidelities}))


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: point in ("free", "content", "parameters"))


@pytest.mark.parametrize(
    ("point", "name", "at"),
    [
        ("free", "joint", ("head-freedom", "formula")),
        ("free", "single", ("head-freedom", "formula")),
        ("content", "bound", ("gated-output", "formula")),
        ("parameters", "table", ("gate-overhead", "formula")),
    ],
)
def test_formulas_turn(results, experiment, point, name, at):
    own = results.predictions[point]
    other = own.assign({name: own[name] + 1.0})
    changed = replace(results, predictions=results.predictions | {point: other})
    assert verdicts(experiment, changed)[at] == "refuted"


def test_the_orbit_is_a_gauge_and_nothing_else(results, experiment):
    """An error that moves by a hundredth along the orbit turns what stays, and what falls."""
    own = results.estimates["orbit"]
    falling = 1 - 0.01 * np.arange(own.sizes["factor"])
    other = own.assign(error=own["error"] * falling)
    found = verdicts(experiment, replace(results, estimates=results.estimates | {"orbit": other}))
    assert found["hdi-conditions", "gauge orbit, what stays"] == "refuted"
    assert found["hdi-conditions", "gauge orbit, the error"] != "refuted"


def test_open_directions_by_hand(experiment):
    """Two heads of width one summed: one direction a token; a closed gate hides a token."""
    counting = experiment.module("counting")
    output = np.ones((2, 1, 1))
    whole = counting.jacobian(output, np.array([[1.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(whole, [[1, 1, 0, 0], [0, 0, 0, 0]])
    assert counting.rank(whole) == 1


def test_gates_that_leave_as_many_heads_close_none(experiment):
    """Five heads without gates in each of two draws; with them as many, more, fewer, fewer once."""
    effects = experiment.module("effects")
    gated = np.array([[5, 6, 4, 5], [5, 7, 3, 4]])
    counts = np.stack([np.full_like(gated, 5), gated], axis=2)
    dims = ("batch", "content", "gates")
    results = Results(
        "head_recovery",
        "smoke",
        {"content": xr.Dataset({"bound": (dims, counts)})},
        {"content": xr.Dataset({"bound": (dims[1:], 0 * counts[0])})},
        {},
        {},
        {},
        {},
    )
    found = effects.bound(results)
    expected = [[1, 1], [1, 1], [0, 0], [1, 0]]
    for content, kept in zip(effects.CONTENTS, expected, strict=True):
        np.testing.assert_array_equal(found[f"gates close none, {content}"][0].values, kept)
