"""Weights beside those of entmax on PyTorch, whose numbers are in a file."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from sims.weights import FACTORIES

KEPT = json.loads(Path(__file__).with_name("entmax_reference.json").read_text(encoding="utf-8"))
"""Written by benchmarks/reference.py; ``make peers`` compares the packages with it."""
FUNCTIONS = {"sparsemax": 2.0, "entmax15": 1.5} | {
    f"entmax_bisect {name}": alpha for name, alpha in KEPT["alphas"].items()
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_entmax_on_pytorch(name):
    """Within 1e-12 of a weight, rows of one key, of ties and of distant scores among them."""
    rule = jax.jit(FACTORIES["entmax"](alpha=FUNCTIONS[name]).weights)
    assert KEPT["bisections"] >= 60
    rows = KEPT["weights"][name]
    assert len(rows) == len(KEPT["scores"]) >= 8
    for row, expected in zip(KEPT["scores"], rows, strict=True):
        np.testing.assert_allclose(rule(np.asarray(row)), expected, rtol=0, atol=1e-12)
