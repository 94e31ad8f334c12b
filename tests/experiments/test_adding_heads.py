"""The experiment `adding_heads`: sub-ensembles, verdicts that can fail, figure and caption."""

import numpy as np
import pytest

from sims import terms
from sims.study.experiment import load_experiment
from tests.experiments.helpers import results_of
from tests.experiments.helpers import verdicts as verdicts_of

BATCHES = 64
COUNT, WIDTH, KIND = "heads.count", "heads.width", "design.correlation"


def made(heads: int, bias: float, variance: float, covariance: float, batches: bool):
    """Terms of exchangeable heads, as a simulation (with a little noise) or as theory."""
    lead = (BATCHES, 1, heads) if batches else (1, heads)
    noise = 1 + 1e-4 * np.random.default_rng(heads).normal(size=(*lead[:-2], 1, 1, 1))
    both = covariance + (variance - covariance) * np.eye(heads)
    pairs = (noise if batches else 1.0) * np.broadcast_to(both, (*lead, heads))
    product = np.full((*lead, heads), bias**2)
    data = terms.assemble(np.full(lead, bias), product, pairs, np.zeros_like(pairs))
    return data if batches else data.assign(n_eff=(("query", "head"), np.full((1, heads), 99.0)))


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("adding_heads")


@pytest.fixture
def results(experiment):
    """The closed form of "Adding heads in practice", with made-up b, v, c, on the real grid."""
    estimates, predictions = {}, {}
    for point in experiment.points:
        heads, width, kind = (point.coordinates[k] for k in (COUNT, WIDTH, KIND))
        variance, bias = 0.01 * width**1.2, 0.3 * width**-0.3
        numbers = (heads, bias, variance, variance * (0.3 + 0.7 * kind))
        estimates[point.name] = made(*numbers, True)
        predictions[point.name] = made(*numbers, False)
    return results_of(experiment, estimates, predictions)


def verdicts(experiment, results):
    return {regime: word for (_, regime), word in verdicts_of(experiment, results).items()}


@pytest.mark.theory
def test_sub_ensembles_follow_the_closed_form(experiment, results):
    errors = experiment.module("effects").Errors(results)
    variance, bias = 0.01 * 4**1.2, 0.3 * 4**-0.3
    assert len(errors.growing(0.0)) == len(errors.fixed(0.0)) == 5
    for ensemble in errors.growing(0.5) + errors.growing(0.0):
        covariance = variance * (0.3 + 0.7 * ensemble.correlation)
        expected = bias**2 + covariance + (variance - covariance) / ensemble.heads
        assert errors.predicted(ensemble) == pytest.approx(expected, rel=1e-12)


def test_the_share_of_variance_is_that_of_the_ensemble(experiment, results):
    effects = experiment.module("effects").effects(results)["gap to first order"]
    one = next(effect for effect in effects if effect.label == "1 diverse of width 4")
    variance, bias = 0.01 * 4**1.2, 0.3 * 4**-0.3
    assert one.at["variance_share"] == pytest.approx(variance / (variance + bias**2))


def test_aligned_views_are_one_head():
    """By theory, on the real grid: the error of aligned heads is that of the first."""
    from sims.theory import predict

    smoke = load_experiment("adding_heads", "smoke")
    point = smoke.points[1]
    assert point.coordinates[KIND] == 1.0
    data = predict(*point.spec.build())
    error = smoke.module("effects")._error
    assert error(data, 8) == pytest.approx(float(error(data, 1)), rel=1e-9)
