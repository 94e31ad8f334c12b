"""The experiment `finite_sample`: its verdicts can fail, and its parts fit together."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.terms import SCALARS
from tests.experiments.helpers import batches_of, results_of, verdicts

BOTH = {"order": ["first", "exact"]}


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("finite_sample")


def made(
    experiment,
    *,
    off: float = 0.0,
    at: int = 64,
    error: float = 1e-5,
    first_gap=lambda keys: 1 / keys,
) -> Results:
    """Results whose truth is known: simulation is `off` from exact in one term at the size `at`."""
    sizes = np.geomspace(4, 8192, 9).round()
    estimates, predictions = {}, {}
    lines = [np.stack([1 + first_gap(sizes / 2), np.ones(9)])]
    for index, point in enumerate(experiment.points):
        keys = np.full((2, 2), point.coordinates["n"] / 2)
        data = {"n_eff": (("order", "query", "head"), np.stack([keys, keys]))}
        for term in SCALARS:
            data[term] = ("order", [1.3, 1.0])  # off by more than five margins
            data[f"{term}_error"] = ("order", [np.nan, error])
            data[f"curve_{term}"] = (("order", "curve_n"), *lines)
        data["curve_n_eff"] = ("curve_n", sizes / 2)
        predictions[point.name] = xr.Dataset(data, BOTH | {"curve_n": sizes})
        truth = dict.fromkeys(SCALARS, 1.0)
        truth["noise_variance"] += off if point.coordinates["n"] == at else 0.0
        estimates[point.name] = batches_of(truth, index, spread=0.005)
    return results_of(experiment, estimates, predictions)


def test_an_error_of_theory_as_large_as_the_margin_decides_nothing(experiment):
    verdict = verdicts(experiment, made(experiment, error=0.02))
    assert verdict["exact", "every term"] == "inconclusive"


@pytest.mark.theory
def test_curves_are_theory_at_their_sizes():
    """The points' own sizes are on the line: there the curve is the point's prediction."""
    smoke = load_experiment("finite_sample", "smoke")
    first, second, *_ = smoke.module("predict").predict(smoke).values()
    assert list(first["curve_n"].values) == [16, 64]
    assert "curve_mse" not in second
    for place, point in enumerate((first, second)):
        at = first.isel(curve_n=place)
        for term in ("mse", "squared_bias", "cross_noise_covariance"):
            np.testing.assert_allclose(at[f"curve_{term}"], point[term], rtol=1e-12)
        np.testing.assert_allclose(at["curve_mse_error"][1], point["mse_error"][1])
        harmonic = 1 / (1 / point["n_eff"].sel(order="first")).mean()
        np.testing.assert_allclose(at["curve_n_eff"], harmonic)
