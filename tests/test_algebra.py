"""Attention as two libraries compute it is Nadaraya–Watson estimation: true by algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims import Heads, nw_weights

N, D, HEADS, WIDTH = 60, 12, 3, 4
CLOSE = {"rtol": 1e-12, "atol": 1e-15}


def draws(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def weights(kernel, query, keys, temperature):
    """Of one head that sees all of a key."""
    frame = np.eye(keys.shape[1])[None]
    return np.asarray(nw_weights(Heads(frame, kernel, temperature**0.5), query, keys)[0])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_head_of_jax_has_the_weights_of_the_exponential_kernel(temperature):
    """Values that are the columns of the identity return the weights; JAX's are of float32."""
    query, keys = draws(0, WIDTH, (N, WIDTH))
    value = jnp.eye(N)[:, None]
    wide = [
        jnp.pad(a, ((0, 0), (0, 0), (0, N - WIDTH))) for a in (query[None, None], keys[:, None])
    ]
    found = jax.nn.dot_product_attention(*wide, value, scale=1 / temperature)[0, 0]
    np.testing.assert_allclose(found, weights("softmax", query, keys, temperature), rtol=1e-5)


def test_a_layer_of_equinox_is_an_ensemble_of_heads_in_subspaces_of_the_keys():
    """Σ_h W_O^h W_V^h f̂_h, each f̂_h at the point of key space that has the head's query."""
    x, keys, values, matrices = draws(1, (5, D), (N, D), (N, D), (4, D, D))
    layer = eqx.nn.MultiheadAttention(HEADS, D, dtype=jnp.float64, key=jax.random.key(0))
    names = ("query_proj", "key_proj", "value_proj", "output_proj")
    layer = eqx.tree_at(lambda m: [getattr(m, k).weight for k in names], layer, list(matrices))
    of_query, of_key, of_value, output = matrices
    heads = Heads(of_key.reshape(HEADS, WIDTH, D).swapaxes(1, 2), "softmax", WIDTH**0.25)
    for row, query in zip(np.asarray(layer(x, keys, values)), x, strict=True):
        estimates = np.asarray(nw_weights(heads, np.linalg.solve(of_key, of_query @ query), keys))
        parts = of_value.reshape(HEADS, WIDTH, D) @ (estimates @ values)[..., None]
        np.testing.assert_allclose(output @ parts.ravel(), row, rtol=1e-9, atol=1e-9)


def test_the_gaussian_kernel_takes_a_tilt_unless_all_keys_have_one_norm():
    query, keys = draws(2, WIDTH, (N, WIDTH))
    even = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    np.testing.assert_allclose(*(weights(k, query, even, 2) for k in ("gaussian", "softmax")))
    plain, softmax = (weights(k, query, keys, 2) for k in ("gaussian", "softmax"))
    tilted = plain * np.exp((keys**2).sum(1) / 4)
    np.testing.assert_allclose(tilted / tilted.sum(), softmax, **CLOSE)
    assert abs(plain - softmax).sum() / 2 > 0.1
