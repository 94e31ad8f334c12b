"""The experiment `finite_sample`: its verdicts can fail, and its parts fit together."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.study.results import Results
from sims.terms import SCALARS
from tests.experiments.helpers import batches_of, check_figure, results_of, verdicts

BOTH = {"order": ["first", "exact"]}
MANY = "sharp softmax at 66 effective keys"


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("finite_sample")


def made(
    experiment, *, off: float = 0.0, at: int = 64, error: float = 1e-5,
    first_gap=lambda keys: 1 / keys,
) -> Results:  # fmt: skip
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


def test_the_figure_looks_where_the_row_does(experiment):
    figure = experiment.module("figure")
    (row,) = (c for c in experiment.claims if (c.id, c.regime) == ("exact", "every term"))
    assert row.where["first_order_gap"].at_least == figure.LEAST_GAP
    assert row.where["n_eff"].at_most == figure.LEAST_KEYS


def test_all_supported_where_all_is_true(experiment):
    assert set(verdicts(experiment, made(experiment)).values()) == {"supported"}


def test_one_term_off_at_one_point_is_refuted(experiment):
    verdict = verdicts(experiment, made(experiment, off=0.03))
    assert verdict["exact", "every term"] == "refuted"
    assert verdict["exact", MANY] == "supported"


def test_many_keys_are_a_row_of_their_own(experiment):
    """It is of the sharp softmax alone, and the row of few keys is not of it."""
    verdict = verdicts(experiment, made(experiment, off=0.1, at=4096))
    assert verdict["exact", MANY] == "refuted"
    assert verdict["exact", "every term"] == "supported"
    other = verdicts(experiment, made(experiment, off=0.1, at=2048))
    assert other["exact", MANY] == other["exact", "every term"] == "supported"


def test_an_error_of_theory_as_large_as_the_margin_decides_nothing(experiment):
    verdict = verdicts(experiment, made(experiment, error=0.02))
    assert verdict["exact", "every term"] == "inconclusive"


def test_a_slower_law_is_refuted(experiment):
    verdict = verdicts(experiment, made(experiment, first_gap=lambda keys: keys**-0.5))
    assert verdict["remainder-order", "softmax"] == "refuted"
    assert verdict["first-order-range", "first order, softmax"] == "refuted"


def test_first_order_is_judged_where_enough_keys_are_attended_to(experiment):
    crowd = made(experiment, first_gap=lambda keys: np.where(keys < 50, 9.0, 0.01))
    assert verdicts(experiment, crowd)["first-order-range", "first order, gaussian"] == "supported"


def test_a_missing_kernel_supports_nothing(experiment):
    whole = made(experiment)
    names = [k for k, at in whole.coordinates.items() if at["heads.kernel"] == "gaussian"]
    parts = ({k: d[k] for k in names} for d in (whole.estimates, whole.predictions))
    verdict = verdicts(experiment, results_of(experiment, *parts))
    assert verdict["remainder-order", "softmax"] == "inconclusive"
    assert verdict["first-order-range", "first order, softmax"] == "inconclusive"
    assert verdict["remainder-order", "gaussian"] == "supported"


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


def test_figure_and_caption(experiment):
    assert "supported" in check_figure(experiment, made(experiment))
