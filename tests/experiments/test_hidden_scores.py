"""The experiment `hidden_scores`: its rows can turn, its searches end at the smallest case."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ncx2

from sims.study.experiment import load_experiment
from tests.experiments.runs import both_roads, small

WITHOUT_THEORY = ("normed", "monotone", "energy", "drawn heads")


@pytest.fixture(scope="module")
def experiment():
    return small("hidden_scores", batches=16, replicates_per_batch=2)


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: not point.startswith(WITHOUT_THEORY))


def test_searches_end_at_the_smallest_case(results, experiment):
    families = experiment.module("effects").effects(results)
    labels = {name: families[name][0].label for name in families if name.startswith("rise")}
    assert labels["rise, old"] == "smallest: energy n=2 d=1"
    assert labels["rise, values"] == "smallest: energy n=1 d=1"
    assert labels["rise, new"] == "none at 5 sizes"
    assert families["below plain, zero"][0].label == "smallest: monotone n=2"


def test_sampled_effects_are_near_what_they_should_be(results, experiment):
    """Effects of no error are within eight standard errors of 0; of 16 batches: 1 in a million."""
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
        e
        for e in effects["residual kept"]
        if e.label == "pure, Gaussian β=1, copy, α′ = 0.5, depth 3"
    ]
    assert kept.value == pytest.approx(np.mean(own[:, 2] - data.sel(memory=0.0).values[:, 2]))
    (second,) = [
        e for e in effects["second difference"] if e.label == "pure, Gaussian β=1, copy, α′ = 0.5"
    ]
    early, late = results.settings["window"]
    steps = np.diff(own, axis=1)
    slope = np.mean(steps[:, late] - steps[:, early]) / (late - early)
    assert second.value == pytest.approx(slope / np.log(0.5) - 1)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_errors_over_drawn_problems_by_loops(experiment, kernel):
    """The same generator gives queries, phases, keys and noise; heads one by one."""
    own = experiment.settings["second_layer"] | {"draws": 2, "n": 5}
    view = own["views"][1]
    draw = SimpleNamespace(rng=lambda: np.random.default_rng(3))
    found = experiment.module("second_layer").drawn_heads(own, view, kernel, draw, 3, None)
    rng, count = np.random.default_rng(3), 3
    at = 0.6 * rng.normal(size=(count, 1, 2))
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 2))
    keys, b = rng.normal(size=(count, 2, 5, 2)), own["bandwidth"][kernel]
    noise = rng.normal(size=(count, 2, 5))
    for i, (first, second) in enumerate([(0.0, 1.0), (0.0, 1.0)]):  # without memory, by start
        estimates = np.zeros((count, 2))
        truth = [
            sum(np.cos(2 * at[k, 0, u] + phase[k, 0, j]) for j, u in ((0, 1), (1, 0)))
            for k in range(count)
        ]
        for k, r in np.ndindex(count, 2):
            log = np.zeros(5)
            for share, axis in ((first, 0), (second, 1)):
                x, y = at[k, 0, axis], keys[k, r, :, axis]
                log += share * (-((x - y) ** 2) / 2 if kernel == "gaussian" else x * y) / b**2
            labels = sum(np.cos(2 * keys[k, r, :, u] + phase[k, 0, j]) for j, u in ((0, 1), (1, 0)))
            weights = np.exp(log) / np.exp(log).sum()
            estimates[k, r] = weights @ (labels + 0.5 * noise[k, r])
        error = np.mean((estimates - np.array(truth)[:, None]) ** 2)
        assert found["mse"][i, 0] == pytest.approx(error, rel=1e-12)
        half = np.mean((estimates[:, 0] - estimates[:, 1]) ** 2) / 2
        assert found["variance"][i, 0] == pytest.approx(half, rel=1e-12)


def test_shares_saved_are_of_the_error_without_memory(results, experiment):
    families = experiment.module("effects").effects(results)
    data = results.estimates["drawn heads, relevant view, gaussian"].sel(start="copy")
    base = data["mse"].isel(memory=0).values.mean()
    for family, name in (("error saved", "mse"), ("variance saved", "variance")):
        (effect,) = [
            e for e in families[family] if e.label == "relevant view, gaussian, copy, α′ = 0.3"
        ]
        saved = data[name].isel(memory=0).values.mean() - data[name].sel(memory=0.3).values.mean()
        assert effect.value == pytest.approx(saved / base, abs=2 * effect.error)


def test_predictions_by_hand(experiment):
    laws = experiment.module("predict").predict(experiment)
    assert float(laws["identities"]["ratio, zero"]) == pytest.approx(1 - 0.6**4)
    fixed = laws["rank, fixed tokens"]
    np.testing.assert_array_equal(fixed["stated"], [3, 6, 9, 12, 12])
    np.testing.assert_array_equal(fixed["corrected"], [3, 6, 8, 8, 8])
    second = laws["second layer, same view, gaussian"].sel(start="copy")
    np.testing.assert_allclose(second["mse"], float(second["mse"][0]), rtol=1e-9)


def test_late_log_odds_grow_faster_where_tokens_are_normed(experiment):
    """At skip ½ the branch's variance is 1: E log χ′²_d(d)/d, and 1/2d more where a norm is."""
    own = experiment.settings["second_layer"] | {"views": []}
    bare = SimpleNamespace(settings=dict(experiment.settings) | {"second_layer": own})
    laws = experiment.module("predict").predict(bare)
    d = experiment.settings["stack"]["d"]
    plain = ncx2(d, d).expect(np.log) - np.log(d)
    assert float(laws["late, skip"]["rate"]) == pytest.approx(plain, rel=1e-6)
    normed = plain + 1 / (2 * d)
    assert float(laws["late, skip and norm"]["rate"]) == pytest.approx(normed, rel=1e-6)


def test_every_stack_is_named_once():
    names = [regime["name"] for regime in load_experiment("hidden_scores").settings["stacks"]]
    assert len(set(names)) == len(names)


def test_bias_and_variance_of_the_second_layer_add_up_to_its_error(experiment):
    """Of three sets of keys, exactly: a variance of n − 1, and a square without its own."""
    own = experiment.settings["second_layer"] | {"draws": 3, "n": 5}
    draw = SimpleNamespace(rng=lambda: np.random.default_rng(4))
    layer = experiment.module("second_layer").second_layer
    found = layer(own, own["views"][0], "softmax", draw, 1, None)
    np.testing.assert_allclose(found["squared_bias"] + found["variance"], found["mse"], rtol=1e-12)
