"""The experiment `remainder`: points with unequal numbers of batches, verdicts that can fail."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from sims.cli.steps import _module
from sims.experiment import load_experiment
from sims.results import Results

FOLDER = Path(__file__).parents[2] / "experiments" / "remainder"
analysis = _module(FOLDER / "analysis.py")
SIZES = (256, 512, 1024, 2048, 4096)
TERMS = ("noise_variance", "variance")


def made(slope, error, counts=(64, 64, 64, 16, 16)) -> Results:
    """Gaps ``n^slope`` with batches that points share, whose error grows like √n relative to it."""
    points, simulated, law = {}, {}, {}
    for kernel in analysis.KERNELS:
        shared = np.random.default_rng(1).normal(size=max(counts))
        for index, (n, count) in enumerate(zip(SIZES, counts, strict=True)):
            name = f"{kernel} {n}"
            own = np.random.default_rng([2, index]).normal(size=count)
            noise = (0.6 * shared[:count] + 0.8 * own) * error * (n / 256) ** -0.5
            points[name] = {"n": n, "heads.kernel": kernel}
            values = -((n / 256) ** slope) + noise
            columns = {f"{t}_remainder": ("batch", 0.01 * values) for t in TERMS}
            known = {f"{t}{end}_mcse": 0.1 for t in TERMS for end in ("", "_remainder")}
            simulated[name] = xr.Dataset(columns | known, attrs={"replicates": 128 * count})
            law[name] = xr.Dataset(dict.fromkeys(TERMS, 1.0))
    return Results("remainder", "standard", points, simulated, law, {})


def verdicts(results):
    return analysis.judge(results, load_experiment(FOLDER))


@pytest.mark.parametrize(
    ("slope", "error", "verdict"),
    [(-1, 0.05, "supported"), (-0.5, 0.02, "refuted"), (-1.1, 1.0, "inconclusive")],
)
def test_verdicts_can_go_all_ways(slope, error, verdict):
    found = verdicts(made(slope, error))
    assert {v.verdict for v in found} == {verdict}
    assert isinstance(analysis.figure(made(slope, error)), Figure)


def test_open_claims_ask_for_small_n():
    for found in verdicts(made(-1.1, 1.0)):
        kernel = found.regime.split(",")[0]
        assert set(found.needs) == {f"{kernel} {n}" for n in SIZES[:3]}
        assert min(found.needs.values()) > 64


def test_covariance_of_unequal_columns():
    """Against repeated draws: means of 40 and of 10 batches, the first 10 in common."""
    rng = np.random.default_rng(5)
    means, stated = [], []
    for _ in range(4000):
        long = rng.normal(size=40)
        short = 0.6 * long[:10] + 0.8 * rng.normal(size=10)
        means.append([long.mean(), short.mean()])
        stated.append(analysis.covariance([long, short]))
    np.testing.assert_allclose(
        np.mean(stated, axis=0), np.cov(np.transpose(means)), rtol=0.12, atol=0
    )
