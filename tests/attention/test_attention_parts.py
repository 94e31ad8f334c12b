"""Layers against Equinox, which shares no code with them, and against loops where it has none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.attention.attention import (
    HeadMatrices,
    attend,
    attention_scores,
    attention_weights,
    causal_mask,
    contributions,
    distance_bias,
    head_outputs,
    output_gates,
    residual,
    token_mlp,
)
from sims.attention.norms import layer_norm, rms_norm

N, D, HEADS, WIDTH = 7, 12, 3, 4
PARTS = ("query", "key", "value", "output")
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def tokens(seed=0, n=N, d=D):
    return np.random.default_rng(seed).normal(size=(n, d)) * 3 + 1


def matrices(seed=1, d=D, heads=HEADS, width=WIDTH):
    rng = np.random.default_rng(seed)
    shapes = [(heads, d, width)] * 3 + [(heads, width, d)]
    return HeadMatrices(*(rng.normal(size=shape) for shape in shapes))


def library(own):
    """Equinox's attention with the same matrices; its rows are outputs, heads one after another."""
    layer = eqx.nn.MultiheadAttention(HEADS, D, dtype=jnp.float64, key=jax.random.key(0))
    return eqx.tree_at(
        lambda m: [getattr(m, f"{part}_proj").weight for part in PARTS],
        layer,
        (
            *(jnp.concatenate(list(part), axis=1).T for part in own[:3]),
            jnp.concatenate(list(own.output), axis=0).T,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_equinox_multihead_attention(masked):
    x, own = tokens() / 3, matrices()
    mask = causal_mask(N) if masked else None
    np.testing.assert_allclose(attend(x, own, mask=mask), library(own)(x, x, x, mask=mask), **CLOSE)


def test_norms_are_equinox_norms():
    x, rng = tokens(), np.random.default_rng(3)
    scale, shift = rng.normal(size=D), rng.normal(size=D)
    layer = eqx.tree_at(
        lambda m: (m.weight, m.bias), eqx.nn.LayerNorm(D, eps=0.01, dtype=jnp.float64),
        (scale, shift),
    )  # fmt: skip
    root = eqx.tree_at(
        lambda m: m.weight, eqx.nn.RMSNorm(D, eps=0.01, use_bias=False, dtype=jnp.float64), scale
    )
    np.testing.assert_allclose(layer_norm(x, scale, shift, 0.01), jax.vmap(layer)(x), **CLOSE)
    np.testing.assert_allclose(rms_norm(x, scale, 0.01), jax.vmap(root)(x), **CLOSE)


def test_a_token_of_equal_features_has_no_layer_norm():
    with np.errstate(invalid="ignore"):
        assert np.isnan(layer_norm(np.ones((1, 4)))).all()
    np.testing.assert_array_equal(layer_norm(np.ones((1, 4)), epsilon=1e-3), np.zeros((1, 4)))


def test_gated_attention_with_bias_and_mask_by_loops():
    """Equinox has neither score bias nor gates: every entry is summed by hand."""
    x, own, rng = tokens(4) / 3, matrices(5), np.random.default_rng(6)
    bias, gates = rng.normal(size=(N, N)), rng.normal(size=(N, HEADS))
    expected = np.zeros((N, D))
    for h in range(HEADS):
        for i in range(N):
            row = np.array([
                np.exp((x[i] @ own.query[h]) @ (x[j] @ own.key[h]) / WIDTH**0.5 + bias[i, j])
                for j in range(i + 1)
            ])  # fmt: skip
            head = sum(row[j] * (x[j] @ own.value[h]) for j in range(i + 1)) / row.sum()
            expected[i] += gates[i, h] * head @ own.output[h]
    found = attend(x, own, bias=bias, mask=causal_mask(N), gates=gates)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_contributions_are_the_summands():
    x, own = tokens(7) / 3, matrices(8)
    weights = attention_weights(attention_scores(x, own.query, own.key))
    parts = contributions(head_outputs(weights, x, own.value), own.output)
    for h in range(HEADS):
        alone = HeadMatrices(*(part[h : h + 1] for part in own))
        np.testing.assert_allclose(parts[h], attend(x, alone), **CLOSE)


def test_the_smaller_parts_by_loops():
    x, rng = tokens(9), np.random.default_rng(10)
    u, b = rng.normal(size=(D, HEADS)), rng.normal(size=HEADS)
    inner, shift, outer = rng.normal(size=(D, 5)), rng.normal(size=5), rng.normal(size=(5, D))
    gates = output_gates(x, u, b)
    mlp = token_mlp(x, inner, shift, outer)
    for i in range(N):
        for h in range(HEADS):
            score = sum(x[i, k] * u[k, h] for k in range(D)) + b[h]
            np.testing.assert_allclose(gates[i, h], 1 / (1 + np.exp(-score)), **CLOSE)
        hidden = [np.tanh(sum(x[i, k] * inner[k, f] for k in range(D)) + shift[f])
                  for f in range(5)]  # fmt: skip
        np.testing.assert_allclose(mlp[i], sum(hidden[f] * outer[f] for f in range(5)), **CLOSE)
    np.testing.assert_allclose(residual(x, mlp, 0.5, 0.8), 0.8 * x + 0.5 * np.asarray(mlp), **CLOSE)
    bias = distance_bias(4, 0.5)
    assert bias[0, 3] == bias[3, 0] == -1.5
    assert bias[2, 2] == 0


def test_jax_and_numpy_agree_and_layers_may_lead():
    """The same functions of JAX's arrays, traced; and of three layers at once."""
    x, own = np.stack([tokens(k) / 3 for k in range(3)]), matrices(12)
    many = HeadMatrices(*(np.stack([part] * 3) for part in own))
    gates = output_gates(x, np.ones((D, HEADS)))
    each = [attend(x[k], own, mask=causal_mask(N), gates=gates[k]) for k in range(3)]
    np.testing.assert_allclose(attend(x, many, mask=causal_mask(N), gates=gates), each, **CLOSE)
    traced = jax.jit(lambda t, g: rms_norm(layer_norm(attend(t, own, gates=g))))
    expected = rms_norm(layer_norm(attend(x[0], own, gates=gates[0])))
    np.testing.assert_allclose(traced(jnp.asarray(x[0]), jnp.asarray(gates[0])), expected, **CLOSE)
