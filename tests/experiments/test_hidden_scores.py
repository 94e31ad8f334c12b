"""The experiment `hidden_scores`: its rows can turn, its searches end at the smallest case."""

from dataclasses import replace

import numpy as np
import pytest

from sims.study.experiment import load_experiment
from tests.experiments.helpers import check_figure, verdicts
from tests.experiments.runs import both_roads, small

WITHOUT_THEORY = ("normed", "monotone", "energy")
REFUTED = {
    ("hidden-standard", "first layer, zero"),
    ("hidden-score-rank", "tokens that stay, as stated"),
    ("hidden-collapse", "simplex, zero, search"),
    ("hidden-energy", "old scores, search"),
    ("hidden-energy", "values apart from keys, search"),
}
"""Of the rows without sampling."""


@pytest.fixture(scope="module")
def experiment():
    return small("hidden_scores", batches=8, replicates_per_batch=2)


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: not point.startswith(WITHOUT_THEORY))


def changed(results, point, change, name):
    data = results.estimates[point]
    return replace(
        results, estimates=results.estimates | {point: data.assign({name: change(data[name])})}
    )


def test_rows_without_sampling(results, experiment):
    found = verdicts(experiment, results)
    program = {(c.id, c.regime) for c in experiment.claims if c.kind in ("program", "theory")}
    assert {at for at in program if found[at] == "refuted"} == REFUTED
    assert {found[at] for at in program - REFUTED} == {"supported"}


@pytest.mark.parametrize(
    ("point", "name", "regime"),
    [
        ("identities", "standard", "no memory"),
        ("identities", "kernel", "concatenated features"),
        ("identities", "ratio, zero", "frozen scores"),
        ("rank, moving tokens", "rank", "tokens that move"),
        ("simplex n=4 β=1.0", "log_size", "recursion, simplex"),
        ("monotone n=3", "shortfall", "simplex, copy, search"),
        ("energy n=2 d=2", "rise", "new scores, keys are values, search"),
    ],
)
def test_each_identity_can_fail(results, experiment, point, name, regime):
    other = changed(results, point, lambda values: values + 100.0, name)
    (at,) = [at for at in verdicts(experiment, other) if at[1] == regime]
    assert verdicts(experiment, other)[at] == "refuted"


def test_searches_end_at_the_smallest_case(results, experiment):
    families = experiment.module("effects").effects(results)
    labels = {name: families[name][0].label for name in families if name.startswith("rise")}
    assert labels["rise, old"] == "smallest: energy n=2 d=1"
    assert labels["rise, values"] == "smallest: energy n=1 d=1"
    assert labels["rise, new"] == "none at 5 sizes"
    assert families["below plain, zero"][0].label == "smallest: monotone n=2"


def test_sampled_effects_are_near_what_they_should_be(results, experiment):
    """Eight batches decide nothing; effects of no error are within six standard errors of 0."""
    families = experiment.module("effects").effects(results)
    for name in ("score variance", "second layer over theory", "late slope over plain"):
        for effect in families[name]:
            assert abs(effect.value) <= 8 * effect.error + effect.bound + 0.005, (
                name,
                effect.label,
            )


def test_effects_of_collapse_by_hand(results, experiment):
    effects = experiment.module("effects").effects(results)
    data = results.estimates["pure, Gaussian β=1"]["log_residual"].sel(start="copy")
    own = data.sel(memory=0.5).values
    (kept,) = [
        e for e in effects["residual kept"]
        if e.label == "pure, Gaussian β=1, copy, α′ = 0.5, depth 3"
    ]  # fmt: skip
    assert kept.value == pytest.approx(np.mean(own[:, 2] - data.sel(memory=0.0).values[:, 2]))
    (second,) = [
        e for e in effects["second difference"]
        if e.label == "pure, Gaussian β=1, copy, α′ = 0.5"
    ]  # fmt: skip
    early, late = results.settings["window"]
    steps = np.diff(own, axis=1)
    slope = np.mean(steps[:, late] - steps[:, early]) / (late - early)
    assert second.value == pytest.approx(slope / np.log(0.5) - 1)


def test_predictions_by_hand(experiment):
    laws = experiment.module("predict").predict(experiment)
    assert float(laws["identities"]["ratio, zero"]) == pytest.approx(1 - 0.6**4)
    fixed = laws["rank, fixed tokens"]
    np.testing.assert_array_equal(fixed["stated"], [3, 6, 9, 12, 12])
    np.testing.assert_array_equal(fixed["corrected"], [3, 6, 8, 8, 8])
    second = laws["second layer, same view, gaussian"].sel(start="copy")
    np.testing.assert_allclose(second["mse"], float(second["mse"][0]), rtol=1e-9)


def test_figure_and_caption(results, experiment):
    assert "refuted" in check_figure(experiment, results)


def test_every_stack_is_named_once():
    names = [regime["name"] for regime in load_experiment("hidden_scores").settings["stacks"]]
    assert len(set(names)) == len(names)
