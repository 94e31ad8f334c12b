"""The experiment `decomposition`: verdicts that can fail, figure and caption, on made-up terms."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.terms import SCALARS
from tests.experiments.helpers import batches_of, check_figure, results_of, verdicts

ORDERS = {"order": ["first", "exact"]}
REGIMES = (
    "squared bias", "signal variance", "noise variance", "signal covariance", "noise covariance",
    "mean squared error",
)  # fmt: skip


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("decomposition")


def made(experiment, first=None, exact=None, drawn=1.0, error=1e-5, keys=None):
    """Terms of size 1 whose simulation is 1 + 2 % of first order's and 1 of exact theory's.

    ``first`` and ``exact`` change the predicted terms, ``drawn`` the error from drawn labels, and
    ``keys`` n_eff at the first point.
    """
    estimates, predictions = {}, {}
    for index, point in enumerate(experiment.points):
        both = {term: ("order", [1 / 1.02, 1.0]) for term in SCALARS}
        both["variance"] = ("order", [2.0, 2.0])
        both |= {k: ("order", [v / 1.02, 1.0]) for k, v in (first or {}).items()}
        both |= {k: ("order", [1 / 1.02, v]) for k, v in (exact or {}).items()}
        both |= {f"{term}_error": ("order", [np.nan, error]) for term in SCALARS}
        n_eff = 100.0 if index or keys is None else keys
        shape = ("order", "query", "head"), np.full((2, 4, 2), n_eff)
        prediction = xr.Dataset(both | {"n_eff": shape}, ORDERS)
        wide = point.coordinates["heads.width"] > 2
        predictions[point.name] = prediction.isel(order=[0]) if wide else prediction
        truth = dict.fromkeys((*SCALARS, "raw_ensemble_variance"), 1.0)
        estimates[point.name] = batches_of(truth | {"raw_mse": drawn}, index)
    return results_of(experiment, estimates, predictions)


def test_every_term_is_supported_where_it_is_true(experiment):
    verdict = verdicts(experiment, made(experiment))
    assert set(verdict.values()) == {"supported"}
    assert len(verdict) == 2 * len(REGIMES) + 1


def test_a_term_that_is_off_is_refuted_alone(experiment):
    verdict = verdicts(experiment, made(experiment, first={"cross_signal_covariance": 1.1}))
    refuted = {regime for (_, regime), word in verdict.items() if word == "refuted"}
    assert refuted == {"signal covariance"}
    verdict = verdicts(experiment, made(experiment, exact={"noise_variance": 0.98}))
    refuted = {regime for (_, regime), word in verdict.items() if word == "refuted"}
    assert refuted == {"exact, noise variance"}


def test_exact_signal_terms_are_shares_of_a_heads_variance(experiment):
    """1.5 % off relative to itself is 0.75 % of the variance of 2, inside the margin of 1 %."""
    off = dict.fromkeys(("signal_variance", "noise_variance"), 1 / 1.015)
    verdict = verdicts(experiment, made(experiment, exact=off))
    assert verdict["decomposition", "exact, signal variance"] == "supported"
    assert verdict["decomposition", "exact, noise variance"] == "refuted"


def test_few_effective_keys_are_left_to_exact_theory(experiment):
    wrong = {"mse": 1.5}
    assert (
        verdicts(experiment, made(experiment, first=wrong))["decomposition", "mean squared error"]
        == "refuted"
    )
    results = made(experiment, keys=49.0)
    chosen = experiment.module("effects").effects(results)["first order, mean squared error"]
    assert chosen[0].at["n_eff"] == pytest.approx(49.0)
    estimates = dict(results.estimates)
    estimates["0000"] = estimates["0000"] * 2
    few = results_of(experiment, estimates, results.predictions)
    verdict = verdicts(experiment, few)
    assert verdict["decomposition", "mean squared error"] == "supported"
    assert verdict["decomposition", "exact, mean squared error"] == "refuted"


def test_bounds_and_drawn_labels_can_fail(experiment):
    verdict = verdicts(experiment, made(experiment, error=0.02, drawn=1.1))
    assert verdict["decomposition", "exact, squared bias"] == "inconclusive"
    assert verdict["decomposition", "the sum against drawn labels"] == "refuted"


def test_figure_and_caption(experiment):
    caption = check_figure(experiment, made(experiment))
    assert "at 27 problems" in " ".join(caption.split())
