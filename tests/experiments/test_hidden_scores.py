"""The experiment `hidden_scores`: heads by plain loops and by theory."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.hidden_scores import predict, problems, simulate
from tests.experiments.drawing import fields_of


def drawn(**changes):
    return problems.Problem(fields_of("hidden_scores", **changes))


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
                tried = weights @ labels, softmax(log / 4) @ labels
                errors.append((tried - target(query)) ** 2)
                squares.append(weights @ weights)
        inverse = 1 / np.reshape(squares, (2, -1)).mean(1) / 5
        assert attended[arm] == pytest.approx(inverse.mean(), rel=1e-9)
        np.testing.assert_allclose(result[arm, [4, 6]], np.mean(errors, axis=0), rtol=1e-9)


@pytest.mark.theory
@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_heads_of_a_second_layer_are_those_of_theory(kernel):
    """One head whose frame is both views, scaled by the roots of their shares; to 5 %."""
    problem = drawn(kernel=kernel, keys=256, bandwidth=0.5, softmax_bandwidth=1.2, reach=0.3)
    expected = predict.theory(problem)
    assert expected["in_range"]
    result, _ = simulate.heads(np.random.default_rng(4), 2000, problem)
    np.testing.assert_allclose(result[:, 4], expected["mse"], rtol=0.05)
