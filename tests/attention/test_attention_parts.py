"""Layers against Equinox, which shares no code with them, and against loops where it has none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sims.attention.attention import (
    HeadMatrices,
    attend,
    causal_mask,
    distance_bias,
    layer_norm,
    rms_norm,
    softmax,
    token_mlp,
)

N, D, HEADS, WIDTH = 7, 12, 3, 4
PARTS = ("query", "key", "value", "output")
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
X = np.random.default_rng(0).normal(size=(N, D)) + 0.3


def matrices(seed):
    rng = np.random.default_rng(seed)
    shapes = [(HEADS, D, WIDTH)] * 3 + [(HEADS, WIDTH, D)]
    return HeadMatrices(*(rng.normal(size=shape) for shape in shapes))


def test_attention_is_equinox_multihead_attention():
    """With the same matrices; its rows are outputs, heads one after another. Layers may lead."""
    own, other = matrices(1), matrices(2)
    layer = eqx.nn.MultiheadAttention(HEADS, D, dtype=jnp.float64, key=jax.random.key(0))
    layer = eqx.tree_at(
        lambda m: [getattr(m, f"{part}_proj").weight for part in PARTS],
        layer,
        (
            *(jnp.concatenate(list(part), axis=1).T for part in own[:3]),
            jnp.concatenate(list(own.output), axis=0).T,
        ),
    )
    np.testing.assert_allclose(attend(X, own), layer(X, X, X), **CLOSE)
    both = HeadMatrices(*(np.stack(parts) for parts in zip(own, other, strict=True)))
    each = [attend(X, own), attend(2 * X, other)]
    np.testing.assert_allclose(attend(np.stack([X, 2 * X]), both), each, **CLOSE)


def test_norms_are_equinox_norms():
    plain = {"use_weight": False, "use_bias": False, "dtype": jnp.float64}
    layer, root = eqx.nn.LayerNorm(D, eps=0.01, **plain), eqx.nn.RMSNorm(D, eps=0, **plain)
    np.testing.assert_allclose(layer_norm(X, 0.01), jax.vmap(layer)(X), **CLOSE)
    np.testing.assert_allclose(rms_norm(X), jax.vmap(root)(X), **CLOSE)
    with np.errstate(invalid="ignore"):
        assert np.isnan(layer_norm(np.ones((1, 4)))).all()


def test_the_smaller_parts_by_loops():
    rng = np.random.default_rng(10)
    inner, shift, outer = rng.normal(size=(D, 5)), rng.normal(size=5), rng.normal(size=(5, D))
    scores, mask = rng.normal(size=(N, N)), causal_mask(N)
    weights, mlp = softmax(scores, mask), token_mlp(X, inner, shift, outer)
    for i in range(N):
        row = [np.exp(scores[i, j]) if j <= i else 0.0 for j in range(N)]
        np.testing.assert_allclose(weights[i], np.array(row) / sum(row), **CLOSE)
        hidden = [np.tanh(X[i] @ inner[:, f] + shift[f]) for f in range(5)]
        np.testing.assert_allclose(mlp[i], sum(hidden[f] * outer[f] for f in range(5)), **CLOSE)
    bias = distance_bias(4, 0.5)
    assert bias[0, 3] == bias[3, 0] == -1.5
    assert bias[2, 2] == 0
