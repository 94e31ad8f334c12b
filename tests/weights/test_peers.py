"""Weights beside those of entmax on PyTorch (its numbers are in a file), optax, scikit-learn."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from optax.projections import projection_simplex
from sklearn.neighbors import KNeighborsRegressor

from sims.problem import Heads
from sims.simulation import nw_weights
from sims.weights import FACTORIES
from sims.weights.entmax import Entmax

KEPT = json.loads(Path(__file__).with_name("entmax_reference.json").read_text(encoding="utf-8"))
"""Written by benchmarks/reference.py; ``make peers`` compares the packages with it."""
FUNCTIONS = {"sparsemax": 2.0, "entmax15": 1.5} | {
    f"entmax_bisect {name}": alpha for name, alpha in KEPT["alphas"].items()
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_entmax_on_pytorch(name):
    """Within 1e-12 of a weight, rows of one key, of ties and of distant scores among them."""
    rule = FACTORIES["entmax"](alpha=FUNCTIONS[name]).weights
    assert KEPT["bisections"] >= 60
    rows = KEPT["weights"][name]
    assert len(rows) == len(KEPT["scores"]) >= 8
    for row, expected in zip(KEPT["scores"], rows, strict=True):
        np.testing.assert_allclose(rule(jnp.asarray(row)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 30, 3000])
def test_sparsemax_is_the_simplex_projection_of_optax(n):
    for scale in (0.01, 1.0, 100.0):
        z = jnp.asarray(scale * np.random.default_rng(n).normal(size=n))
        np.testing.assert_allclose(Entmax(1.0)(z), projection_simplex(z), rtol=0, atol=1e-12)


def test_estimates_of_scikit_learn():
    """Uniform weights of k neighbours, and sparsemax as weights by distance of all keys."""
    rng = np.random.default_rng(4)
    frame, keys, labels = (
        rng.normal(size=(1, 5, 3)),
        rng.normal(size=(400, 5)),
        rng.normal(size=400),
    )
    queries, b = rng.normal(size=(6, 5)), 0.6
    seen, at = keys @ frame[0], queries @ frame[0]

    def ours(rule):
        heads = Heads(frame, rule, b)
        return [float(nw_weights(heads, x, keys)[0] @ labels) for x in queries]

    def simplex(distances):
        rows = -(distances**2) / (2 * b**2)
        return np.stack([np.asarray(projection_simplex(jnp.asarray(row))) for row in rows])

    nearest = KNeighborsRegressor(n_neighbors=7).fit(seen, labels)
    top = ours(FACTORIES["top_k"](7, "distance"))
    np.testing.assert_allclose(top, nearest.predict(at), rtol=1e-12)
    every = KNeighborsRegressor(n_neighbors=400, weights=simplex).fit(seen, labels)
    sparse = ours(FACTORIES["sparsemax"]("distance"))
    np.testing.assert_allclose(sparse, every.predict(at), rtol=1e-11)
