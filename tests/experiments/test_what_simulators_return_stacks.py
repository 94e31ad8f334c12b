"""What simulators of `collapse` return, by plain loops over the same draws."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment

collapse = load_experiment("collapse")
depth, effects, ranking, symmetry = (
    collapse.module(name) for name in ("depth", "effects", "ranking", "symmetry")
)
BATCHES = 10


def drawing(seed):
    """A draw whose generator is known."""
    return SimpleNamespace(rng=lambda: np.random.default_rng(seed))


def rows_of(scores):
    """Weights of every row, ``e^S`` over its sum."""
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def residual_of(tokens):
    """The relative residual ρ = ‖X − mean‖/‖X‖."""
    return np.linalg.norm(tokens - tokens.mean(0)) / np.linalg.norm(tokens)


def test_draws_are_collapsed_at_a_residual_below_a_millionth():
    """Layers ``X ↦ softmax(XMXᵀ)XW`` in plain arithmetic; the share of draws with ρ < 10⁻⁶.

    In some draws ρ is between 10⁻⁶ and e⁻⁶, and in some it is lower.
    """
    n, d, width, layers, count = 4, 3, 2, 3, 40
    sampler = depth.layers({"scale": 1.0, "depth": layers}, {"n": n, "d": d, "width": width})
    found = sampler.batch(drawing(3), count, None)

    rng = np.random.default_rng(3)
    states = rng.normal(size=(count, n, d))
    residuals = [[residual_of(tokens) for tokens in states]]
    for _layer in range(layers):
        query, key = rng.normal(size=(2, count, d, width)) / d**0.5
        value = rng.normal(size=(count, d, d)) / d**0.5
        after = []
        for x, q, k, w in zip(states, query, key, value, strict=True):
            scores = (x @ q) @ (x @ k).T / width**0.5
            after.append(rows_of(scores) @ x @ w)
        states = np.array(after)
        residuals.append([residual_of(tokens) for tokens in states])
    shares = [np.mean([rho < 1e-6 for rho in own]) for own in residuals]
    np.testing.assert_array_equal(found["collapsed"], shares)
    np.testing.assert_allclose(found["log_residual"][:3], np.log(residuals[:3]).mean(1), rtol=1e-6)
    assert 0 < shares[-1] < np.mean([rho < np.exp(-6) for rho in residuals[-1]])


@pytest.mark.parametrize("skip", [1.0, 0.0])
def test_shares_below_are_of_the_least_singular_value_draw_by_draw(skip):
    """σ of centred ``X + AXW``, or of centred AXW over that of centred AX; A = softmax(XXᵀ/√d)."""
    n, d, count = 5, 3, 30
    below = list(np.geomspace(0.005, 3, 40))
    found = ranking.tails(n, d, skip, {"below": below}).batch(drawing(4), count, None)["share"]

    rng = np.random.default_rng(4)
    tokens, values = rng.normal(size=(count, n, d)), rng.normal(size=(count, d, d))
    least = []
    for x, w in zip(tokens, values, strict=True):
        scores = np.array([[sum(a * b) / d**0.5 for b in x] for a in x])
        mixed = rows_of(scores) @ x
        after = skip * x + mixed @ w
        sizes = [
            np.sqrt(max(np.linalg.eigvalsh(np.cov(part.T, bias=True) * n)[0], 0.0))
            for part in (after, mixed)
        ]
        least.append(sizes[0] if skip else sizes[0] / sizes[1])
    np.testing.assert_allclose(found, [np.mean([s < t for s in least]) for t in below])


def test_directions_that_stay_open_are_counted_over_all_tokens_together():
    """The null space of the map from all heads of all tokens to all outputs, as one matrix."""
    n, heads, width = 3, 4, 2
    settings = {"n": n, "heads": heads, "width": width}
    found = symmetry.channels(settings).batch(drawing(5), 1, None)["open"]

    rng = np.random.default_rng(5)
    output = rng.normal(size=(width, width))
    for gates, number in zip(
        (np.ones((n, heads)), rng.uniform(0.1, 0.9, (n, heads))), found, strict=True
    ):
        whole = np.zeros((n * width, n * heads * width))
        for t, h, i, o in np.ndindex(n, heads, width, width):
            whole[t * width + o, (t * heads + h) * width + i] = gates[t, h] * output[i, o]
        assert number == whole.shape[1] - np.linalg.matrix_rank(whole) == n * (heads - 1) * width


def test_growth_under_a_norm_is_that_of_the_layers_that_it_is_over(monkeypatch):
    """``(ω_L − ω_f)/(L − f)`` over the law, f the first layer with mean ρ < 0.03; less 1."""
    monkeypatch.setattr(effects, "spans", lambda _results: {})
    rng, law, layers, first = np.random.default_rng(6), 0.4, 9, 4
    rates = law * (1.25 + 0.01 * rng.normal(size=BATCHES))
    logs = np.where(np.arange(layers + 1) < first, np.log(0.2), np.log(0.01))
    odds = rng.normal(size=(BATCHES, layers + 1))
    odds[:, first:] = rates[:, None] * np.arange(layers + 1 - first)
    data = {"log_residual": np.tile(logs, (BATCHES, 1)), "log_odds": odds}
    stack = xr.Dataset({name: (("batch", "layer"), values) for name, values in data.items()})
    kept = xr.Dataset({"loss": (("b", "r", "c"), np.zeros((BATCHES, 2, 2)))})
    results = SimpleNamespace(
        estimates={"normed": stack, "kept": kept},
        points=["normed", "kept"],
        prediction=lambda _name: xr.Dataset({"growth": law}),
        settings={"depths": {"normed": {"skip": 1, "norm": True, "depth": layers}}},
    )
    (effect,) = effects.streams(results)["growth under a norm"]
    assert effect.label == "normed"
    np.testing.assert_allclose(effect.values, rates / law - 1, rtol=1e-10)


def test_depth_with_positions_is_judged_on_the_stack_with_a_bias():
    """Minus the slope of log ρ over the second half of its layers, of ``bias`` alone."""
    rng, layers = np.random.default_rng(7), 6
    slopes = {
        "bias": -0.3 + 0.01 * rng.normal(size=BATCHES),
        "causal": -0.7 + 0.01 * rng.normal(size=BATCHES),
    }
    estimates = {}
    for name, own in slopes.items():
        logs = rng.normal(size=(BATCHES, layers + 1))
        logs[:, layers // 2 :] = own[:, None] * np.arange(layers // 2 + 1)
        estimates[name] = xr.Dataset({"log_residual": (("batch", "layer"), logs)})
    tokens, masks = [8, 16], ["none", "causal"]
    ratios = rng.normal(size=(BATCHES, 2, 2))
    estimates["spectra"] = xr.Dataset(
        {"log_ratio": (("batch", "mask", "tokens"), ratios)}, {"mask": masks, "tokens": tokens}
    )
    estimates["entropies"] = xr.Dataset(
        {"deficit": (("batch", "scores", "scale"), rng.uniform(size=(BATCHES, 2, 2)))},
        {"scores": ["plain", "normed"], "scale": [1, 4]},
    )
    estimates["gauges"] = xr.Dataset({"gap": (("batch", "gauge"), np.zeros((BATCHES, 4)))})
    estimates["channels"] = xr.Dataset({"open": (("batch", "gates"), np.ones((BATCHES, 2)))})
    law = xr.Dataset({"log_ratio": ("tokens", np.zeros(2))}, {"tokens": tokens})
    found = effects.symmetries(
        SimpleNamespace(estimates=estimates, prediction=lambda _name: law, settings={})
    )
    (effect,) = found["depth, with positions"]
    np.testing.assert_allclose(effect.values, -slopes["bias"], rtol=1e-10)
    (masked,) = found["width, with a mask"]
    np.testing.assert_allclose(masked.values, ratios[:, 1, 0] - ratios[:, 1, 1])
