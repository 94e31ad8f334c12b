"""The experiment `decomposition`: verdicts that can fail, figure and caption, on made-up terms."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.terms import SCALARS
from tests.experiments.helpers import batches_of, results_of, verdicts

ORDERS = {"order": ["first", "exact"]}


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("decomposition")


def made(experiment, first=None, exact=None, drawn=1.0, error=1e-5, keys=None, miss=1.3):
    """Terms whose simulation is 1, as exact theory's are, and 1.02 times first order's.

    First order is off by the factor ``miss`` in populations of few keys. ``first`` and ``exact``
    change the predicted terms, ``drawn`` the error from drawn labels, and ``keys`` n_eff at the
    first point.
    """
    estimates, predictions = {}, {}
    for index, point in enumerate(experiment.points):
        few = point.coordinates["population"] == "few keys"
        off = miss if few else 1 / 1.02
        both = {term: [off, 1.0] for term in SCALARS} | {"variance": [2.0, 2.0]}
        both |= {k: [v * off, both[k][1]] for k, v in (first or {}).items()}
        both |= {k: [both[k][0], v] for k, v in (exact or {}).items()}
        both |= {f"{term}_error": [np.nan, error] for term in SCALARS}
        data = {name: ("order", values) for name, values in both.items()}
        truth = dict.fromkeys((*SCALARS, "raw_ensemble_variance"), 1.0)
        estimates[point.name] = batches_of(truth | {"raw_mse": drawn}, index)
        if point.population is not None:
            # Problems differ in size much more than the roads do in any of them.
            sizes = np.exp(np.random.default_rng(index).normal(size=64))
            sizes /= sizes.mean()
            for term in SCALARS:
                data[f"each_{term}"] = ("order", "problem"), np.outer(both[term], sizes)
                estimates[point.name][term] = estimates[point.name][term] * sizes
        n_eff = (5.0 if few else 100.0) if index or keys is None else keys
        data["n_eff"] = ("order", "query", "head"), np.full((2, 4, 2), n_eff)
        prediction = xr.Dataset(data, ORDERS)
        wide = point.coordinates["heads.width"] > 2
        predictions[point.name] = prediction.isel(order=[0]) if wide else prediction
    return results_of(experiment, estimates, predictions)


def test_exact_signal_terms_are_shares_of_a_heads_variance(experiment):
    """1.5 % off relative to itself is 0.75 % of the variance of 2, inside the margin of 1 %."""
    off = dict.fromkeys(("signal_variance", "noise_variance"), 1 / 1.015)
    verdict = verdicts(experiment, made(experiment, exact=off))
    assert verdict["decomposition", "exact, signal variance"] == "supported"
    assert verdict["decomposition", "exact, noise variance"] == "refuted"


def test_few_effective_keys_are_left_to_exact_theory(experiment):
    results = made(experiment, first={"noise_variance": 1.5})
    regimes = ("noise variance", "noise variance, everything drawn")
    assert {verdicts(experiment, results)["decomposition", r] for r in regimes} == {"refuted"}
    results = made(experiment, keys=49.0)
    chosen = experiment.module("effects").effects(results)["first order, noise variance"]
    assert chosen[0].at["n_eff"] == pytest.approx(49.0)
    estimates = dict(results.estimates)
    estimates["0000"] = estimates["0000"] * 2
    verdict = verdicts(experiment, results_of(experiment, estimates, results.predictions))
    assert verdict["decomposition", "noise variance"] == "supported"


def test_keys_of_a_point_are_a_harmonic_mean(experiment):
    results = made(experiment)
    uneven = results.predictions["0000"].copy(deep=True)
    uneven["n_eff"][:, 0] = 10.0
    predictions = {**results.predictions, "0000": uneven}
    own = experiment.module("effects").effective_keys
    keys = own(results_of(experiment, results.estimates, predictions), "0000")
    assert keys == pytest.approx(4 / (1 / 10 + 3 / 100))


def test_populations_are_paired_and_over_problems(experiment):
    """Problems differ by a factor of e either way; their gaps to theory by a thousandth."""
    families = experiment.module("effects").effects(made(experiment))
    for effect in families["drawn, exact, noise variance"]:
        assert effect.batches == 64
        assert effect.error < 1e-3
