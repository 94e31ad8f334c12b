"""First-order errors over contexts against the library's own theory, quadrature and brute force."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import norm

from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.theory import predict
from sims.theory.neighbours import context
from sims.theory.neighbours.context import Problems, tables
from sims.weights import FACTORIES

pytestmark = pytest.mark.theory
BETAS, LEVELS, SIGMA = (1.0, 2.0), 3, 0.7
RADII = {1: np.geomspace(0.05, 4.0, 140), 2: np.geomspace(0.1, 4.0, 120)}


def drawn(width, count=3, levels=LEVELS):
    series = [
        [TARGETS["holder"](width, seed=i, beta=beta, levels=levels) for i in range(count)]
        for beta in BETAS
    ]
    problems = Problems(
        np.array([[np.asarray(one.amplitude) for one in row] for row in series]),
        np.stack([np.asarray(one.frequency) for one in series[0]]),
        np.stack([np.asarray(one.phase) for one in series[0]]),
        0.4 * np.random.default_rng(3).standard_normal((count, width)),
    )
    return series, problems


@pytest.fixture(scope="module", params=[1, 2])
def both(request):
    series, problems = drawn(request.param)
    return request.param, series, problems, tables(problems, RADII[request.param])


def test_a_short_wave_of_one_problem_leaves_the_long_ones_of_another():
    """In the plane, beyond the radius at which the first problem's waves are noise."""
    _, problems = drawn(2, 2)
    apart = problems._replace(frequency=problems.frequency * np.array([60.0, 1.0])[:, None, None])
    alone = Problems(*(part[:, 1:] if k == 0 else part[1:] for k, part in enumerate(apart)))
    found, expected = (
        tables(own, RADII[2])["softmax"].errors(300, 0.05, SIGMA).mse[:, -1]
        for own in (apart, alone)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("rule", "own", "temperature"),
    [
        ("softmax", "gaussian", 0.05),
        ("sparsemax", FACTORIES["sparsemax"]("distance"), 8.0),
        ("1.5-entmax", FACTORIES["entmax"](nu=2.0, scores="distance"), 1.1),
        ("4/3-entmax", FACTORIES["entmax"](nu=3.0, scores="distance"), 0.5),
    ],
)
@pytest.mark.parametrize("n", [300, 5000])
def test_errors_are_those_of_the_library(both, rule, own, temperature, n):
    """Radial sums and splines against matrices, closed forms and Gauss–Jacobi rules."""
    width, series, problems, made = both
    found = made[rule].errors(n, temperature, SIGMA)
    for b, p in np.ndindex(found.mse.shape):
        task = Task(DESIGNS["isotropic"](width), series[b][p], SIGMA)
        heads = Heads(np.eye(width)[None], own, temperature**0.5)
        theory = predict(task, heads, n, problems.queries[p : p + 1])
        assert found.mse[b, p] == pytest.approx(float(theory["mse"]), rel=3e-4)
        variance = float(theory["mse"] - theory["squared_bias"])
        assert found.variance[b, p] == pytest.approx(variance, rel=3e-4)
        assert found.n_eff[p] == pytest.approx(float(theory["n_eff"].squeeze()), rel=1e-4)
        if "attended" in theory:
            attended = float(theory["attended"].squeeze())
            assert found.attended[p] == pytest.approx(attended, rel=1e-4)


def test_relu_of_the_gap_has_the_nearest_key_on_top(both):
    """``E d_(1)²`` from the law of the nearest key, and dm*/dλ by differences along the radii."""
    width, _, problems, made = both
    table, n = made["relu gap"], 4000
    x = problems.queries[0]

    def within(r):
        if width == 1:
            return norm.cdf(x[0] + r) - norm.cdf(x[0] - r)
        from scipy.stats import ncx2

        return ncx2.cdf(r**2, 2, x @ x)

    exact = quad(lambda r: 2 * r * (1 - within(r)) ** n, 0, 0.5, epsabs=1e-14, limit=200)[0]
    assert table.nearest[0] * n ** (-2 / width) == pytest.approx(exact, rel=5e-3)
    square = RADII[width] ** 2
    limit, slope_at = table.columns[0], table.columns[3]
    slopes = np.gradient(limit, square, axis=-1)[..., 20:-20]
    np.testing.assert_allclose(slope_at[..., 20:-20], slopes, atol=0.01 * np.abs(slopes).max())
    # With it and without: at the same fixed radius the bias differs by the product.
    bare = table._replace(nearest=np.zeros_like(table.nearest))
    both_errors = [one.errors(n, 0.3, SIGMA) for one in (table, bare)]
    biases = [np.sqrt(one.mse - one.variance) for one in both_errors]
    shift = np.abs(biases[0] - biases[1]).ravel()
    slope = np.abs(
        [
            np.interp(0.5 * np.log(0.6), table.level[0], row)
            for row in slope_at.reshape(-1, len(square))
        ]
    )
    np.testing.assert_allclose(
        shift, slope * np.tile(table.nearest, 2) * n ** (-2 / width), rtol=0.02
    )


def test_top_k_by_the_beta_law_of_the_ball():
    """One query on the line: an integral over P(D < R) ~ Beta(k + 1, n − k), brute force inside."""
    series, problems = drawn(1, 1)
    made, n, k = tables(problems, RADII[1])["top-k"], 300, 60
    x = float(problems.queries[0, 0])
    u, w = leggauss(60)
    radius = np.linspace(1e-3, 1.5, 4000)
    points = x + radius[:, None] * u
    density = np.exp(-0.5 * points**2) / np.sqrt(2 * np.pi) * w * radius[:, None]
    mass = norm.cdf(x + radius) - norm.cdf(x - radius)
    law = np.exp(k * np.log(mass) + (n - k - 1) * np.log1p(-mass) - betaln(k + 1, n - k))
    found = made.errors(n, k, SIGMA)
    for b in range(len(BETAS)):
        m = np.asarray(series[b][0](points[..., None].astype(float)))
        mean, square = ((density * m**j).sum(1) / mass for j in (1, 2))

        def average(values):
            return np.trapezoid(values * law, mass)

        assert average(np.ones_like(mass)) == pytest.approx(1, abs=1e-6)
        truth = float(series[b][0](np.array([x])))
        bias = average(mean) - truth
        signal = average((square - mean**2) / k + mean**2) - average(mean) ** 2
        expected = bias**2 + signal + SIGMA**2 / k
        assert found.mse[b, 0] == pytest.approx(expected, rel=2e-3)
    assert found.n_eff[0] == k


def test_short_waves_are_noise(monkeypatch):
    """What is left out of shells with many waves moves no error by more than 1e-3."""
    _, problems = drawn(2, 2, levels=7)
    radii = np.geomspace(0.05, 2.0, 80)
    short = tables(problems, radii)
    monkeypatch.setattr(context, "SHORT", np.inf)
    whole = tables(problems, radii)
    for rule, parameter in {
        "softmax": 0.05,
        "sparsemax": 8.0,
        "1.5-entmax": 1.0,
        "top-k": 40,
    }.items():
        one, other = (t[rule].errors(256, parameter, SIGMA).mse for t in (short, whole))
        np.testing.assert_allclose(one, other, rtol=1e-3)


def test_outside_of_a_table_there_is_no_number(both):
    made = both[-1]["sparsemax"]
    assert np.isnan(made.errors(300, [1e-9, 1e9], SIGMA).mse).all()
