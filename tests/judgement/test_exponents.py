"""Posterior exponents: against quadrature, generalised least squares, and curves with ripples."""

import numpy as np
import pytest

from sims.judgement import Rule, decide, exponents
from sims.judgement.exponents import exponent
from tests.judgement.helpers import curve

X = np.geomspace(16, 96, 5)
Z = np.log(X) - np.log(X).mean()


def test_posterior_is_that_of_quadrature():
    """Scatter and exponent on a grid, correlated points; the level is integrated by algebra."""
    rng = np.random.default_rng(3)
    root = 0.02 * (np.eye(5) + 0.5 * rng.normal(size=(5, 5)))
    y = 3 * X**-0.7 * np.exp(root @ rng.normal(size=5))
    draws, problem = exponent(X, y, root @ root.T * np.outer(y, y), scatter=0.05)
    assert problem is None
    p, tau = np.meshgrid(np.linspace(-1.2, -0.2, 801), np.linspace(0, 0.3, 400), indexing="ij")
    log = -0.5 * ((p / 3) ** 2 + (tau / 0.05) ** 2)
    for i, t in enumerate(tau[0]):
        precision = np.linalg.inv(root @ root.T + t**2 * np.eye(5))
        off = np.log(y) - p[:, :1] * Z
        pull = off @ precision
        total = precision.sum()
        square = (pull * off).sum(1) - pull.sum(1) ** 2 / total  # at the best level
        log[:, i] += 0.5 * (np.linalg.slogdet(precision)[1] - np.log(total)) - 0.5 * square
    mass = np.exp(log - log.max()).sum(1)
    share = np.cumsum(mass) / mass.sum()
    for q in (0.025, 0.5, 0.975):
        assert np.mean(draws <= np.interp(q, share, p[:, 0])) == pytest.approx(q, abs=0.02)


def test_hierarchical_posterior_is_that_of_a_grid():
    """Of 10 problems with 4 points, one missing: each has a normal density of 4 dimensions."""
    rng = np.random.default_rng(2)
    x = np.geomspace(16, 64, 4) ** rng.uniform(0.5, 1, (10, 1))
    z, own = np.log(x), 0.5 + 0.2 * rng.normal(size=(10, 1))
    error = rng.uniform(0.01, 0.05, (10, 4))
    log_y = 3 + own * z + error * rng.normal(size=(10, 4)) + 0.02 * rng.normal(size=(10, 4))
    log_y[4, 2] = np.nan
    lone = np.full((1, 4), np.nan)
    y = np.exp(np.vstack([log_y, lone]))
    found = exponents.exponents(np.vstack([x, x[:1]]), y, np.vstack([error, error[:1]]) * y)
    assert found.fault == ""
    assert np.isnan(found.squares[-1])
    assert found.squares[0] == pytest.approx(np.polyfit(z[0], log_y[0], 1)[0])
    spreads, noises = np.linspace(0.005, 0.8, 100), np.linspace(0.0005, 0.15, 60)
    means = np.linspace(0.1, 0.9, 161)
    log = np.zeros((161, 100, 60))
    for i in range(10):
        k = np.isfinite(log_y[i])
        off = log_y[i, k] - means[:, None] * z[i, k]
        for s, spread in enumerate(spreads):
            for t, noise in enumerate(noises):
                covariance = np.diag(error[i, k] ** 2 + noise**2) + spread**2 * np.outer(
                    z[i, k], z[i, k]
                )
                inverse = np.linalg.inv(covariance + 100**2)
                log[:, s, t] += 0.5 * np.linalg.slogdet(inverse)[1] - 0.5 * (
                    (off @ inverse) * off
                ).sum(1)
    log -= 0.5 * (spreads[:, None] ** 2 + noises**2 + (means[:, None, None] / 3) ** 2)
    mass = np.exp(log - log.max())
    of_means, of_spreads = mass.sum((1, 2)).cumsum(), mass.sum((0, 2)).cumsum()
    quantiles = np.interp([0.025, 0.5, 0.975], of_means / of_means[-1], means)
    np.testing.assert_allclose(
        [found.interval[0], found.mean, found.interval[1]], quantiles, atol=0.02
    )
    median = np.interp(0.5, of_spreads / of_spreads[-1], spreads)
    assert found.spread == pytest.approx(median, rel=0.05)


def test_verdicts(monkeypatch):
    """Errors that nearly all points share tilt no line: they leave the exponent sharp."""
    monkeypatch.setattr(exponents, "DRAWS", 500)
    rng = np.random.default_rng(3)
    shared, own = rng.normal(0, 0.2, (64, 1)), rng.normal(0, 0.005, (64, 5))
    points = curve(X, (1 + shared + own) * X)

    def judged(points, expected=1.0):
        return decide(points, Rule("exponent", 0.05, 0.95, expected=expected, replicates=9))

    found = judged(points)
    assert (found.verdict, found.replicates) == ("supported", 9)
    assert found.effect == pytest.approx(1.0, abs=0.01)
    assert found.p_value == pytest.approx(1 / 2001)  # none outside proves no probability of 0
    assert judged(points, 0.8).verdict == "refuted"
    bent = judged(curve(X, (1 + own) * (X + 0.01 * X**2)))
    assert (bent.verdict, bent.effect) == ("inconclusive", None)
    assert "does not describe the points" in bent.reason
    for few in (points[:3], curve(X, own[:63] + 1), curve(X, -1 - own)):
        assert "which a law takes" in judged(few).reason
