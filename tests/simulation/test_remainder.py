"""Remainders by control variates, where both sides are known without simulation."""

import numpy as np
import pytest

from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.simulation import Linearisation, estimate

TASK = Task(DESIGNS["isotropic"](1), TrigonometricSeries([1.0], [[1.3]], [0.4]), 0.7)
HEADS = Heads(np.ones((1, 1, 1)), "gaussian", [0.8])
QUERIES = np.array([[0.0], [0.5]])


def tilted_moments():
    """p, m*, r, E_hh m and E_hh (m − m*)² at the queries, by the trapezoid rule."""
    x = np.linspace(-9, 9, 4001)
    density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    m = np.cos(1.3 * x + 0.4)
    kernel = np.exp(-((QUERIES - x) ** 2) / (2 * 0.8**2))
    p = kernel @ density
    limit = kernel @ (density * m) / p
    r = kernel**2 @ density / p**2
    own = kernel**2 @ (density * m) / (kernel**2 @ density)
    square = (kernel**2 * (m - limit[:, None]) ** 2) @ density / (kernel**2 @ density)
    return p, limit, r, own, square, m @ density, (m**2) @ density


@pytest.mark.parametrize("keep_queries", [True, False])
def test_remainders_of_a_single_key(keep_queries):
    """n = 1: f̂ = Y, so every exact term is known, and so is every first-order term.

    Within 4.5 MCSE at 6 comparisons, 63 degrees of freedom: false alarms 2e-4 by Bonferroni.
    """
    p, limit, r, own, square, mean, second = tilted_moments()
    known = Linearisation(limit[:, None], np.log(p)[:, None], r[:, None, None])
    data = estimate(
        TASK, HEADS, 1, QUERIES, 3, replicates_per_batch=256, batches=64,
        precision="float64", linearisation=known, keep_queries=keep_queries,
    )  # fmt: skip
    truth = np.cos(1.3 * QUERIES[:, 0] + 0.4)
    first_bias = limit - truth - r * (own - limit)
    expected = {
        "bias_remainder": (mean - truth) - first_bias,
        "signal_remainder": (second - mean**2) - r * square,
        "noise_remainder": 0.49 * (1 - r),
    }
    if keep_queries:
        for name, value in expected.items():
            found, error = data[name].mean("batch").values, data[f"{name}_mcse"].values
            z = (found.reshape(-1) - value) / error.reshape(-1)
            assert np.abs(z).max() < 4.5, (name, z)
    else:
        for name in ("signal", "noise"):
            found = data[f"{name}_variance_remainder"]
            z = (float(found.mean()) - expected[f"{name}_remainder"].mean()) / float(
                data[f"{name}_variance_remainder_mcse"]
            )
            assert abs(z) < 4.5, name


def test_control_variates_cut_the_variance():
    """At n_eff ≫ 1 the remainder is known far better than the term it belongs to."""
    p, limit, r, *_ = tilted_moments()
    known = Linearisation(limit[:, None], np.log(p)[:, None], r[:, None, None])
    data = estimate(
        TASK, HEADS, 400, QUERIES, 0, replicates_per_batch=64, batches=16,
        precision="float64", linearisation=known,
    )  # fmt: skip
    for term in ("signal_variance", "noise_variance"):
        gain = float(data[f"{term}_mcse"] / data[f"{term}_remainder_mcse"]) ** 2
        assert gain > 10, (term, gain)
    resumed = estimate(
        TASK, HEADS, 400, QUERIES, 0, replicates_per_batch=64, batches=16,
        precision="float64", linearisation=known, resume=data.isel(batch=slice(0, 8)),
    )  # fmt: skip
    np.testing.assert_allclose(
        resumed["variance_remainder"], data["variance_remainder"], rtol=1e-12, atol=1e-18
    )
