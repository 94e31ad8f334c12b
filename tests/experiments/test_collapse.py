"""The experiment `collapse`: stacks by plain loops, decoders by theory."""

import numpy as np
import pytest
from scipy.special import softmax

from experiments.collapse import predict, problems, simulate
from sims.attention.hidden import split
from sims.theory.neighbours.heads import lost_share
from tests.experiments.drawing import fields_of


def drawn(number=0, **changes):
    return problems.Problem(fields_of("collapse", number, **changes))


def normed(x, kind):
    x = x - x.mean(1, keepdims=True) if kind == "layer" else x
    return x / np.sqrt((x**2).mean(1, keepdims=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"block": "attention alone", "positions": "none", "placed": "after"},
        {"block": "residual stream", "mlps": True, "placed": "before", "positions": "causal mask"},
        {"block": "residual stream", "mlps": False, "placed": "after", "branches": "scaled"},
        {"block": "residual stream", "mlps": True, "placed": "nowhere", "norm": "layer"},
    ],
)
def test_stacks_by_plain_layers(changes):
    """Every stack, head and token by itself, on the same draws; branches of both signs."""
    small = {"tokens": 5, "dimension": 8, "heads": 2, "variance": 0.8, "output": "projection"}
    fields = (problem := drawn(**(small | changes))).drawn
    alone, depth = fields["block"] == "attention alone", 2
    result = simulate.stack(np.random.default_rng(7), 4, problem, depth)

    rng = np.random.default_rng(7)
    tokens, layers = problem.tokens(rng, 1, count := 2)[0], []
    for _ in range(depth):
        layers.append([problem.matrices(rng, 1, count)])
        if fields["mlps"] and not alone:
            layers[-1].append(rng.normal(size=(count, 8, 32)) / 8**0.5)
            layers[-1].append(rng.normal(size=(count, 32, 8)) * (0.8 / 32) ** 0.5)
    logs = []
    for k in range(count):
        for sign in (1.0,) if alone else (1.0, -1.0):
            x, path = tokens[k], []
            scale = sign * (depth**-0.5 if problem.scaled else 1.0)
            for layer in range(depth):
                parts, *mlp = layers[layer]
                for kind in ("attention", "mlp")[: 1 + len(mlp) // 2]:
                    seen = normed(x, fields["norm"]) if fields["placed"] == "before" else x
                    after = np.zeros_like(x)
                    if kind == "mlp":
                        after = np.tanh(seen @ mlp[0][k]) @ mlp[1][k]
                    for head in range(2 if kind == "attention" else 0):
                        q, key, v, o = (part[head, 0, k] for part in parts)
                        scores = (seen @ q) @ (seen @ key).T / problem.width**0.5
                        scores += 0.0 if problem.bias is None else problem.bias
                        after += softmax(scores, axis=1) @ seen @ v @ o
                    x = scale * after if alone else x + scale * after
                    x = normed(x, fields["norm"]) if fields["placed"] == "after" else x
                path.append(np.log(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x)))
            logs.append(path)
    np.testing.assert_allclose(result[1:], np.mean(logs, 0), rtol=1e-6)


def test_an_mlp_of_tokens_that_no_number_tells_apart():
    """At R = e^−300 R_1 it is its derivative; where tanh is no line, the plain difference."""
    rng = np.random.default_rng(0)
    tokens, inner, outer = rng.normal(size=(4, 3)), rng.normal(size=(3, 6)), rng.normal(size=(6, 2))
    for size, expected in (
        (-300.0, lambda m, r: r @ inner * (1 - np.tanh(m @ inner) ** 2) @ outer),
        (1.0, lambda m, r: np.tanh((m + np.e * r) @ inner) @ outer / np.e),
    ):
        stream = split(tokens)._replace(log_scale=np.array(size))
        after = expected(stream.mean, stream.centred)
        result = simulate.mlp(stream, inner, outer)
        np.testing.assert_allclose(result.centred, after - after.mean(0), atol=1e-12)


@pytest.mark.theory
@pytest.mark.parametrize("content", ["free", "attended"])
def test_heads_lose_what_theory_says(content):
    """Both methods, without gates and with, at relative noise and at equal; 5 standard errors."""
    problem = drawn(tokens=8, dimension=8, heads=4, channels=2, content=content, noise=0.1)
    np.testing.assert_allclose(np.mean(np.sum(problem.layer.factors**2, -1)), 1)
    rng = np.random.default_rng(1)
    each = np.array([simulate.lost_shares(rng, problem) for _ in range(20)])
    factors, output, (ones, gates) = (
        problem.layer.factors,
        problem.layer.output,
        problem.layer.gates,
    )
    power = [np.einsum("nh,hnr,hkd->", g**2, factors**2, output**2) for g in (ones, gates)]
    at_equal_noise = lost_share(factors, gates, output, 0.1 * (power[0] / power[1]) ** 0.5)
    gap = each.mean(0) - [*predict.theory(problem)["lost"].values, at_equal_noise]
    assert (np.abs(gap) < 5 * each.std(0, ddof=1) / 20**0.5).all()


@pytest.mark.parametrize("positions", ["none", "causal mask"])
def test_selectivity_is_that_of_the_layers_attention(positions):
    """n_eff of the heads whose contents are recovered, row by row."""
    problem = drawn(tokens=8, dimension=8, heads=2, positions=positions, scale=4.0)
    rng = np.random.default_rng(problem.drawn["weights"])
    tokens = problem.tokens(rng)
    query, key, _, _ = problem.matrices(rng)
    squares = []
    for head in range(2):
        for i in range(8):
            seen = 1 + i if positions == "causal mask" else 8
            score = tokens[i] @ query[head] @ (tokens[:seen] @ key[head]).T / problem.width**0.5
            squares.append(np.sum(softmax(score) ** 2))
    assert predict.theory(problem)["selectivity"] == pytest.approx(1 / np.mean(squares) / 8)
