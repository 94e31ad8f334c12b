"""Every experiment loads, runs, is judged, fills its figure, and tells true claims from false."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from sims import figures, steps
from sims.base.places import experiments
from sims.judgement import conventions
from sims.study.judge import answers_of
from sims.study.referenced_files import MissingModels
from sims.study.stored import read_panels, results_of
from tests.experiments.drawing import small_run
from tests.experiments.planted import planted

RECORD = Path(__file__).with_name("revisions.json")
FEW = {"simulated": 3, "problems": 12, "targets": 2, "theory_draws": 40}
FEW |= {"learning": {"steps": 2, "rate": 0.1}, "training": {"steps": 2, "tasks": 1, "queries": 2}}
FEW |= {"held_out": {"tasks": 2, "queries": 2, "designs": 2}}
"""Settings of a tiny run."""
MORE = {
    "collapse": {"simulated": 12},
    "kq_svd": {"simulated": 8},
    "temperature": {"simulated": 2, "problems": 4},
}
"""Those of experiments whose figures need problems of each group, or whose problems are dear."""
LAWS = {
    "allocation": {
        "decay": "exponential",
        "kernel": "gaussian",
        "temperature": "fixed",
        "budget": 16,
        "keys": 512,
    },
    "angles": {"width": 2, "keys": 32, "rule": ["biweight", "sparsemax"]},
    "collapse": {"tokens": 8, "dimension": 8, "heads": 2},
    "house": {"size": [[8, 2, 4]], "keys": 64, "kernel": "gaussian", "features": 4},
    "kq_svd": {"width": 8, "heads": 2, "tokens": 64},
    "lottery_tickets": {"dimension": 2},
    "merging": {"keys": 192, "stride": 2, "width": 1},
    "rates": {"relevant": 1, "nuisance": 1},
    "temperature": {
        "width": 2,
        "family": "lacunary",
        "lengthscale": 1.5,
        "context": 128,
        "power": 2.0,
    },
    "trained_models": {"tokens": 96},
    "training": {"sizes": [[2, 2]]},
    "values": {"size": [[8, 2, 4]], "keys": 64, "kernel": "gaussian", "features": 4},
}
"""Fields that are not drawn, so that few shapes are compiled."""


def tiny(name):
    """The smoke run of an experiment with fewer problems, draws and shapes."""
    few = {"batches": 2 if name == "trained_models" else 4, "replicates_per_batch": 2}
    return small_run(name, LAWS.get(name, {}), FEW | MORE.get(name, {}), few)


@pytest.fixture(scope="module", params=experiments())
def finished(request, tmp_path_factory):
    """An experiment, the folder in which both of its files lie, and what they hold."""
    experiment, folder = tiny(request.param), tmp_path_factory.mktemp(request.param)
    try:
        steps.function("simulate")(experiment, folder / "simulation.nc")
        steps.function("predict")(experiment, folder / "theory.nc")
    except MissingModels as error:
        pytest.skip(str(error))
    return experiment, folder, results_of(experiment, folder)


def test_a_tiny_run_is_judged_and_drawn(finished, monkeypatch):
    """With every field of its caption filled; files of figures have tests of their own."""
    experiment, folder, results = finished
    steps.function("tabulate")(experiment, folder / "effects.nc")
    answers = steps.function("judge")(experiment, folder / "answers.json")
    assert [one.id for one in answers] == [q.id for q in experiment.spec.questions]
    panels = read_panels(experiment, folder)
    assert answers_of(panels.table, experiment.spec, panels.failures) == answers
    assert set(experiment.spec.labels) <= set(experiment.study.parameters(results))
    monkeypatch.setattr(figures, "save", lambda figure, *_: figure.draw_without_rendering())
    steps.function("plot")(experiment, folder / "figure.png")
    assert "{{" not in (folder / "caption.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def effects(finished):
    """An experiment, its effects of planted results, and those expected."""
    experiment, _, results = finished
    made = planted(experiment, results)
    if made is None:
        pytest.skip(f"{experiment.name}: no planted results; `plant` of its tests.py makes them")
    results, expected = made
    return experiment, experiment.study.effects(results), expected


def test_effects_of_planted_results(effects):
    """Each claim is true of a problem and false of another, by the experiment's own statistic."""
    experiment, found, expected = effects
    for name, value in expected.items():
        effect, both = found[name], value if isinstance(value, tuple) else (value, value)
        for values, wanted in zip((effect.value, effect.predicted), both, strict=True):
            if values is not None and np.isfinite(values).any():
                np.testing.assert_allclose(values, wanted, rtol=2e-3, atol=2e-3, err_msg=name)
    for question in experiment.spec.questions:
        effect = found[question.effect]
        margin = np.append(effect.value, [] if effect.predicted is None else effect.predicted)
        if effect.kind == "gap":
            margin = conventions.TOLERANCES[question.tolerance or "methods"] - abs(margin)
        if effect.kind != "mean":
            assert (margin > 0).any(), question.id
            assert (margin < 0).any(), question.id


def numbers_of(experiment, effects, expected):
    """Revision and numbers of each question's effect that is planted."""
    numbers = {}
    for question in experiment.spec.questions:
        if question.effect in expected:
            effect = effects[question.effect]
            predicted = [] if effect.predicted is None else effect.predicted
            numbers[question.effect] = {
                "revision": question.revision,
                "value": np.ravel(effect.value).tolist(),
                "predicted": np.ravel(predicted).tolist(),
            }
    return numbers


def test_an_effect_whose_numbers_change_has_another_revision(effects):
    """A raised revision redraws the problems; ``SIMS_RECORD=1`` writes the record anew."""
    experiment = effects[0]
    found = numbers_of(*effects)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if "SIMS_RECORD" in os.environ:
        record[experiment.name] = found
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if experiment.name not in record:
        pytest.skip(f"{experiment.name}: not recorded by SIMS_RECORD=1")
    assert found.keys() == record[experiment.name].keys()
    for name, before in record[experiment.name].items():
        assert before["revision"] == found[name]["revision"], "run with SIMS_RECORD=1"
        for method in ("value", "predicted"):
            message = f"{name}: raise its revision in experiment.yaml"
            wanted = np.array(before[method], float)
            np.testing.assert_allclose(
                found[name][method], wanted, rtol=1e-6, atol=1e-9, err_msg=message
            )
