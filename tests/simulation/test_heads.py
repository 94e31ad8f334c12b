"""Heads against brute force in NumPy, far from every key, and with no key in reach."""

import numpy as np
import pytest

from sims.problem import Heads
from sims.simulation import nw_weights
from tests.by_hand import refused
from tests.simulation.conftest import BOX, frames
from tests.simulation.reference import kernel_weights


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("far", [1.0, 300.0])
def test_weights_against_brute_force(make, kernel, far):
    """With other frames for keys, near and far from every key."""
    _, heads, queries = make(kernel)
    heads = Heads(heads.frames, kernel, 0.7, frames(3, 4, 2, seed=8))
    keys = np.random.default_rng(0).normal(size=(50, 4))
    k, b = np.einsum("hdp,nd->hnp", heads.of_keys, keys), np.full((3, 1), 0.7)
    for x in far * np.asarray(queries):
        q = np.einsum("hdp,d->hp", heads.frames, x)[:, None]
        expected = kernel_weights(kernel, q, k, b)
        weights = np.asarray(nw_weights(heads, x, keys))
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-12)


def test_no_key_in_reach_counts_as_zero(make):
    _, heads, _ = make()
    heads = Heads(heads.frames, BOX, 0.5)
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
