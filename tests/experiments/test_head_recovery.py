"""The experiment `head_recovery`: its verdicts, which can turn, and counts by hand."""

from dataclasses import replace

import numpy as np
import pytest

from sims.study.experiment import load_experiment
from tests.experiments.helpers import check_figure, verdicts
from tests.experiments.runs import both_roads

REFUTED = {
    ("head-freedom", "other rank"), ("head-freedom", "full row rank"),
    ("head-freedom", "one head, rank d_k"), ("mlp-no-remedy", "full row rank"),
    ("gated-output", "free"), ("gated-output", "uniform attention, all"),
    ("gate-overhead-elsewhere", "token, d_k = 32"), ("gate-overhead-elsewhere", "table, d_k = 32"),
    ("gate-overhead-elsewhere", "table, d_k = 64 and 128"),
    ("hdi-conditions", "gauge orbit, the error"),
}  # fmt: skip


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


def test_verdicts(results, experiment):
    found = verdicts(experiment, results)
    assert {at for at, verdict in found.items() if verdict == "refuted"} == REFUTED
    assert set(found.values()) == {"supported", "refuted"}


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


def test_figure_and_caption(results, experiment):
    check_figure(experiment, results)
