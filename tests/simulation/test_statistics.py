"""Unbiasedness, Rao–Blackwellisation, stopping: statistical tests with stated false-alarm rates.

All draws are named by seeds, so a test that passes once passes always; the rates say how likely
a correct engine would have failed under another seed.
"""

import jax
import numpy as np
import pytest
import xarray as xr

from sims.base import terms
from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.simulation import estimate
from sims.simulation.result import reached
from tests.simulation.conftest import frames


def moments_of_target(task):
    """Mean and variance of m(X), X ~ N(0, Σ): Gaussian expectations of cosines."""
    t, cov = task.target, np.asarray(task.design.covariance)
    a, w, c = (np.asarray(x) for x in (t.amplitude, t.frequency, t.phase))

    def cosine(frequency, phase):
        return np.cos(phase) * np.exp(-0.5 * np.einsum("...d,de,...e", frequency, cov, frequency))

    mean = a @ cosine(w, c)
    total = sum(0.5 * cosine(w[:, None] + s * w[None], c[:, None] + s * c[None]) for s in (1, -1))
    return mean, a @ total @ a - mean**2


def test_unbiased_with_a_single_key(make):
    """n = 1: f̂ = Y whatever the kernel, so every term is known exactly.

    |z| ≤ 5 over 400 batches; about 150 comparisons, joint false-alarm rate below 1e-3.
    """
    task, heads, queries = make()
    result = estimate(task, heads, 1, queries, 21, batches=400, replicates_per_batch=2)
    mean, variance = moments_of_target(task)
    bias = mean - np.asarray(task.target(queries))
    sigma2 = float(task.noise_sd) ** 2
    known = {
        "bias": bias[:, None],
        "bias_product": bias[:, None, None] ** 2,
        "signal_covariance": variance,
    }
    for name, value in known.items():
        z = (result[name].mean("batch") - value) / result[f"{name}_mcse"]
        assert np.abs(z).max() < 5, name
    np.testing.assert_allclose(result["noise_covariance"], sigma2, rtol=1e-6)
    # The correction matters: without it the product is off by s/R, beyond the error bars.
    square = (result["bias"] ** 2).mean(("query", "head"))
    assert square.mean() - np.mean(bias**2) > 3 * terms.mcse(square)


@pytest.fixture(scope="module")
def problem():
    task = Task(DESIGNS["isotropic"](3), TARGETS["rbf"](3, lengthscale=2.0, features=6), 0.5)
    heads = Heads(frames(2, 3, 1), "gaussian", 0.7)
    return task, heads, 50, 0.5 * jax.random.normal(jax.random.key(1), (3, 3), float), 0


def test_stops_at_the_first_look_that_is_precise_enough(problem):
    run = {"replicates_per_batch": 8, "rel_mcse": 0.1, "batches": 2}
    result = estimate(*problem, **run)
    count = result.sizes["batch"]
    assert result.attrs["stopped"] == "precision"
    assert reached(result, 0.1)
    assert count in range(8, 1024, 8)
    for fewer in range(8, count, 8):
        assert not reached(result.isel(batch=slice(fewer)), 0.1)


def test_stopping_rule():
    rng = np.random.default_rng(0)
    data = xr.Dataset({k: ("batch", 1 + 0.02 * rng.normal(size=64)) for k in terms.SCALARS})
    assert reached(data, 0.01)
    assert not reached(data, 0.001)
    data["covariance"] = "batch", 1e-5 * rng.normal(size=64)  # negligible beside an MSE of 1
    data["cross_noise_covariance"] = "batch", np.full(64, np.nan)  # a single head has no pair
    assert reached(data, 0.01)
    data["covariance"] = "batch", 1e-2 * rng.normal(size=64)
    assert not reached(data, 0.01)
    # Two standard errors decide, of a term that is 0: 0.98 or 1.02 thousandths of the MSE.
    sign = np.resize([1.0, -1.0], 64)
    for share, enough in ((0.98, True), (1.02, False)):
        size = share * 1e-3 * float(data["mse"].mean()) / 2
        data["covariance"] = "batch", size * np.sqrt(63) * sign
        assert float(terms.mcse(data["covariance"])) == pytest.approx(size)
        assert reached(data, 0.01) == enough
