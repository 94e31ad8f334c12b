"""Agents of any kind, by other routes: the error of forests, softmax heads on lines."""

import numpy as np
import pytest
import xarray as xr
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from sims.montecarlo import run
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("unification")
simulate, predict = (EXPERIMENT.module(name) for name in ("simulate", "predict"))


def test_the_error_of_a_forest_is_about_friedmans_function():
    """By scikit-learn's predictions, and by that function written out; the first tree's, too."""
    settings = EXPERIMENT.settings["trees"] | {"queries": 5, "max_features": 1}
    coefficients = simulate.pooled({"unequal": 0.5}, np.array([1, 2]))
    dims = dict.fromkeys(("pooled", "unequal", "error"), ("agents",))
    sampler = simulate.trees(settings, simulate.POOLED, 2, coefficients, dims=dims)
    data = run(sampler, 3, replicates_per_batch=3, batches=2, stream=(simulate.POOLED,))
    x = np.random.default_rng(0).random((5, 5), dtype=np.float32)
    truth = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    truth += 10 * x[:, 3] + 5 * x[:, 4]
    for b in range(2):
        squares = []
        for state in np.random.default_rng([3, simulate.POOLED, b]).integers(2**31, size=3):
            training = make_friedman1(50, 5, noise=1.0, random_state=int(state))
            rule = RandomForestRegressor(2, max_features=1, random_state=int(state))
            rule.fit(*training)
            estimates = rule.estimators_[0].predict(x), rule.predict(x)
            squares.append([np.mean((estimate - truth) ** 2) for estimate in estimates])
        np.testing.assert_allclose(data["error"][b], np.mean(squares, axis=0), rtol=1e-6)


@pytest.mark.theory
def test_softmax_heads_on_lines_tend_to_their_own_law():
    """``Σ w_h w_g`` tends to ``exp(x'P_h P_g x/b⁴)/n``, averaged over x ~ N(0, s² I) in the plane.

    What exact theory has beyond it falls like 1/n, four times per four times the keys. The
    bandwidth is the system's own, not that of the kind.
    """
    b, s, lines, gaps = 1.1, 0.25, [np.array([1.0, 0.0]), np.array([0.5, 0.75**0.5])], []
    projections = [np.outer(line, line) for line in lines]

    def averaged(one, other):
        """E exp(x'Sx/b⁴) for the symmetric part S of the product."""
        both = (one @ other + other @ one) / 2
        return np.linalg.det(np.eye(2) - 2 * s**2 / b**4 * both) ** -0.5

    law = np.array([averaged(projections[0], other) for other in projections])
    system = {"angle": 60, "kernel": "softmax", "bandwidth": b}
    for n in (128, 512):
        sizes = {"width": 1, "bandwidth": 0.4, "n": n, "scale": s}
        exact = np.array(predict.heads(system, sizes))
        assert (exact[:, 1] < 1e-3 * exact[:, 0]).all()
        gaps.append(exact[:, 0] * n / law - 1)
    assert (np.abs(gaps[0]) < 1e-3).all()
    assert (np.abs(gaps[1]) > 2e-5).all()
    np.testing.assert_allclose(gaps[0] / gaps[1], 4, rtol=0.1)


def test_an_integral_over_queries_is_as_uncertain_as_theory_at_its_nodes(monkeypatch):
    """Noise that is the same everywhere leaves no error of the rule: what is stated is theory's."""

    def constant(task, heads, n, points, order):
        pairs = ("query", "head", "head2")
        value, error = ([[2.0, 1.0], [1.0, 4.0]], [[0.2, 0.03], [0.03, 0.4]])
        each = {"noise_covariance": value, "noise_covariance_error": error}
        return xr.Dataset({k: (pairs, np.tile(v, (len(points), 1, 1))) for k, v in each.items()})

    monkeypatch.setattr(predict, "theory", constant)
    sizes = {"width": 1, "bandwidth": 0.6, "n": 64, "scale": 0.4}
    v, c = predict.heads({"angle": 60}, sizes)
    assert v == pytest.approx((3.0, 0.3))
    assert c == pytest.approx((1.0, 0.03))
