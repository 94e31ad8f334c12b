"""What the simulator of `hidden_scores` returns, by plain loops over the same draws."""

from types import SimpleNamespace

import numpy as np
import pytest

from sims.study.experiment import load_experiment

simulate = load_experiment("hidden_scores").module("simulate")


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


def test_hidden_scores_of_drawn_rows_vary_and_weigh_as_loops_say():
    """Var over the n keys of a row has n − 1 below; effective keys are 1/(n Σw²), row by row."""
    own, r, memory = {"n": 5, "rows": 3, "layers": 4}, 0.6, np.array([0.0, 0.5])
    found = simulate.temperatures(own, memory, r, drawing(8), 2, None)

    noise = np.random.default_rng(8).normal(size=(4, 6, 5))
    scores = [noise[0]]
    for layer in range(1, 4):
        scores.append(r * scores[layer - 1] + np.sqrt(1 - r**2) * noise[layer])
    for start, first_is_all in enumerate((False, True)):
        for place, share in enumerate(memory):
            state = np.zeros((6, 5))
            for layer in range(4):
                new = 1.0 if first_is_all and layer == 0 else 1 - share
                state = share * state + new * scores[layer]
                variances, keys = [], []
                for row in state:
                    mean = sum(row) / 5
                    variances.append(sum((z - mean) ** 2 for z in row) / 4)
                    weights = [np.exp(z) / sum(np.exp(row)) for z in row]
                    keys.append(1 / (5 * sum(w**2 for w in weights)))
                at = (layer, start, place)
                assert found["score_variance"][at] == pytest.approx(sum(variances) / 6)
                assert found["keys"][at] == pytest.approx(sum(keys) / 6)


def centred_twice(scores):
    """What depends on row and key alike: less the means of rows, and of keys."""
    own = scores - scores.mean(0)
    return own - own.mean(1, keepdims=True)


@pytest.mark.parametrize(("weights", "norm"), [("independent", True), ("tied", False)])
def test_a_stack_with_memory_by_plain_layers(weights, norm):
    """``h_l = α′h_{l−1} + share·S_l``, ``X ↦ αX + (1 − α)softmax(h)XW``; S_l of the layer's input.

    The share is 1 − α′, and 1 in the first layer of a copy. Products and squares are of scores
    centred over rows and keys: of new ones with hidden ones, and of new ones with themselves.
    """
    n, d, layers, draws, skip, beta = 4, 3, 3, 2, 0.5, 1.5
    own = {
        "n": n,
        "d": d,
        "layers": layers,
        "weights": weights,
        "matrix": "gaussian",
        "score_scale": beta,
        "skip": skip,
        "norm": norm,
    }
    memory = np.array([0.0, 0.6])
    found = simulate.stack(own, memory, drawing(9), draws, None)

    rng = np.random.default_rng(9)
    drawn = rng.normal(size=(draws, n, d))
    matrices = []
    for layer in range(layers):
        if layer == 0 or weights == "independent":
            score = beta * rng.normal(size=(draws, d, d)) / d
            value = rng.normal(size=(draws, d, d)) / d**0.5
        matrices.append((score, value))
    names = ("product", "square", "log_residual", "log_odds")
    for start, place in np.ndindex(2, 2):
        each = np.zeros((len(names), layers, draws))
        for k in range(draws):
            x, h = drawn[k], np.zeros((n, n))
            for layer, (score, value) in enumerate(matrices):
                share = 1.0 if start == 1 and layer == 0 else 1 - memory[place]
                new = x @ score[k] @ x.T
                h = memory[place] * h + share * new
                x = skip * x + (1 - skip) * rows_of(h) @ x @ value[k]
                if norm:
                    x = x / np.sqrt((x**2).mean(1, keepdims=True))
                rho, apart = residual_of(x), centred_twice(new)
                each[:, layer, k] = [
                    (apart * centred_twice(h)).mean(),
                    (apart**2).mean(),
                    np.log(rho),
                    np.log(1 / rho**2 - 1),
                ]
        for name, values in zip(names, each, strict=True):
            np.testing.assert_allclose(found[name][:, start, place], values.mean(1), rtol=1e-9)
