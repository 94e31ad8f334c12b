"""Scaling laws: known curves, calibration by simulation, and laws that cannot be told apart.

All data sets have 8 points, so the sampler is compiled once for the module.
"""

import dataclasses
import sys

import jax
import numpy as np
import pytest
from scipy.stats import binom, chi2, chisquare

from sims.errors import InputError
from sims.judgement.scaling import (
    LAWS,
    NotConverged,
    Prior,
    compare,
    exponent_claim,
    fit,
    law_claim,
)
from sims.judgement.scaling.laws import Model, Points, fit_laws

X = np.geomspace(64, 8192, 8)
CURVES = {
    "power": (lambda x: 3 * x**-0.7, -0.7),
    "log_power": (lambda x: 0.4 * np.log(x) ** 0.5, 0.5),
    "log": (lambda x: 1 + 2.5 * np.log(x), 2.5),
}
BATCH = {"level": 0.95, "replicates": 1000}


def slow_but(quick, cases):
    """The cases, all marked slow but one: sampling takes 5 to 30 s each."""
    return [case if case == quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


@pytest.fixture(autouse=True)
def optimised():
    """Here running takes longer than compiling."""
    name = "jax_disable_most_optimizations"
    before = jax.config.read(name)
    jax.config.update(name, False)
    yield
    jax.config.update(name, before)


@pytest.mark.slow
@pytest.mark.parametrize("law", CURVES)
def test_noise_free_curve_gives_its_exponent(law):
    """Points on the curve, errors of 0.1%: the posterior sits on the exponent of the curve.

    With this seed a chain that starts at random never gets there.
    """
    curve, exponent = CURVES[law]
    y = curve(X)
    fitted = fit(X, y, 1e-3 * y, law, seed=3)
    assert fitted.problem is None
    assert abs(fitted.exponent.mean() - exponent) < 0.2 * fitted.exponent.std()
    assert fitted.exponent.std() < 5e-3 * abs(exponent)
    assert fitted.misfit > 0.5
    right = exponent_claim(fitted, expected=exponent, margin=0.05, **BATCH)
    wrong = exponent_claim(fitted, expected=exponent + 0.2, margin=0.05, **BATCH)
    assert (right.verdict, wrong.verdict) == ("supported", "refuted")
    assert right.interval[0] < exponent < right.interval[1]


def test_posterior_is_that_of_quadrature():
    """Two parameters on a grid: mean and deviation of p by brute force, correlated points."""
    rng = np.random.default_rng(3)
    root = np.eye(8) + 0.5 * rng.normal(size=(8, 8))
    covariance = 0.05**2 * root @ root.T / 3
    u = np.log(X) - np.log(X).mean()
    y = np.exp(-0.5 * u) + rng.multivariate_normal(np.zeros(8), covariance)
    prior = Prior(intercept_sd=0.5, exponent_mean=-1.0, exponent_sd=0.3, scale=1.0)
    fitted = fit(X, y, covariance, prior=prior)
    a, p = np.meshgrid(np.linspace(-0.6, 0.6, 801), np.linspace(-1.2, 0.2, 801), indexing="ij")
    residual = y - np.exp(a[..., None] + p[..., None] * u)
    solved = residual @ np.linalg.inv(covariance)
    log = -0.5 * ((residual * solved).sum(-1) + (a / 0.5) ** 2 + ((p + 1.0) / 0.3) ** 2)
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    mean = (mass * p).sum()
    deviation = np.sqrt((mass * (p - mean) ** 2).sum())
    # At least 400 effective draws: 5 standard errors of mean and of deviation.
    assert abs(fitted.exponent.mean() - mean) < 5 * deviation / np.sqrt(fitted.ess)
    assert fitted.exponent.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * fitted.ess))
    # No parameter has been fitted to the points of a draw: χ² of all eight.
    tail = chi2.sf((residual * solved).sum(-1), 8)
    misfit = (mass * tail).sum()
    spread = np.sqrt((mass * (tail - misfit) ** 2).sum())
    assert abs(fitted.misfit - misfit) < 5 * spread / np.sqrt(fitted.ess)


def test_floor_is_needed_where_the_curve_levels_off():
    y = X**-1.0 + 0.004
    errors = 0.02 * y
    bent = fit(X, y, errors)
    level = fit(X, y, errors, floor=True)
    assert exponent_claim(bent, expected=-1.0, margin=0.1, **BATCH).verdict == "inconclusive"
    assert "does not describe" in exponent_claim(bent, expected=-1.0, margin=0.1, **BATCH).reason
    low, high = level.interval(0.95)
    assert low < -1.0 < high
    assert np.quantile(level.parameters["floor"], [0.025, 0.975]) == pytest.approx(0.004, rel=0.5)


@pytest.mark.slow
def test_scatter_widens_the_interval():
    """A 3% ripple on a curve measured to 0.2%: misfit without allowance, honest width with it."""
    y = X**-0.8 * (1 + 0.03 * np.array([1, -1, -1, 1, 1, -1, 1, -1]))
    tight = fit(X, y, 0.002 * y)
    loose = fit(X, y, 0.002 * y, scatter=0.1)
    assert tight.misfit < 1e-3 < 0.05 < loose.misfit
    assert loose.exponent.std() > 5 * tight.exponent.std()
    assert loose.interval(0.95)[0] < -0.8 < loose.interval(0.95)[1]


def test_negative_estimates_are_used():
    """Unbiased y around a small curve: some are negative, and the truth is still covered."""
    rng = np.random.default_rng(5)
    truth = 2 * (X / X[0]) ** -1.0
    y = truth + 0.08 * rng.normal(size=8)
    assert (y < 0).any()
    low, high = fit(X, y, np.full(8, 0.08)).interval(0.99)
    assert low < -1.0 < high


def test_not_converged_gives_no_numbers():
    fitted = dataclasses.replace(fit(X, X**-0.5, 0.01 * X**-0.5), rhat=1.2, divergences=3)
    with pytest.raises(NotConverged, match=r"R-hat 1\.200 > 1\.01, 3 divergences"):
        fitted.interval(0.95)
    finding = exponent_claim(fitted, expected=-0.5, margin=0.1, **BATCH)
    assert (finding.verdict, finding.effect, finding.interval) == ("inconclusive", None, None)


def calibration(count, seed):
    """Parameters from the prior, data from the law, then the rank of the truth in its posterior."""
    rng = np.random.default_rng(seed)
    prior = Prior(intercept_sd=0.5, exponent_mean=-0.7, exponent_sd=0.3, scale=1.0)
    u = np.log(X) - np.log(X).mean()
    model = Model("power", scatter=0.2, prior=prior)
    scales = np.full(8, 0.5)
    truth = np.stack(
        [rng.normal(0, 0.5, count), rng.normal(-0.7, 0.3, count), 0.2 * abs(rng.normal(size=count))]
    )
    fits = []
    for start in range(0, count, 8):
        group = []
        for alpha, p, tau in truth[:, start : start + 8].T:
            root = 0.05 * (np.eye(8) + 0.3 * rng.normal(size=(8, 8)))
            noise = rng.multivariate_normal(np.zeros(8), root @ root.T)
            y = np.exp(alpha + p * u) + noise + tau * scales * rng.normal(size=8)
            group.append(Points.of(X, y, root @ root.T, scales))
        fits += fit_laws(group, [model] * len(group), start)
    ok = [f.problem is None for f in fits]
    names = ("intercept", "exponent", "scatter")
    thinned = np.array([[f.parameters[n].ravel()[::40] for n in names] for f in fits])
    ranks = (thinned < truth.T[..., None]).sum(-1)  # 0 … 100
    inside = [
        f.interval(0.9)[0] < p < f.interval(0.9)[1]
        for f, p in zip(fits, truth[1], strict=True)
        if not f.problem
    ]
    return np.mean(ok), ranks, np.array(inside)


def check_calibration(count, seed, bins):
    """False-alarm rate at most 4e-3: 3 rank tests at 1e-3, coverage two-sided at 1e-3."""
    converged, ranks, inside = calibration(count, seed)
    assert converged >= 0.9
    for column in ranks.T:
        observed = np.histogram(column, bins=bins, range=(-0.5, 100.5))[0]
        assert chisquare(observed).pvalue > 1e-3
    low, high = binom.ppf([5e-4, 1 - 5e-4], len(inside), 0.9)
    assert low <= inside.sum() <= high


@pytest.mark.slow
def test_calibration_small():
    check_calibration(32, 1, 4)


@pytest.mark.slow
def test_calibration():
    check_calibration(200, 2, 10)


@pytest.mark.parametrize("law", slow_but("log", [*CURVES, "constant"]))
def test_clear_laws_are_told_apart(law):
    y = CURVES[law][0](X) if law in CURVES else np.full(8, 2.0)
    y = y * (1 + 0.003 * np.random.default_rng(4).normal(size=8))
    rivals = [name for name in LAWS if name in ("power", "log", law)]
    if law == "constant":
        # A constant is a power with exponent 0: prediction cannot refute either.
        compared = compare(X, y, 0.003 * y, ("constant", "power"))
        assert law_claim(compared, "constant", **BATCH).verdict == "inconclusive"
        return
    compared = compare(X, y, 0.003 * y, rivals)
    assert law_claim(compared, law, **BATCH).verdict == "supported"
    other = next(name for name in rivals if name != law)
    assert law_claim(compared, other, **BATCH).verdict == "refuted"


@pytest.mark.parametrize("seed", slow_but(3, range(4)))
def test_log_and_small_power_are_not_told_apart(seed):
    """x^0.05 and the best a + p log x differ by 0.5% over these points, errors are 3%."""
    law = ("power", "log")[seed % 2]
    y = X**0.05 if law == "power" else 10 + 0.5 * np.log(X)
    y = y * (1 + 0.03 * np.random.default_rng(seed).normal(size=8))
    compared = compare(X, y, np.full(8, 0.03 * y.mean()), ("power", "log", "log_power"))
    for name in compared.fits:
        assert law_claim(compared, name, **BATCH).verdict == "inconclusive"


@pytest.mark.slow
@pytest.mark.parametrize("law", ["power", "log"])
def test_no_wrong_law_is_chosen(law):
    """40 data sets, partly decidable: a law that is not the true one hardly ever wins.

    If the rate of wrong verdicts is 1%, more than 3 of 40 come once in 1400 seeds.
    """
    wrong = 0
    other = "log" if law == "power" else "power"
    for seed in range(40):
        rng = np.random.default_rng([40, seed])
        y = X**0.15 if law == "power" else np.log(X) - 0.5
        error = y.mean() * rng.choice([0.02, 0.04])
        compared = compare(X, y + error * rng.normal(size=8), np.full(8, error), ("power", "log"))
        wrong += (
            law_claim(compared, law, **BATCH).verdict == "refuted"
            or law_claim(compared, other, **BATCH).verdict == "supported"
        )
    assert wrong <= 3


@pytest.mark.slow
def test_smoothed_weights_agree_with_refits(monkeypatch):
    """An outlying point has k > 0.7 and is refitted; elsewhere refits confirm the smoothing."""
    y = X**-0.5 * (1 + 0.05 * np.random.default_rng(1).normal(size=8))
    y[0] *= 1.25
    data = (X, y, 0.05 * y, ("power", "constant"))
    smoothed = compare(*data)
    assert smoothed.refitted["constant"].any()
    monkeypatch.setattr(sys.modules["sims.judgement.scaling.compare"], "MAX_PARETO_K", -np.inf)
    exact = compare(*data)
    assert exact.refitted["power"].all()
    reliable = smoothed.pareto_k["power"] < 0.5  # finite variance of the weights
    assert reliable.sum() >= 4
    gap = (smoothed.elpd["power"] - exact.elpd["power"])[reliable]
    np.testing.assert_allclose(gap, 0, atol=0.1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"x": X[:3], "y": X[:3], "errors": X[:3]}, "x"),
        ({"x": -X}, "x"),
        ({"y": np.full(8, np.nan)}, "y"),
        ({"errors": np.zeros(8)}, "errors"),
        ({"errors": -np.eye(8)}, "errors"),
        ({"errors": np.ones(7)}, "points"),
        ({"law": "cubic"}, "law"),
        ({"x": X / 64, "law": "log_power"}, "x"),
        ({"scatter": -1.0}, "scatter"),
    ],
)
def test_bad_input_is_named(change, field):
    with pytest.raises(InputError, match=rf"^{field}: "):
        fit(**({"x": X, "y": X**-0.5, "errors": np.full(8, 0.01)} | change))
