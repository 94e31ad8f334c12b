"""The experiment `hidden_scores`: simulators by plain loops, heads by theory."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.hidden_scores import predict, problems, simulate
from sims.montecarlo.draws import Draw
from tests.experiments.drawing import fields_of


def drawn(**changes):
    return problems.Problem(fields_of("hidden_scores", **changes))


SIGNS = np.array([1, -1])[:, None, None]
"""Of the values of two stacks with skip and norm, which are one draw."""


def stacks(parts):
    """Two of each part: two draws, or one draw twice."""
    return np.resize(parts, (2, *parts.shape[1:]))


def plain_layer(x, scores, value, skip, normed):
    """The next tokens, and the effective keys' share of a layer."""
    a = softmax(scores, axis=1)
    x = skip * x + (1 - skip) * a @ x @ value
    if normed:
        x = x / np.sqrt((x**2).mean(1, keepdims=True))
    return x, 1 / (a**2).sum(1).mean() / len(x)


@pytest.mark.parametrize(
    ("weights", "matrix", "start", "normed"),
    [("independent", "gaussian", "copy", True), ("tied", "semidefinite", "zero", False)],
)
def test_a_stack_by_plain_layers(weights, matrix, start, normed):
    """``h_l = α′h_{l−1} + share·S_l``, ``X ↦ αX + (1 − α)softmax(h)XW``; three layers."""
    problem = drawn(n=4, d=3, weights=weights, matrix=matrix, start=start)
    fields, d = problem.drawn, 3
    residual, keys = simulate.stack(np.random.default_rng(9), 2, problem, 3, normed)
    rng = np.random.default_rng(9)
    drawn_stacks = 1 if normed else 2
    tokens, layers = stacks(rng.normal(size=(drawn_stacks, 4, 3))), []
    for layer in range(3):
        if layer == 0 or weights == "independent":
            form, value = map(stacks, rng.normal(size=(2, drawn_stacks, d, d)))
            if matrix == "semidefinite":
                form = form @ form.swapaxes(1, 2) / (2 * d) ** 0.5
            if normed:
                value = value * SIGNS
        layers.append((fields["score_scale"] * form / d, fields["value_scale"] * value / d**0.5))
    skip = fields["skip"] if normed else 0
    for arm, memory in enumerate((0, fields["memory"])):
        expected = np.zeros((3, 2))
        for k in range(2):
            x, h = tokens[k], 0
            for layer, (form, value) in enumerate(layers):
                share = 1 if start == "copy" and layer == 0 else 1 - memory
                h = memory * h + share * x @ form[k] @ x.T
                x, expected[layer, k] = plain_layer(x, h, value[k], skip, normed)
                rho = np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x)
            assert residual[k, arm] == pytest.approx(np.log(rho), rel=1e-8)
        np.testing.assert_allclose(keys[:, arm], expected.mean(1), rtol=1e-8)


def test_the_mean_cosine_and_keys_are_those_of_the_stack_with_skip_and_norm():
    """Three layers by plain arithmetic, both stacks on the same generator; keys of two layers."""
    problem = drawn(n=4, d=3, weights="tied", matrix="gaussian", depth=2, deep=3)
    result = simulate.batch(Draw.from_seed(5, (), 2).draw(0), 2, problem)
    rng, fields = Draw.from_seed(5, (), 2).draw(0).rng(), problem.drawn
    for normed, layers in ((False, 2), (True, 3)):
        drawn_stacks = 1 if normed else 2
        tokens = stacks(rng.normal(size=(drawn_stacks, 4, 3)))
        form, value = map(stacks, rng.normal(size=(2, drawn_stacks, 3, 3)))
        value = value * SIGNS if normed else value
        skip = fields["skip"] if normed else 0.0
        cosines, keys = np.zeros(2), np.zeros((3, 2))
        for k, x in enumerate(tokens):
            for layer in range(layers):
                scores = x @ form[k] @ x.T * fields["score_scale"] / 3
                own = value[k] * fields["value_scale"] / 3**0.5
                x, keys[layer, k] = plain_layer(x, scores, own, skip, normed)
            unit = x / np.linalg.norm(x, axis=1, keepdims=True)
            cosines[k] = ((unit @ unit.T).sum() - 4) / 12
    assert result["cosine"][0] == pytest.approx(cosines.mean())
    assert (result["first_keys"], result["keys"][0]) == pytest.approx(keys[:2].mean(1))


@pytest.mark.parametrize(("kernel", "start"), [("gaussian", "zero"), ("softmax", "copy")])
def test_heads_of_a_second_layer_by_loops(kernel, start):
    """The product of both layers' kernels to the powers of their shares, key by key."""
    problem = drawn(kernel=kernel, start=start, keys=5)
    fields, b = problem.drawn, problem.bandwidth
    assert b == fields["bandwidth" if kernel == "gaussian" else "softmax_bandwidth"]
    result, attended = simulate.heads(np.random.default_rng(3), 2, problem)
    rng = np.random.default_rng(3)
    keys, noise = rng.normal(size=(2, 1, 5, 2))[:, 0], rng.normal(size=(2, 1, 5))[:, 0]
    phase, turn = problem.target.phase, np.deg2rad(fields["angle"])

    def target(x):
        away = fields["relevance"] * np.cos(fields["frequency"] * x[..., 1] + phase[0])
        return away + np.cos(fields["frequency"] * x[..., 0] + phase[1])

    views = (np.cos(turn), np.sin(turn)), (1, 0)
    for arm, memory in enumerate((0, fields["memory"])):
        shares = (memory if start == "copy" else memory * (1 - memory)), 1 - memory
        errors, squares = [], []
        for own_keys, own_noise in zip(keys, noise, strict=True):
            for query in problem.queries:
                log = np.zeros(5)
                for share, view in zip(shares, views, strict=True):
                    x, y = np.dot(query, view), own_keys @ view
                    log += share * (x * y if kernel == "softmax" else -((x - y) ** 2) / 2) / b**2
                weights = softmax(log)
                labels = target(own_keys) + fields["noise_sd"] * own_noise
                errors.append((weights @ labels - target(query)) ** 2)
                squares.append(weights @ weights)
        inverse = 1 / np.reshape(squares, (2, -1)).mean(1) / 5
        assert attended[arm] == pytest.approx(inverse.mean(), rel=1e-9)
        assert result[arm] == pytest.approx(np.mean(errors), rel=1e-9)


@pytest.mark.theory
@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_heads_of_a_second_layer_are_those_of_theory(kernel):
    """One head whose frame is both views, scaled by the roots of their shares; to 5 %."""
    problem = drawn(kernel=kernel, keys=256, bandwidth=0.5, softmax_bandwidth=1.2, reach=0.3)
    expected = predict.theory(problem)
    assert expected["in_range"]
    result, _ = simulate.heads(np.random.default_rng(4), 2000, problem)
    np.testing.assert_allclose(result, expected["mse"], rtol=0.05)
