"""Heads against brute force in NumPy, far from every key, and with no key in reach."""

import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import Heads, Kernel
from sims.simulation import nw_weights
from tests.by_hand import refused


def brute_force(kernel, frames, b, x, keys):
    q = np.einsum("hdp,d->hp", frames, x)[:, None]
    k = np.einsum("hdp,nd->hnp", frames, keys)
    if kernel == "gaussian":
        log_k = -((q - k) ** 2).sum(-1) / (2 * b**2)
    else:
        log_k = (q * k).sum(-1) / b**2
    log_k = log_k - log_k.max(1, keepdims=True)
    return np.exp(log_k) / np.exp(log_k).sum(1, keepdims=True)


def box_kernel():
    def log_value(query, key, bandwidth):
        inside = jnp.all(jnp.abs(query - key) < bandwidth, axis=0)
        return jnp.where(inside, 0.0, -jnp.inf)

    return Kernel("box", log_value)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("far", [1.0, 300.0])
def test_weights_against_brute_force(make, kernel, far):
    _, heads, queries = make(kernel)
    keys = np.random.default_rng(0).normal(size=(50, 4))
    for x in far * np.asarray(queries):
        expected = brute_force(kernel, np.asarray(heads.frames), 0.7, x, keys)
        weights = np.asarray(nw_weights(heads, x, keys))
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-12)


def test_no_key_in_reach_counts_as_zero(make):
    _, heads, _ = make()
    heads = Heads(heads.frames, box_kernel(), 0.5)
    keys = np.random.default_rng(0).normal(size=(20, 4))
    weights = nw_weights(heads, np.full(4, 100.0), keys)
    assert np.all(np.asarray(weights) == 0)
    inside = nw_weights(heads, keys[0], keys)
    np.testing.assert_allclose(inside.sum(1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("query", "keys", "field"),
    [(np.zeros(3), np.zeros((5, 4)), "query"), (np.zeros(4), np.zeros((0, 4)), "keys")],
)
def test_bad_shapes(make, query, keys, field):
    with refused(field):
        nw_weights(make()[1], query, keys)


def test_key_frames_project_keys_alone():
    """Weights of other frames for keys are those of projected points in the head's own space."""
    rng = np.random.default_rng(5)
    of_queries, of_keys = rng.normal(size=(2, 1, 4, 2))
    x, keys = rng.normal(size=4), rng.normal(size=(9, 4))
    plain = Heads(np.eye(2)[None], "gaussian", 0.7)
    expected = nw_weights(plain, x @ of_queries[0], keys @ of_keys[0])
    heads = Heads(of_queries, "gaussian", 0.7, of_keys)
    np.testing.assert_allclose(nw_weights(heads, x, keys), expected, rtol=1e-12)
    assert np.abs(nw_weights(Heads(of_keys, "gaussian", 0.7), x, keys) - expected).max() > 0.01
