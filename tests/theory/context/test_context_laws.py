"""Laws of a kept temperature against quadrature, brute force and drawn keys."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from sims.errors import InputError
from sims.problem import DESIGNS, Heads, Task, TrigonometricSeries
from sims.theory import context, predict
from sims.weights import FACTORIES

pytestmark = pytest.mark.theory
POWERS = (1, 2, 3)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("power", [0, 1, 2.5, 6])
def test_volume_is_the_integral_over_the_ball(dimension, power):
    area = {1: 2.0, 2: 2 * np.pi, 3: 4 * np.pi}[dimension]
    radial = quad(lambda r: (1 - r**2) ** power * r ** (dimension - 1), 0, 1, epsabs=1e-13)[0]
    assert context.kernel_volume(dimension, power) == pytest.approx(area * radial, rel=1e-10)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("nu", POWERS)
def test_radius_of_drawn_keys(dimension, nu):
    """Uniform keys, whose density is constant; the root's own spread is the tolerance.

    sd(h)/h ≈ 1/((2ν + d)√n_eff); five of them: a false alarm once in 1.7 million.
    """
    n, h = 500_000, 0.2
    keys = np.random.default_rng(nu).uniform(-1, 1, (n, dimension))
    square = np.sum(keys**2, axis=1)
    density = 0.5**dimension
    volume = context.kernel_volume(dimension, nu)
    temperature = (n * density * volume * h ** (2 * nu + dimension)) ** (1 / nu) / (2 * nu)
    total = (2 * temperature * nu) ** nu
    found = brentq(lambda x: np.sum(np.maximum(x - square, 0) ** nu) - total, 1e-4, 1) ** 0.5
    assert context.radius_law(temperature, n, density, dimension, nu) == pytest.approx(h, rel=1e-12)
    attended = context.attended_law(temperature, n, density, dimension, nu)
    n_eff = attended * volume**2 / (
        context.kernel_volume(dimension, 2 * nu) * context.kernel_volume(dimension, 0)
    )  # fmt: skip
    assert abs(found / h - 1) < 5 / ((2 * nu + dimension) * n_eff**0.5)
    assert abs(np.sum(square < h**2) / attended - 1) < 5 / attended**0.5


@pytest.mark.parametrize("nu", POWERS)
def test_radius_on_the_sphere_is_exact(nu):
    """On the unit sphere of R³ ``E(λ − D²)₊^ν = λ^{ν+1}/(4(ν + 1))``, by Archimedes."""
    n, temperature = 300, 0.9
    exact = (4 * (nu + 1) * (2 * temperature * nu) ** nu / n) ** (0.5 / (nu + 1))
    law = context.radius_law(temperature, n, 1 / (4 * np.pi), 2, nu)
    assert law == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 4])
@pytest.mark.parametrize("nu", POWERS)
@pytest.mark.parametrize("beta", [0.5, 1, 2, 3])
def test_exponents_are_those_of_the_leading_terms(dimension, nu, beta):
    """Of ``h^{2β} + 1/(n h^d)``, best and at a kept temperature, at n = 10^40 and 10^42."""
    sizes, smooth = np.array([1e40, 1e42]), min(beta, 2)

    def error(log_h, n):
        return np.logaddexp(2 * smooth * log_h, -np.log(n) - dimension * log_h)

    def slope(values):
        return np.diff(values)[0] / np.diff(np.log(sizes))[0]

    best = np.array(
        [
            minimize_scalar(error, args=(n,), bounds=(-80, 0), method="bounded",
                            options={"xatol": 1e-9}).x
            for n in sizes
        ]
    )  # fmt: skip
    temperature = (np.log(sizes) + (2 * nu + dimension) * best) / nu
    law = context.temperature_exponent(nu, beta, dimension)
    assert slope(temperature) == pytest.approx(law, abs=1e-4)
    kept = np.array([np.log(context.radius_law(1.0, n, 1.0, dimension, nu)) for n in sizes])
    held = slope(np.array([error(h, n) for h, n in zip(kept, sizes, strict=True)]))
    assert held == pytest.approx(context.error_exponent(nu, beta, dimension), abs=1e-2)
    count = slope(np.log([context.attended_law(1.0, n, 1.0, dimension, nu) for n in sizes]))
    assert count == pytest.approx(context.attended_exponent(nu, dimension), rel=1e-10)


def test_limits_of_the_exponents_are_those_of_softmax():
    infinite = [
        context.attended_exponent(np.inf, 2), context.error_exponent(np.inf, 1, 2),
        context.temperature_exponent(np.inf, 1, 2),
    ]  # fmt: skip
    large = [
        context.attended_exponent(1e9, 2), context.error_exponent(1e9, 1, 2),
        context.temperature_exponent(1e9, 1, 2),
    ]  # fmt: skip
    np.testing.assert_allclose(infinite, large, atol=1e-8)


@pytest.mark.parametrize("x", [0.2, 0.7])
def test_best_temperature_is_where_first_order_errors_are_least(x):
    """At n = 10^9 keys, by the library's own adaptive theory."""
    task = Task(DESIGNS["isotropic"](1), TrigonometricSeries([1.0], [[1.3]], [0.4]), 0.8)
    slope, bend = -1.3 * np.sin(1.3 * x + 0.4), -(1.3**2) * np.cos(1.3 * x + 0.4)
    law = context.best_temperature(0.8, 0.5 * bend - x * slope, 1)
    rule = FACTORIES["entmax"](nu=2.0, scores="distance")

    def error(log_s):
        heads = Heads(np.eye(1)[None], rule, np.exp(log_s / 2))
        return float(predict(task, heads, 10**9, [[x]])["mse"]) * 1e7

    found = minimize_scalar(error, bounds=(np.log(law) - 1, np.log(law) + 1), method="bounded")
    assert np.exp(found.x) == pytest.approx(law, rel=0.02)


@pytest.mark.parametrize("nu", [1, 1.5, 2, 3])
@pytest.mark.parametrize(("n", "scale"), [(40, 0.3), (3000, 0.05), (300, 2.0), (300, 0.01)])
def test_threshold_of_normal_scores_by_quadrature(n, scale, nu):
    u = context.score_threshold(n, scale, nu)

    def integrand(z):
        return ((z - u) / nu) ** nu * np.exp(-0.5 * (z / scale) ** 2) / (scale * (2 * np.pi) ** 0.5)

    mass = quad(integrand, max(u, -12 * scale), max(u, 0) + 12 * scale, limit=200, epsabs=1e-14)[0]
    assert n * mass == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("nu", [1, 2])
def test_attended_scores_of_drawn_keys(nu):
    """Thresholds of 2,000 drawn rows; 4 standard errors and the next order, 0.5 keys."""
    rng, n, scale, rows = np.random.default_rng(5), 2000, 0.25 if nu == 1 else 0.5, 2000
    counts = []
    for _ in range(rows):
        z = scale * rng.standard_normal(n)
        low, high = z.max() - nu, z.max()
        u = brentq(lambda t, z=z: np.sum(np.maximum((z - t) / nu, 0) ** nu) - 1, low, high)
        counts.append(np.sum(z > u))
    law = context.score_attended(n, scale, nu)
    assert abs(np.mean(counts) - law) < 4 * np.std(counts) / rows**0.5 + 0.5
    # The constant counts: without it the law would miss by about one key.
    from scipy.stats import norm

    bare = n * norm.sf(context.score_threshold(n, scale, nu) / scale)
    assert 0.5 < law - bare < 4


def test_squared_radius_of_keys_of_one_norm():
    """The radius at which the kernel gives α-entmax's own weights, and a refusal."""
    rng = np.random.default_rng(2)
    keys, query, s, nu = rng.standard_normal((40, 3)), rng.standard_normal(3), 0.7, 2
    keys *= 1.4 / np.linalg.norm(keys, axis=1, keepdims=True)
    z = keys @ query / s / nu
    tau = brentq(lambda t: np.sum(np.maximum(z - t, 0) ** nu) - 1, z.max() - 1, z.max())
    square = context.squared_radius(query, keys, tau, s, nu)
    kernel = np.maximum(square - np.sum((keys - query) ** 2, axis=1), 0) ** nu
    np.testing.assert_allclose(kernel / kernel.sum(), np.maximum(z - tau, 0) ** nu, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: context.radius_law(0.0, 10, 1.0, 1, 1), "temperature: got 0.0; allowed: finite"),
        (lambda: context.radius_law(1.0, 10, -1.0, 1, 1), "density: got -1.0; allowed: finite"),
        (lambda: context.attended_exponent(0, 1), "nu: got 0; allowed: finite and > 0"),
        (lambda: context.temperature_exponent(-1.0, 1, 1), "nu: got -1.0; allowed: finite"),
        (lambda: context.error_exponent(1, 0, 1), "beta: got 0; allowed: finite and > 0"),
        (lambda: context.kernel_volume(0, 1), "dimension: got 0; allowed: an integer >= 1"),
        (lambda: context.best_temperature(1.0, 0.0, 1), "curvature: got 0.0; allowed: finite"),
        (lambda: context.score_threshold(10, 1.0, 0.5), "nu: got 0.5; allowed: at least 1"),
        (lambda: context.score_threshold(10, 0.0, 1), "scale: got 0.0; allowed: finite and > 0"),
        (
            lambda: context.squared_radius([1.0, 0.0], [[1.0, 0.0], [0.0, 2.0]], 0.1, 1.0, 1),
            "keys: got norms from 1 to 2; allowed: keys of one norm",
        ),
    ],
)
def test_bad_input_of_laws(call, words):
    with pytest.raises(InputError) as caught:
        call()
    line = str(caught.value).replace("'", "")
    assert words in line
    assert "\n" not in line
