"""The experiment `rates`: closed forms by other routes."""

import jax
import numpy as np
import pytest
import xarray as xr

from experiments.rates import problems, statistic
from sims.problem import TARGETS, gaussian_queries
from sims.study.results import Results
from sims.theory import predict as library
from sims.theory.first_order import isotropic as closed
from tests.experiments.drawing import fields_of
from tests.experiments.planted.made import batches


def drawn(number, **changes):
    return problems.Problem(fields_of("rates", number, levels=8, query_count=4, **changes))


@pytest.mark.theory
@pytest.mark.parametrize("changes", [{"relevant": 1, "nuisance": 2}, {"relevant": 2, "heads": 4}])
def test_what_is_simulated_has_the_error_of_the_best_bandwidth(changes):
    """The whole problem, heads repeated and filled up, by the library's matrices of all pairs."""
    for number in range(3):
        problem = drawn(number, **changes)
        for pool in problems.POOLS[:2]:
            task, heads, n, queries = problem.simulated(pool, 1024)
            expected = library(task, heads, n, queries)
            result = {name: value[0] for name, value in problem.best(pool, np.array([n])).items()}
            assert result["error"] == pytest.approx(float(expected["mse"]), rel=2e-4)
            keys = n / (n / expected["n_eff"]).mean("query").values
            np.testing.assert_allclose(result["n_eff"], keys, rtol=1e-4)


@pytest.mark.theory
def test_the_best_bandwidth_by_brute_force():
    """The least of ``(l + r/n)² + v/n`` over bandwidths, at an n where r counts."""

    def parts(b):
        limit, ratio, variance = b**2, 40 * b**0.5, 1 / b
        return closed.Moments(limit**2, 2 * limit * ratio, ratio**2, variance, variance)

    grid, fine = np.geomspace(0.02, 2, 96), np.geomspace(0.02, 2, 200_001)
    for heads, extra in ((1, 0), (4, 1), (np.inf, 2)):
        overlap = closed.nuisance(fine) ** extra
        for n in (400, 1e5):
            error = sum(closed.parts_of_error(parts(fine), n, heads, overlap))
            error[n / (overlap / fine) < closed.LEAST_KEYS] = np.inf
            result = closed.best(parts(grid), grid, np.array([n]), heads, extra)
            assert result["error"][0] == pytest.approx(error.min(), rel=1e-3)


@pytest.mark.theory
@pytest.mark.parametrize("bandwidth", [1e-8, 1e-5, 1e-2, 0.5])
def test_squared_bias_averaged_over_phases(bandwidth):
    """The formula of docs/theory/rates.md, far below where matrices' difference loses all digits.

    256 target draws; 4.5 standard errors, false alarm 7·10⁻⁶ a case.
    """
    levels, beta = 34, 0.7
    every = [TARGETS["holder"](2, seed=seed, beta=beta, levels=levels) for seed in range(256)]
    series = jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    queries = np.asarray(gaussian_queries(2, 1, 0.25, seed=3))

    def bias(one):
        return closed.moments(one, queries, np.array([bandwidth]), 2.0, 1.0).limit_bias

    result = np.asarray(jax.lax.map(bias, series))[:, 0]
    shrink = bandwidth**2 / (1 + bandwidth**2)
    level = 4.0 ** np.arange(levels + 1)
    # cos(2^l C u·x) with its own directions; 1 − cos through sin², to keep its digits.
    half = shrink * (series.frequency @ queries[0]) / 2
    damping = np.exp(-level * shrink / 2)
    terms = np.expm1(-level * shrink / 2) ** 2 + 4 * damping * np.sin(half) ** 2
    expected = (0.5 * level**-beta * terms).sum(1)
    gap = result - expected
    assert abs(gap.mean()) < 4.5 * gap.std(ddof=1) / np.sqrt(len(gap))
    # The comparison is sharp enough to tell β.
    assert gap.std(ddof=1) / np.sqrt(len(gap)) < 0.1 * expected.mean()


def test_panels_show_the_slopes_of_powers():
    """Less those stated, between neighbouring sizes; averaged heads fall twice as fast."""
    n, stated = 4.0 ** np.arange(4, 28), np.array([-0.5, -0.6, -0.8])
    off = np.array([0, -0.2, 0.1])
    one = n ** (stated + off)[:, None]
    error = np.stack([one, one**2], 1)
    law = {"n": n, "exponent": ("number", stated), "nuisance": ("number", [1, 2, 0])}
    law["error"] = ("number", "pool", "n"), error
    estimates = {}
    for place, size in enumerate(n[:3]):
        mse = batches(error[..., place].ravel())
        estimates[f"n = {size:.0f}"] = xr.Dataset({"mse": (("batch", "pools"), mse)})
    shown = statistic.panels(Results(estimates, {"law": xr.Dataset(law)}, {}))
    np.testing.assert_allclose(shown["slope"], stated + off)
    np.testing.assert_allclose(shown["middle"], 2 * n[:-1])
    local = np.stack([off, stated + 2 * off], 1)[:2, :, None]
    np.testing.assert_allclose(shown["local"], np.tile(local, len(n) - 1), atol=1e-9)
    fitted = ((stated + off) / stated)[:2]
    np.testing.assert_allclose(shown["squares"], [fitted, 2 * fitted])
