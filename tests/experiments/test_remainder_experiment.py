"""The experiment `remainder`: remainders against exact theory, verdicts that can fail."""

import numpy as np
import pytest
import xarray as xr

from sims.estimates import mcse, mean_and_error
from sims.montecarlo import run
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task, gaussian_queries
from sims.study.experiment import load_experiment
from sims.theory import predict

simulate, effects = (load_experiment("remainder").module(name) for name in ("simulate", "effects"))


def test_points_of_both_roads_are_kernels():
    """Both roads name a point a kernel, at the grid's numbers of keys, smallest first."""
    experiment = load_experiment("remainder", "smoke")
    units, laws = simulate.units(experiment), experiment.module("predict").predict(experiment)
    assert list(units) == list(laws) == ["gaussian", "softmax"]
    for kernel, unit in units.items():
        assert unit.sampler.coords["size"] == laws[kernel]["size"].values.tolist()
        assert unit.sampler.coords["size"] == [256, 512, 1024]


def test_controlled_by_plain_loops():
    """Moments of replicates against a regression on the replicates of the other batches."""
    rng = np.random.default_rng(0)
    known = rng.normal(size=(5, 40, 2, 3)) + 0.3
    values = known @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=(5, 40, 2))
    ones = np.concatenate([np.ones((5, 40, 2, 1)), known], axis=-1)
    data = xr.Dataset(
        {
            "y": (("batch", "size", "control"), np.einsum("brsi,brs->bsi", ones, values) / 40),
            "controls": (
                ("batch", "size", "control", "other"),
                np.einsum("brsi,brsj->bsij", ones, ones) / 40,
            ),
        }
    )
    means = effects.controlled(data, "y", 2)
    centred = known[..., :2] - known[..., :2].mean((0, 1))
    for s in range(2):
        for b in range(5):
            rest = [r for r in range(5) if r != b]
            left, right = centred[rest, :, s].reshape(-1, 2), known[rest, :, s, :2].reshape(-1, 2)
            slope = np.linalg.solve(left.T @ right, left.T @ values[rest, :, s].ravel())
            expected = values[b, :, s].mean() - slope @ known[b, :, s, :2].mean(0)
            assert means[b, s] == pytest.approx(expected, rel=1e-12)


def test_controls_times_squares_are_about_the_mean_estimate():
    """Σ K (g − ḡ)²/(R − 1) of nine replicates by plain NumPy, of both estimates; then noise."""
    rng = np.random.default_rng(0)
    controls = rng.normal(size=(9, 2, 8)) + 0.5
    controls[..., 0] = 1
    noise, estimates = rng.uniform(1, 2, (9, 2, 2)), 3 + rng.normal(size=(9, 4, 3, 2, 2))
    products = np.concatenate([noise, (estimates**2).mean((1, 2))], axis=-1)
    sums = simulate.Sums(
        np.einsum("rsi,rsj->sij", controls, controls),
        np.einsum("rsi,rst->sit", controls, products),
        np.einsum("rsi,rqhsv->qhsiv", controls, estimates),
    )
    found = simulate.moments(sums, 9)
    squares = ((estimates - estimates.mean(0)) ** 2).mean((1, 2))
    signal, linear = np.einsum("rsi,rsv->vsi", controls, squares) / 8
    share, less = np.einsum("rsi,rsv->vsi", controls, noise) / 9
    np.testing.assert_allclose(found["variance"], signal + share, rtol=1e-10)
    np.testing.assert_allclose(found["variance_remainder"], signal - linear + less, rtol=1e-10)


@pytest.mark.theory
@pytest.mark.parametrize(("kernel", "bandwidth"), [("gaussian", 0.7), ("softmax", 1.1)])
def test_remainders_against_exact_theory(kernel, bandwidth):
    """Two sizes, far from first order; 8 numbers at 4.5 errors: false alarm 0.1 %."""
    task = Task(DESIGNS["isotropic"](3), TARGETS["matern"](3, nu=1.5, lengthscale=2.0), 0.8)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=60), kernel, bandwidth)
    queries, sizes = gaussian_queries(3, 2, scale=0.4, seed=1), (24, 96)
    sampler = simulate.sampler(simulate.linearised(task, heads, queries), sizes)
    data = run(sampler, 3, replicates_per_batch=256, batches=32)
    for index, n in enumerate(sizes):
        first = predict(task, heads, n, queries)
        exact = predict(task, heads, n, queries, order="exact")
        for term, count in effects.TERMS.values():
            batches = effects.controlled(data, f"{term}_remainder", count)[:, index]
            value, error = mean_and_error(batches)
            expected = float(exact[term] - first[term])
            assert abs(value - expected) < 4.5 * error + float(exact[f"{term}_error"])
            # Sharp enough to see the remainder, and sharper than the term.
            assert error < 0.1 * abs(expected)
            assert error < 0.3 * mcse(data[term].values[:, index, 0])


@pytest.mark.theory
def test_variances_of_two_replicates_are_unbiased():
    """The smallest batch: a divisor of R for R − 1 would halve the signal. 4.5 errors: 1e-5."""
    task = Task(DESIGNS["isotropic"](3), TARGETS["matern"](3, nu=1.5, lengthscale=2.0), 0.1)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=60), "gaussian", 0.7)
    queries = gaussian_queries(3, 2, scale=0.4, seed=1)
    sampler = simulate.sampler(simulate.linearised(task, heads, queries), (24,))
    values = run(sampler, 4, replicates_per_batch=2, batches=1024)["variance"].values[:, 0, 0]
    exact = predict(task, heads, 24, queries, order="exact")
    mean, error = mean_and_error(values)
    assert abs(mean - float(exact["variance"])) < 4.5 * error < 0.4 * mean
