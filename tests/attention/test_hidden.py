"""Hidden scores: layers against plain loops, and the split representation."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from sims.attention import hidden
from sims.attention.attention import causal_mask, softmax
from sims.theory.neighbours.hidden import shares


def reference(tokens, bilinear, value, memory, skip, start):
    """Stack of layers by plain loops over rows, scores unrolled as sums over layers."""
    n, kept = len(tokens), []
    for layer, (m, w) in enumerate(zip(bilinear, value, strict=True)):
        kept.append([[tokens[i] @ m @ tokens[j] for j in range(n)] for i in range(n)])
        h = np.zeros((n, n))
        for k, scores in enumerate(kept):
            share = (1 - memory) * memory ** (layer - k)
            if k == 0 and start == "copy":
                share = memory**layer
            h += share * np.array(scores)
        new = []
        for i in range(n):
            weights = [np.exp(h[i, j] - max(h[i])) for j in range(n)]
            mean = sum(a * tokens[j] for j, a in enumerate(weights)) / sum(weights)
            new.append(skip * tokens[i] + (1 - skip) * mean @ w)
        tokens = np.array(new)
    return tokens


def drawn(layers=4, n=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), *(rng.normal(size=(layers, d, d)) for _ in range(2))


@pytest.mark.parametrize("start", ["zero", "copy"])
@pytest.mark.parametrize(("memory", "skip"), [(0.0, 0.3), (0.6, 0.0), (0.6, 0.5)])
def test_stack_by_loops(start, memory, skip):
    tokens, bilinear, value = drawn()
    x, h = tokens, np.zeros((5, 5))
    stream = hidden.split(tokens)
    for layer in range(4):
        share = hidden.first_share(memory, start) if layer == 0 else 1 - memory
        x, h = hidden.layer(x, h, bilinear[layer], value[layer], memory, skip, share)
        stream = hidden.split_layer(stream, bilinear[layer], value[layer], memory, skip, share)
    expected = reference(tokens, bilinear, value, memory, skip, start)
    np.testing.assert_allclose(x, expected, rtol=1e-11)
    np.testing.assert_allclose(stream.mean + stream.residual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bias", [None, "distance", "causal"])
@pytest.mark.parametrize("skip", [0.0, 0.7])
def test_a_branch_and_a_bias_of_scores(bias, skip):
    """One layer without memory is ``skip·X + branch·softmax(XMXᵀ + bias)XW``."""
    x, bilinear, value = drawn()
    own = {
        "distance": -0.3 * abs(np.subtract.outer(range(5), range(5))),
        "causal": np.where(causal_mask(5), 0.0, -np.inf),
    }
    m, w, chosen = 0.3 * bilinear[0], value[0], own.get(bias)
    scores = x @ m @ x.T if chosen is None else x @ m @ x.T + chosen
    found = hidden.split_layer(hidden.split(x), m, w, 0.0, skip, 1.0, 0.6, chosen)
    expected = skip * x + 0.6 * softmax(scores) @ x @ w
    np.testing.assert_allclose(found.mean + found.residual, expected, rtol=1e-11, atol=1e-13)


def test_a_memory_for_each_stack():
    """Arms along a leading axis are arms one by one."""
    tokens, bilinear, value = drawn()
    memory = np.array([0.0, 0.4, 0.9])
    whole = hidden.split(np.broadcast_to(tokens, (3, 5, 3)))
    whole = hidden.split_layer(whole, bilinear[0], value[0], memory, 0.2, 1 - memory)
    for arm, one in enumerate(memory):
        own = hidden.split_layer(hidden.split(tokens), bilinear[0], value[0], one, 0.2, 1 - one)
        np.testing.assert_allclose(whole.residual[arm], own.residual, rtol=1e-12)
        np.testing.assert_allclose(whole.rows[arm], own.rows, rtol=1e-12)


@pytest.mark.parametrize(("memory", "normed"), [(0.0, False), (0.0, True), (0.05, False)])
def test_residuals_below_any_number(memory, normed, monkeypatch):
    """ρ below 10^−308, against plain softmax of decimals; with memory and without, with a norm."""
    monkeypatch.setattr(getcontext(), "prec", 1000)
    rng, n, layers = np.random.default_rng(8), 3, 24 if memory else 6 if normed else 7
    tokens, bilinear = rng.normal(size=(n, 2)), rng.normal(size=(2, 2))
    x, m = ([[Decimal(float(v)) for v in row] for row in part] for part in (tokens, bilinear))
    kept, old = Decimal(memory), [[Decimal(0)] * n for _ in range(n)]
    stream, found, expected = hidden.split(tokens), [], []
    for _layer in range(layers):
        turned = [[sum(r[a] * m[a][b] for a in (0, 1)) for b in (0, 1)] for r in x]
        new = [[sum(a * b for a, b in zip(t, r, strict=True)) for r in x] for t in turned]
        old = [
            [kept * h + (1 - kept) * s for h, s in zip(*rows, strict=True)]
            for rows in zip(old, new, strict=True)
        ]
        raised = [[h.exp() for h in row] for row in old]
        x = [
            [sum(e * r[c] for e, r in zip(row, x, strict=True)) / sum(row) for c in (0, 1)]
            for row in raised
        ]
        if normed:
            sizes = [(sum(v * v for v in row) / 2).sqrt() for row in x]
            x = [[v / s for v in row] for row, s in zip(x, sizes, strict=True)]
        mean = [sum(column) / n for column in zip(*x, strict=True)]
        apart = sum((r[c] - mean[c]) ** 2 for r in x for c in (0, 1))
        expected.append(float((apart / sum(v * v for r in x for v in r)).ln() / 2))
        stream = hidden.split_layer(stream, bilinear, np.eye(2), memory, 0.0, 1 - memory)
        stream = hidden.split_rms_norm(stream) if normed else stream
        found.append(float(stream.log_residual))
    assert expected[-1] < -308 * np.log(10)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_rms_norm_far_below_rounding():
    """To first order a residual is divided by the mean's RMS, less what it has along the mean."""
    tokens, _, _ = drawn()
    stream = hidden.split(tokens)
    small = stream._replace(log_scale=stream.log_scale + np.log(1e-25))
    normed = hidden.split_rms_norm(small)
    m = stream.mean
    off = stream.residual - np.outer(stream.residual @ m / (m @ m), m)
    size = np.sqrt(np.mean(m**2))
    np.testing.assert_allclose(normed.residual, 1e-25 * off / size, rtol=1e-9, atol=1e-38)
    whole = hidden.split_rms_norm(stream)
    expected = tokens / np.sqrt(np.mean(tokens**2, axis=1, keepdims=True))
    np.testing.assert_allclose(whole.mean + whole.residual, expected, rtol=1e-12)


def test_tokens_that_are_equal_stay_so():
    """Both attend to the larger one alone; the scale of no residual does not grow with scores."""
    stream = hidden.split(np.array([[1.0, 0.0], [20.0, 0.0]]))
    for _layer in range(8):
        stream = hidden.split_layer(stream, 1e4 * np.eye(2), 2 * np.eye(2), 0.0, 0.0, 1.0)
    assert np.isneginf(stream.log_residual)
    np.testing.assert_array_equal(stream.mean, [20 * 2.0**8, 0.0])


def test_measures():
    tokens, _, _ = drawn()
    stream = hidden.split(tokens)
    rho = np.linalg.norm(stream.residual) / np.linalg.norm(tokens)
    assert stream.log_residual == pytest.approx(np.log(rho))
    assert stream.log_odds == pytest.approx(np.log(1 / rho**2 - 1))
    tiny = stream._replace(log_scale=stream.log_scale - 200 * np.log(10))
    odds = stream.log_odds + 400 * np.log(10)
    assert tiny.log_odds == pytest.approx(odds)


@pytest.mark.parametrize("start", ["zero", "copy"])
def test_concatenated_features(start):
    rng = np.random.default_rng(3)
    query, key = rng.normal(size=(2, 4, 6, 2))
    scores = query @ np.swapaxes(key, -1, -2)
    last = hidden.accumulate(scores, 0.7, start)[-1]
    roots = np.sqrt(shares(3, 0.7, start))[:, None, None]
    wide_query = np.concatenate(roots * query, axis=-1)
    wide_key = np.concatenate(roots * key, axis=-1)
    np.testing.assert_allclose(wide_query @ wide_key.T, last, rtol=1e-12)
