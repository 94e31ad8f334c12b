"""Tokens in parts: the plain layers while float64 holds them, and 120 decimal digits beyond."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from sims.attention.attention import (
    HeadMatrices,
    attend,
    attention_weights,
    causal_mask,
    distance_bias,
)
from sims.attention.norms import rms_norm
from sims.attention.split import attend_split, rms_norm_split, split

N, D = 5, 4


def problem(seed, size=1.0):
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(1, D)) + size * rng.normal(size=(N, D))
    return tokens, rng.normal(size=(D, D)) / D**0.5, rng.normal(size=(D, D)) / D**0.5


def whole(parts):
    return parts.mean + np.exp(parts.log_scale) * parts.centred


@pytest.mark.parametrize("bias", [None, "distance", "causal"])
@pytest.mark.parametrize("skip", [0.0, 0.7])
def test_one_layer_is_plain_attention(bias, skip):
    x, score, value = problem(1)
    biases = {"distance": distance_bias(N, 0.3), "causal": np.where(causal_mask(N), 0.0, -np.inf)}
    plain = attention_weights(x @ score @ x.T, biases.get(bias)) @ x @ value
    found = attend_split(split(x), score, value, biases.get(bias), branch=0.6, skip=skip)
    np.testing.assert_allclose(whole(found), skip * x + 0.6 * plain, rtol=1e-12, atol=1e-13)


def test_attention_of_a_head_has_the_score_matrix():
    """M = W_Q W_Kᵀ/√d_k and W = W_V W_O, as in multi-head attention of one head."""
    rng = np.random.default_rng(2)
    x, head = rng.normal(size=(N, D)), HeadMatrices(
        *(rng.normal(size=(1, D, 2)) for _ in range(3)), rng.normal(size=(1, 2, D))
    )  # fmt: skip
    score, value = head.query[0] @ head.key[0].T / 2**0.5, head.value[0] @ head.output[0]
    found = whole(attend_split(split(x), score, value))
    np.testing.assert_allclose(found, attend(x, head), rtol=1e-12, atol=1e-13)


def test_norm_is_the_plain_one():
    x = problem(3)[0]
    np.testing.assert_allclose(whole(rms_norm_split(split(x))), rms_norm(x), rtol=1e-12)


def test_log_odds_and_residual():
    x = problem(4)[0]
    centred = x - x.mean(0)
    residual = np.linalg.norm(centred) / np.linalg.norm(x)
    assert split(x).log_residual == pytest.approx(np.log(residual), rel=1e-12)
    assert split(x).log_odds == pytest.approx(np.log(1 / residual**2 - 1), rel=1e-12)


def decimals(array):
    return [[Decimal(float(v)) for v in row] for row in array]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, col, strict=True)) for col in zip(*b, strict=True)]
            for row in a]  # fmt: skip


def plain_layers(tokens, score, value, layers, normed):
    """log ρ after every layer, by plain softmax of decimals with 120 digits."""
    x, m, w = decimals(tokens), decimals(score), decimals(value)
    out = []
    for _ in range(layers):
        scores = product(product(x, m), list(zip(*x, strict=True)))
        kernel = [[v.exp() for v in row] for row in scores]
        attention = [[v / sum(row) for v in row] for row in kernel]
        x = product(product(attention, x), w)
        if normed:
            sizes = [(sum(v * v for v in row) / D).sqrt() for row in x]
            x = [[v / s for v in row] for row, s in zip(x, sizes, strict=True)]
        mean = [sum(col) / N for col in zip(*x, strict=True)]
        centred = sum((v - c) ** 2 for row in x for v, c in zip(row, mean, strict=True))
        out.append(float((centred / sum(v * v for row in x for v in row)).ln() / 2))
    return out


@pytest.mark.parametrize("normed", [False, True])
def test_residuals_far_below_rounding(normed, monkeypatch):
    """ρ of 1e-16 is passed at the third layer; 120 digits hold it to the fourth and beyond."""
    monkeypatch.setattr(getcontext(), "prec", 400)
    x, score, value = problem(5, size=0.5)
    expected = plain_layers(x, score, value, 5, normed)
    tokens, found = split(x), []
    for _ in range(5):
        tokens = attend_split(tokens, score, value)
        tokens = rms_norm_split(tokens) if normed else tokens
        found.append(float(tokens.log_residual))
    assert expected[-1] < np.log(1e-60)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
