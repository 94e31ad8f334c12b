"""The hierarchical posterior of exponents, against a grid."""

import numpy as np
import pytest

from sims.judgement import exponents


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
        independent = (error[i, k] ** 2 + noises[:, None] ** 2)[:, :, None] * np.eye(k.sum())
        common = spreads[:, None, None, None] ** 2 * np.outer(z[i, k], z[i, k]) + 100**2
        covariance = common + independent
        inverse = np.linalg.inv(covariance)
        log -= 0.5 * np.linalg.slogdet(covariance)[1]
        log -= 0.5 * np.einsum("mk,stkl,ml->mst", off, inverse, off, optimize=True)
    log -= 0.5 * (spreads[:, None] ** 2 + noises**2 + (means[:, None, None] / 3) ** 2)
    mass = np.exp(log - log.max())
    of_means, of_spreads = mass.sum((1, 2)).cumsum(), mass.sum((0, 2)).cumsum()
    quantiles = np.interp([0.025, 0.5, 0.975], of_means / of_means[-1], means)
    np.testing.assert_allclose(
        [found.interval[0], found.mean, found.interval[1]], quantiles, atol=0.02
    )
    median = np.interp(0.5, of_spreads / of_spreads[-1], spreads)
    assert found.spread == pytest.approx(median, rel=0.05)


X, Y = np.array([64.0, 256.0, 1024.0]), np.array([[0.5, 0.25, 0.12]] * 3)


@pytest.mark.parametrize(
    ("x", "y", "error", "fault"),
    [
        (X, np.nan * Y, 0.1, "no problem has two points"),
        (X, [[1.0, np.nan, np.nan]], 0.1, "no problem has two points"),
        ([64.0, 64.0, 64.0], Y, 0.1, "no problem has two points"),
        (X, Y * [1, 1, 1e30], 0.1, "an exponent of size 2"),
        (X, Y - 0.25, 0.1, "no positive numbers"),
        (X * [0, 1, 1], Y, 0.1, "no positive numbers"),
        (X, Y, -0.1, "no positive numbers"),
        (X, Y, 1e30, "errors so large"),
    ],
)
def test_what_says_nothing_is_a_fault(x, y, error, fault):
    assert fault in exponents.exponents(x, y, error).fault
