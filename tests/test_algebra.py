"""Attention, as two libraries compute it and sparse, is Nadaraya–Watson estimation: by algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims import Heads, nw_weights
from sims.weights import FACTORIES
from sims.weights.sparse import Relu, ReluGap

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


KERNELS = {1: "epanechnikov", 2: "biweight", 3: "triweight"}
"""The kernel (1 − u²)₊^ν by ν."""


def rows(even):
    """Rows of a query, keys (of one norm, or as they come), their squared distances and a
    temperature from e⁻³ to e³."""
    for seed in range(10):
        query, keys = draws(seed, WIDTH, (N, WIDTH))
        if even:
            keys *= 1.3 / np.linalg.norm(keys, axis=1, keepdims=True)
        yield query, keys, ((keys - query) ** 2).sum(1), np.exp(6 * seed / 9 - 3)


def is_kernel(found, nu, square, query, keys):
    """Whether weights are those of a compact kernel of that squared radius."""
    np.testing.assert_allclose(found, weights(KERNELS[nu], query, keys, square), rtol=0, atol=1e-8)


def passed_over(found, squares):
    """Whether a key is attended to and a nearer one is not: no decreasing kernel does that."""
    return squares[found > 0].max() > squares[found == 0].min(initial=np.inf)


@pytest.mark.parametrize("nu", KERNELS)
@pytest.mark.parametrize("scores", ["distance", "dot"])
def test_entmax_is_a_compact_kernel_whose_denominator_is_constant(nu, scores):
    """`sparsemax-epanechnikov` (ν = 1), `entmax-family`: ``w = (h² − d²)₊^ν/(2sν)^ν``.

    Of dot products only if keys have one norm: else it attends to a half-space.
    """
    rule = FACTORIES["entmax"](nu=nu, scores=scores)
    for query, keys, squares, s in rows(even=scores == "dot"):
        found = weights(rule, query, keys, s)
        most = found.argmax()
        square = squares[most] + 2 * s * nu * found[most] ** (1 / nu)
        is_kernel(found, nu, square, query, keys)
        total = (np.maximum(square - squares, 0) ** nu).sum()
        np.testing.assert_allclose(total, (2 * s * nu) ** nu, rtol=1e-8)
    if scores == "dot":
        assert any(passed_over(weights(rule, q, k, s), d) for q, k, d, s in rows(even=False))


def test_relu_is_the_epanechnikov_kernel_if_keys_have_one_norm():
    """`relu-epanechnikov`: ``h² = a² + R² + 2γb``; of the gap to the best key ``d_(1)² + 2γs``.

    With other keys it may leave a nearer key out; a row may be empty.
    """
    for query, keys, squares, gain in rows(even=True):
        z = keys @ query
        offset = -(z.mean() + z.max()) / 2 / gain
        square = query @ query + keys[0] @ keys[0] + 2 * gain * offset
        is_kernel(Relu(gain, offset, "zero")(jnp.asarray(z)), 1, square, query, keys)
        own = ReluGap(0.7)(jnp.asarray(z / gain))
        is_kernel(own, 1, squares.min() + 1.4 * gain, query, keys)
        assert not Relu(gain, -1.1 * z.max() / gain, "zero")(jnp.asarray(z)).any()
    assert any(
        passed_over(np.asarray(Relu(1.0, -(k @ q).max() / 2, "zero")(jnp.asarray(k @ q))), d)
        for q, k, d, _ in rows(even=False)
    )


@pytest.mark.parametrize("rule", ["softmax", "sparsemax", "entmax", "relu_gap", "top_k"])
def test_orthogonal_heads_share_the_noise_of_equal_weights(rule):
    """`angle-floor`: E Σ_i w_hi w_gi = 1/n at every n, of rules whose weights sum to one.

    Orthogonal heads see independent keys: the mean over all shifts of one head's keys is exact.
    A compact kernel of fixed radius that reaches no key is a counterexample.
    """
    options = {"entmax": {"nu": 2.0}, "relu_gap": {"gain": 0.5}, "top_k": {"k": 3}}
    own = FACTORIES[rule](**options.get(rule, {})) if rule in FACTORIES else rule
    keys, queries = draws(5, (2, N, 2), (2, 2))
    one, other = (weights(own, query, seen, 0.3) for query, seen in zip(queries, keys, strict=True))
    shared = [one @ np.roll(other, shift) for shift in range(N)]
    np.testing.assert_allclose(np.mean(shared), 1 / N, rtol=1e-12)
    assert not weights("epanechnikov", queries[0], keys[0] + 9, 0.3).any()
