"""The experiment `angles`: verdicts that can fail, figure and caption, on made-up simulations."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sims import terms
from sims.study.experiment import load_experiment
from tests.experiments.helpers import results_of, verdicts

BATCHES = 64
EXACT, LAW, KERNEL = "gap to exact theory", "gap to the law, drawn", "heads.kernel"


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("angles", "smoke")


def simulated(theory, covariance=1.0, seed=0):
    """Batches around theory's averages, the noise covariance of two heads times ``covariance``."""
    bias, signal, noise = (theory[f"integrated_{part}"].values for part in terms.PAIRS)
    heads = len(noise)
    own = np.eye(heads, dtype=bool)
    # Of variances and covariances apart, or correlations would be the same in every batch; aligned
    # heads stay one head.
    shake = 1 + 1e-4 * np.random.default_rng(heads + seed).normal(size=(2, BATCHES, 1, 1, 1))
    shake = np.where(own | np.allclose(noise, noise[0, 0]), shake[0], covariance * shake[1])
    whole = np.ones((BATCHES, 1, 1, 1))
    data = terms.assemble(
        np.zeros((BATCHES, 1, heads)), whole * bias, whole * signal, shake * noise
    )
    return terms.add_mcse(data).assign_attrs(replicates=99)


def drawn(theory, kind, covariance=1.0):
    """Batches around every problem's terms; where the law is compared, those that it states."""
    data = {
        str(name).removeprefix("each_"): values.values
        for name, values in theory.items()
        if str(name).startswith("each_")
    }
    law = data.pop("law", None)
    data.pop("overlap", None)
    if law is not None:
        data["cross_noise_covariance"] = law * data["noise_variance"].mean()
    data["cross_noise_covariance"] = covariance * data["cross_noise_covariance"]
    if kind == "equal angles":
        data["ensemble_variance"] = data["noise_variance"] / 4 + 3 * data["covariance"] / 4
    repeats = -(-BATCHES // len(data["noise_variance"]))
    shake = 1 + 1e-4 * np.random.default_rng(3).normal(size=BATCHES)
    shaken = {
        name: ("batch", np.tile(values, repeats)[:BATCHES] * shake)
        for name, values in data.items()
        if not name.endswith("_error")
    }
    return terms.add_mcse(xr.Dataset(shaken)).assign_attrs(replicates=99)


def enough(theory):
    """The prediction of a population with as many problems as there are made-up batches."""
    repeats = -(-BATCHES // theory.sizes["problem"])
    return theory.isel(problem=np.tile(np.arange(theory.sizes["problem"]), repeats)[:BATCHES])


@pytest.fixture(scope="module")
def results(experiment):
    predictions = experiment.module("predict").predict(experiment)
    kinds = {point.name: point.coordinates["population"] for point in experiment.points}
    orders = {name: data["order"].values[-1] for name, data in predictions.items()}
    assert [name for name, order in orders.items() if order == "exact"] == [
        name for name, kind in kinds.items() if kind == "few keys"
    ]
    predictions = {k: enough(d) if kinds[k] else d for k, d in predictions.items()}
    data = {
        name: drawn(theory.isel(order=-1), kinds[name])
        if kinds[name]
        else simulated(theory.isel(order=-1))
        for name, theory in predictions.items()
    }
    return results_of(experiment, data, predictions)


def test_exact_theorys_bound_counts(experiment, results):
    (name, *_) = [e.points[0] for e in experiment.module("effects").effects(results)[EXACT]]
    loose = results.predictions[name].copy(deep=True)
    loose["noise_variance_error"] = 0.02 * loose["noise_variance"]
    changed = replace(results, predictions={**results.predictions, name: loose})
    assert verdicts(experiment, changed)["angles", "gaussian kernel, exact"] == "inconclusive"


def test_errors_of_the_law_are_those_of_queries_too(experiment, results):
    effects = experiment.module("effects")
    gaps = {effect.label: effect for effect in effects.effects(results)["gap to the law"]}
    assert {effect.unit for effect in gaps.values()} == {"replicates on more queries"}
    for name, effect in gaps.items():
        theory = results.prediction(name)
        if results.number(name, "heads.frames.angle") == 0:  # one head, by identity
            assert (effect.error, effect.batches, effect.fixed) == (0, np.inf, False)
            continue
        queries = effects.query_error(theory) / float(theory["law"])
        # So little noise was made up that the queries' error is nearly all.
        assert effect.error >= queries > 0.9**0.5 * effect.error
        assert (effect.batches, effect.fixed, effect.points) == (512, True, ())
    loud = {name: data.copy(deep=True) for name, data in results.estimates.items()}
    rng = np.random.default_rng(1)
    for data in loud.values():
        data["cross_noise_covariance"] *= 1 + 0.2 * rng.standard_normal(BATCHES)
    family = effects.effects(replace(results, estimates=loud))["gap to the law"]
    own = [effect for effect in family if effect.error]
    assert {(effect.batches, effect.fixed) for effect in own} == {(BATCHES, False)}
    assert all(effect.points == (effect.label,) for effect in own)


def test_the_queries_error_is_that_of_a_ratio():
    effects = load_experiment("angles").module("effects")
    rng = np.random.default_rng(2)
    variance = rng.uniform(1, 2, 400)
    pairs = 0.3 * variance + 0.1 * rng.standard_normal(400)
    noise = np.stack([np.stack([variance, pairs]), np.stack([pairs, variance])]).transpose(2, 0, 1)
    theory = terms.assemble(np.zeros((400, 2)), 0 * noise, 0 * noise, noise)
    expected = 0.1 / variance.mean() / 20
    assert effects.query_error(theory) == pytest.approx(expected, rel=0.1)
