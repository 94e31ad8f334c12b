"""Densities and misfits of given parameters, against the normal law of all points at once."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sims.judgement.scaling.laws import Model, Points, Prior
from sims.judgement.scaling.sampler import Draws, pointwise

X = np.array([2.0, 3.0, 5.0, 9.0, 20.0])
SCALES = np.array([0.5, 0.2, 0.3, 0.4, 0.1])


def test_scatter_is_relative_to_a_value_but_no_less_than_its_error():
    """An estimate that is 0, or beside its error nearly so, is off a law by its error."""
    y, errors = [0.0, -0.1, 0.1, -2.0, 3.0], np.array([0.5, 0.2, 0.3, 0.4, 0.1])
    expected = [0.5, 0.2, 0.3, 2.0, 3.0]
    np.testing.assert_allclose(Points.of(X, y, errors).scatter_scales, expected)
    covariance = np.diag(errors**2)
    covariance[0, 1] = covariance[1, 0] = 0.02
    np.testing.assert_allclose(Points.of(X, y, covariance).scatter_scales, expected)


@pytest.mark.parametrize("law", ["power", "log"])
def test_densities_and_misfits_are_those_of_one_normal_law(law):
    """Of five correlated points with scatter: ``rᵀQr`` by a plain inverse, and the density of a
    point given the others as that of all less that of the others.
    """
    rng = np.random.default_rng(2)
    root = 0.1 * (np.eye(5) + 0.4 * rng.normal(size=(5, 5)))
    y, u = 1.0 - 0.3 * np.log(X) + 0.2 * rng.normal(size=5), np.log(X) - np.log(X).mean()
    points = Points.of(X, y, root @ root.T, SCALES)
    problem = points.problem(Model(law, scatter=0.2, prior=Prior(scale=1.0)))
    intercept, slope = np.array([[0.1, -0.2]]), np.array([[-0.4, -0.6]])
    floor, scatter = np.array([[0.0, 0.07]]), np.array([[0.0, 0.3]])
    density, misfit = pointwise(problem, Draws(intercept, slope, floor, scatter, floor > 1))
    for draw in range(2):
        line = intercept[0, draw] + slope[0, draw] * u
        mean = (np.exp(line) if law == "power" else line) + floor[0, draw]
        covariance = root @ root.T + np.diag((scatter[0, draw] * SCALES) ** 2)
        residual = y - mean
        assert misfit[draw] == pytest.approx(residual @ np.linalg.inv(covariance) @ residual)
        whole = multivariate_normal.logpdf(y, mean, covariance)
        for i in range(5):
            rest = np.arange(5) != i
            others = multivariate_normal.logpdf(y[rest], mean[rest], covariance[np.ix_(rest, rest)])
            assert density[i, draw] == pytest.approx(whole - others)
