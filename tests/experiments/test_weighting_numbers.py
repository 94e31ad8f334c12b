"""Weighing heads: whose cost it is, where uniform weights are best, what is held against what."""

import numpy as np
import pytest

from sims.montecarlo import Draw
from sims.study.experiment import load_experiment
from sims.terms import risk_matrix
from sims.theory import predict
from sims.weighting import WEIGHTINGS, risk
from tests.experiments.by_hand import is_mean_of
from tests.experiments.test_effects_by_hand import weighting

EXPERIMENT = load_experiment("weighting")
effects, simulate = (EXPERIMENT.module(name) for name in ("effects", "simulate"))


def test_the_cost_is_that_of_gaussian_heads_of_unequal_bandwidths():
    """As the statements of its rows have it, with a Matérn target and n = 512."""
    _, family, heads, n, own = simulate.units(EXPERIMENT)["cost"].sampler.constants
    np.testing.assert_allclose(heads.bandwidth, [0.3, 0.4, 0.5, 0.7, 0.9, 1.2])
    assert heads.rule.name == "gaussian"
    assert n == 512
    assert own["regime"] == "bandwidths"
    target = family(seed=3)
    x = np.random.default_rng(0).normal(size=(50, 16))
    assert np.std(target(x)) > 0.1


def test_few_pairs_are_the_first_of_the_most(monkeypatch):
    """Weights of the products of residuals of so many pairs, summed one by one."""
    gaps = np.random.default_rng(1).normal(size=(40, 3))
    monkeypatch.setattr(simulate, "deviations", lambda *_: gaps)
    task, family, heads, n, own = simulate.units(EXPERIMENT)["cost"].sampler.constants
    own, draw = own | {"pairs": [6, 12], "repeats": 1}, Draw.of(4, (), 1).draw(0)
    found = simulate.cost(draw, (task, family, heads, n, own), None)["error"]
    rng = draw.rng()
    rng.integers(2**31)  # the target's
    residuals = gaps[rng.integers(40, size=12)] - 0.5 * rng.normal(size=(12, 1))
    for row, m in zip(found, (6, 12), strict=True):
        estimated = sum(np.outer(one, one) for one in residuals[:m]) / m
        expected = [risk(rule(estimated), gaps.T @ gaps / 40) for rule in WEIGHTINGS.values()]
        np.testing.assert_allclose(row, expected, rtol=1e-9)


def test_a_regime_has_equal_row_sums_where_it_is_said_to_have_them():
    """Of the risk matrix, to first order: there uniform weights are the best by algebra."""
    regimes = EXPERIMENT.settings["regimes"]
    assert len(regimes) == len(EXPERIMENT.points) == 6
    found = {}
    for regime, point in zip(regimes, EXPERIMENT.points, strict=True):
        sums = risk_matrix(predict(*point.spec.build())).sum(-1)
        apart = np.ptp(sums) / sums.mean()
        assert apart < 1e-6 or apart > 1e-2, regime
        found[regime] = {"row_sums": "equal" if apart < 1e-6 else "unequal"}
    assert found == {regime: effects.row_sums(regime) for regime in regimes}
    assert sum(facts["row_sums"] == "equal" for facts in found.values()) == 2


def test_constraints_are_held_against_weights_of_any_sign():
    """Errors under optimal less those under non-negative weights, over those under uniform ones."""
    found, cost = weighting(np.zeros((2, 2)))
    even, optimal, constrained = (
        cost["error"].sel(rule=rule).values for rule in ("uniform", "optimal", "non_negative")
    )
    assert [effect.label for effect in found["optimal less non-negative"]] == ["m = 8", "m = 16"]
    for k, effect in enumerate(found["optimal less non-negative"]):
        is_mean_of(effect, (optimal - constrained)[:, k] / even.mean())
        assert effect.at["pairs_per_head"] == (4, 8)[k]


def test_the_cost_is_told_with_the_variance_of_the_noise(monkeypatch):
    """Labels of standard deviation ½: σ² = ¼, and six heads."""
    predict = EXPERIMENT.module("predict")
    monkeypatch.setattr(predict, "predict_terms", lambda *_: None)
    law = predict.predict(EXPERIMENT)["cost"]
    assert law.attrs == {"heads": 6, "noise_variance": 0.25}
    assert law["inflation"].values == pytest.approx([5 / (m - 6) for m in law["pairs"].values])
