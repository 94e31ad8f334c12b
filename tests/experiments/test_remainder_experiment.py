"""The experiment `remainder`: remainders against exact theory, verdicts that can fail."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from sims.experiment import load_experiment
from sims.results import Results

from sims.cli.steps import _module
from sims.montecarlo import batch_keys, root_key
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task, gaussian_queries
from sims.theory import first_order_arrays, predict

FOLDER = Path(__file__).parents[2] / "experiments" / "remainder"
simulate, analysis = (_module(FOLDER / f"{n}.py") for n in ("simulate", "analysis"))
SIZES = (256, 512, 1024, 2048, 4096, 8192)
TERMS = ("noise_variance", "variance")


def made(slope, error) -> Results:
    """Gaps ``n^slope`` of a relative error, with batches that points share."""
    points, simulated, law = {}, {}, {}
    for kernel in analysis.KERNELS:
        shared = np.random.default_rng(1).normal(size=16)
        for index, n in enumerate(SIZES):
            name, own = f"{kernel} {n}", np.random.default_rng([2, index]).normal(size=16)
            points[name] = {"n": n, "heads.kernel": kernel}
            values = -((n / 256) ** slope) * (1 + error * (0.6 * shared + 0.8 * own))
            columns = {f"{t}_remainder": ("batch", 0.01 * values) for t in TERMS}
            known = {f"{t}{end}_mcse": 0.1 for t in TERMS for end in ("", "_remainder")}
            simulated[name] = xr.Dataset(columns | known, attrs={"replicates": 2048})
            law[name] = xr.Dataset(dict.fromkeys(TERMS, 1.0))
    return Results("remainder", "standard", points, simulated, law, {})


@pytest.mark.parametrize(
    ("slope", "error", "verdict"),
    [(-1, 0.1, "supported"), (-0.5, 0.05, "refuted"), (-1.15, 0.6, "inconclusive")],
)
def test_verdicts_can_go_all_ways(slope, error, verdict):
    results = made(slope, error)
    found = analysis.judge(results, load_experiment(FOLDER))
    assert {v.verdict for v in found} == {verdict}
    assert isinstance(analysis.figure(results), Figure)


@pytest.mark.theory
@pytest.mark.parametrize(("kernel", "bandwidth"), [("gaussian", 0.7), ("softmax", 1.1)])
def test_remainders_against_exact_theory(kernel, bandwidth):
    """Two sizes, far from first order; 8 numbers at 4.5 errors: false alarm 0.1 %."""
    task = Task(DESIGNS["isotropic"](3), TARGETS["matern"](3, nu=1.5, lengthscale=2.0), 0.8)
    heads = Heads(
        FRAMES["equiangular"](3, 2, 1, angle=60), kernel, 0.7 if kernel[0] == "g" else 1.1
    )
    queries, sizes = gaussian_queries(3, 2, scale=0.4, seed=1), (24, 96)
    known = first_order_arrays(task, heads, 1.0, queries)
    signal, overlap = (
        np.diagonal(part, axis1=1, axis2=2)
        for part in (known.signal_covariance, known.noise_covariance / 0.64)
    )
    keys = batch_keys(root_key(3), np.arange(32, dtype=np.uint32), 256)
    found = simulate.batches(
        task, heads, queries, known.limit, known.log_mass, signal, overlap, keys, sizes=sizes
    )
    for index, n in enumerate(sizes):
        first = predict(task, heads, n, queries)
        exact = predict(task, heads, n, queries, order="exact")
        for term in TERMS:
            batches = found[f"{term}_remainder"][:, index]
            error = batches.std(ddof=1) / np.sqrt(32)
            expected = float(exact[term] - first[term])
            assert abs(batches.mean() - expected) < 4.5 * error + float(exact[f"{term}_error"])
            # Sharp enough to see the remainder, and sharper than the term.
            assert error < 0.1 * abs(expected)
            assert error < 0.3 * found[term][:, index].std(ddof=1) / np.sqrt(32)
