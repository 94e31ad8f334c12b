"""The effects of `hidden_scores` on stacks that are made by hand, and the scale of drawn scores."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.attention import hidden
from sims.study.experiment import load_experiment
from sims.study.results import Results
from tests.experiments.by_hand import is_mean_of, is_ratio_of

effects, simulate = (load_experiment("hidden_scores").module(n) for n in ("effects", "simulate"))
BATCHES = 12
STARTS, MEMORY = ("zero", "copy"), np.array([0.0, 0.4, 0.7])
LAYERS = ("layer", "start", "memory")
SETTINGS = {
    "depths": {"pure": [2, 5], "normed": [3, 6]},
    "window": [1, 4],
    "late_span": 3,
    "slope_layer": 2,
    "temperature": {"judged": [0, 2]},
}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def stacks(part, estimates, predictions=None, **weights):
    """Results of one part alone; weights are tied where it is said so."""
    common = {"part": part, "matrix": "gaussian", "score_scale": 1.0}
    at = {name: common | {"weights": weights.get(name, "independent")} for name in estimates}
    return Results("hidden_scores", "smoke", estimates, predictions or {}, SETTINGS, at, {}, {})


def over_layers(values):
    """Of (batch, layer, start, memory)."""
    return ("batch", *LAYERS), values


def of_arms(data):
    return xr.Dataset(data, {"start": list(STARTS), "memory": MEMORY})


def by_label(found):
    return {effect.label: effect for effect in found}


def arms(first=0):
    """Places and names of starts and memories."""
    return [
        (i, start, j, float(MEMORY[j]))
        for i, start in enumerate(STARTS)
        for j in range(first, len(MEMORY))
    ]


def test_the_residual_falls_to_the_last_layer_and_is_kept_at_the_depths_asked(rng):
    logs = -rng.uniform(1, 9, (BATCHES, 7, 2, 3))
    law = xr.Dataset({"second_difference": ("memory", np.log(MEMORY + 0.01))}, {"memory": MEMORY})
    results = stacks("pure", {"p": of_arms({"log_residual": over_layers(logs)})}, {"p": law})
    found = {name: by_label(own) for name, own in effects.collapse(results).items()}
    assert len(found["fall of the residual"]) == len(found["second difference"]) == 4
    early, late = SETTINGS["window"]
    for i, start, j, memory in arms(1):
        label, own = f"p, {start}, α′ = {memory}", logs[:, :, i, j]
        is_mean_of(found["fall of the residual"][label], -own[:, 6])
        for depth in SETTINGS["depths"]["pure"]:
            kept = own[:, depth - 1] - logs[:, depth - 1, i, 0]
            is_mean_of(found["residual kept"][f"{label}, depth {depth}"], kept)
        slower = (own[:, late + 1] - own[:, late]) - (own[:, early + 1] - own[:, early])
        second = slower / (late - early) / np.log(memory + 0.01) - 1
        is_mean_of(found["second difference"][label], second)


def test_a_search_ends_at_the_first_size_with_one_violation():
    """Rounding is none; at no violation all sizes are counted, and the largest value is left."""
    none, one, all_worse = np.array([-0.3, 1e-12]), np.array([-0.2, 0.4]), np.array([2.0, 3.0])
    found = effects.smallest([("a", none), ("b", one), ("c", all_worse)])
    assert (found.label, found.values.tolist()) == ("smallest: b", [0.4])
    found = effects.smallest([("a", none), ("b", none - 1)])
    assert (found.label, found.values.tolist()) == ("none at 2 sizes", [1e-12, 0.0])


def test_energy_falls_on_new_scores_if_values_are_keys():
    """Of 400 drawn memories, no step raises it by more than rounding; on old scores some do, and
    some do whose values are drawn apart from keys."""
    draw = SimpleNamespace(rng=lambda: np.random.default_rng(4))
    rises = simulate.energies(3, 2, {"draws": 400, "steps": 10}, draw, 1, None)["rise"]
    new, old, apart = rises.max(0)
    assert new < 1e-12 < 0.01 < min(old, apart)


def test_memory_that_keeps_tokens_apart_keeps_spread(rng):
    """ω grows as tokens become alike: its fall below that of plain attention is what is kept."""
    tokens = rng.normal(size=(8, 3))
    alike = tokens.mean(0) + 0.1 * (tokens - tokens.mean(0))
    assert hidden.split(alike).log_odds > hidden.split(tokens).log_odds
    odds = rng.uniform(4, 5, (BATCHES, 7, 2, 3)) - np.array([0.0, 1.5, 3.0])
    found = effects.uniformity(stacks("normed", {"p": of_arms({"log_odds": over_layers(odds)})}))
    kept = by_label(found["spread kept"])
    assert len(kept) == 8
    for i, start, j, memory in arms(1):
        for depth in SETTINGS["depths"]["normed"]:
            effect = kept[f"p, {start}, α′ = {memory}, depth {depth}"]
            assert effect.value > 0
            is_mean_of(effect, odds[:, depth - 1, i, 0] - odds[:, depth - 1, i, j])


def test_late_log_odds_that_grow_by_the_law_leave_no_gap(rng):
    """Of a stack that is anything at first; then each memory has a rate of its own."""
    law, layers = 0.25, 9
    rates = law * np.array([[1.0, 1.1, 0.8], [0.9, 1.0, 1.3]])
    odds = rng.normal(size=(BATCHES, layers, 2, 3))
    late = np.arange(SETTINGS["late_span"] + 1)[:, None, None] * rates
    odds[:, -1 - SETTINGS["late_span"] :] = late + rng.normal(size=(BATCHES, 1, 1, 1))
    results = stacks(
        "late", {"p": of_arms({"log_odds": over_layers(odds)})}, {"p": xr.Dataset({"rate": law})}
    )
    found = {name: by_label(own) for name, own in effects.uniformity(results).items()}
    for i, start, j, memory in arms():
        label = f"p, {start}, α′ = {memory}"
        gap = found["late slope over law"][label]
        assert gap.value == pytest.approx(rates[i, j] / law - 1, abs=1e-12)
        if memory > 0:
            more = found["late slope over plain"][label].value
            assert more == pytest.approx(rates[i, j] - rates[i, 0], abs=1e-12)


def test_slopes_on_new_scores_are_those_of_independent_weights(rng):
    """Mean product over mean square, over β_l = 1 − α′^(l+1) or 1, and over 1 − α′; less 1."""

    def drawn():
        names = ("product", "square")
        return {k: over_layers(rng.uniform(1, 2, (BATCHES, 5, 2, 3))) for k in names}

    raw = {"own": drawn(), "tied": drawn()}
    found = effects.scores(
        stacks("normed", {name: of_arms(data) for name, data in raw.items()}, tied="tied")
    )
    for name in ("slope over the temperature", "slope over the last share"):
        assert len(found[name]) == 4
        assert {effect.points for effect in found[name]} == {("own",)}
        assert {effect.at["weights"] for effect in found[name]} == {"independent"}
    layer = SETTINGS["slope_layer"]
    for i, start, j, memory in arms(1):
        above, below = (raw["own"][k][1][:, layer, i, j] for k in ("product", "square"))
        label = f"own, {start}, α′ = {memory}"
        beta = {"copy": 1.0, "zero": 1 - memory ** (layer + 1)}[start]
        for name, size in (("temperature", beta), ("last share", 1 - memory)):
            effect = by_label(found[f"slope over the {name}"])[label]
            is_ratio_of(effect, above, below * size, 1.0)


def test_effective_keys_are_told_apart_by_the_variance_of_scores(rng):
    """Where hidden scores vary by Var h by theory, e^(−Var h) of the keys count."""
    variance = rng.uniform(0.1, 2.0, (3, 2, 3))
    law = of_arms({"score_variance": (LAYERS, variance), "keys": (LAYERS, np.exp(-variance))})
    raw = {k: rng.uniform(1, 2, (BATCHES, 3, 2, 3)) for k in ("score_variance", "keys")}
    data = of_arms({k: over_layers(v) for k, v in raw.items()})
    found = effects.scores(stacks("temperature", {"p": data}, {"p": law}))
    for family, name in (("score variance", "score_variance"), ("effective keys", "keys")):
        own = by_label(found[family])
        assert len(own) == 12
        for i, start, j, memory in arms():
            for layer in SETTINGS["temperature"]["judged"]:
                effect = own[f"p, {start}, α′ = {memory}, layer {layer}"]
                is_mean_of(effect, raw[name][:, layer, i, j] / law[name].values[layer, i, j] - 1)
                assert effect.at["variance"] == variance[layer, i, j]


@pytest.mark.parametrize("matrix", ["gaussian", "semidefinite"])
def test_drawn_scores_of_normal_tokens_have_the_standard_deviation_that_is_stated(rng, matrix):
    """x·My for M drawn 400 times, x and y from 16 tokens N(0, I) in R^24.

    Its variance is β²; for GGᵀ it is β² (1 + 1/2d), which Wishart's moments say. Within 4.4
    standard errors: one false alarm in 10⁵.
    """
    draws, d, beta = 400, 24, 1.5
    settings = {"d": d, "score_scale": beta, "matrix": matrix}
    bilinear = simulate.drawn_weights(settings, rng, draws)[0][:, 0, 0]
    tokens = rng.normal(size=(draws, 16, d))
    scores = tokens @ bilinear @ np.swapaxes(tokens, 1, 2)
    squares = (scores[:, ~np.eye(16, dtype=bool)] ** 2).mean(1)
    expected = beta**2 * (1 + (matrix == "semidefinite") / (2 * d))
    error = squares.std(ddof=1) / draws**0.5
    assert error < 0.05 * expected
    assert abs(squares.mean() - expected) < 4.4 * error


def test_the_second_layer_is_as_uncertain_as_its_theory(rng):
    """Gaps over the expected error; the bound is the stated error of the term over it."""
    names = ("squared_bias", "variance")
    law = {name: (("start", "memory"), rng.uniform(1, 2, (2, 3))) for name in (*names, "mse")}
    law |= {f"{name}_error": (("start", "memory"), rng.uniform(0.1, 0.2, (2, 3))) for name in names}
    law, raw = of_arms(law), {name: rng.uniform(1, 2, (BATCHES, 2, 3)) for name in names}
    data = of_arms({name: (("batch", "start", "memory"), raw[name]) for name in names})
    results = stacks("second layer", {"p": data}, {"p": law})
    results.coordinates["p"].update(view="same", kernel="gaussian")
    found = by_label(effects.regression(results)["second layer over theory"])
    assert len(found) == 12
    for i, start, j, memory in arms():
        for name in names:
            term, error, scale = (float(law[key][i, j]) for key in (name, f"{name}_error", "mse"))
            effect = found[f"same, gaussian, {start}, α′ = {memory}, {name}"]
            is_mean_of(effect, (raw[name][:, i, j] - term) / scale, bound=error / scale)
