"""The angle series against closed forms, quadrature of the joint law, and Price's theorem."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from sims.problem import DESIGNS, TARGETS, Heads, Task
from sims.theory import gaussian_overlap, predict, softmax_overlap
from sims.theory.first_order.angle_series import angle_series
from sims.weights import FACTORIES
from tests.by_hand import normal_rule, refusals

pytestmark = pytest.mark.theory

POWERS = {"epanechnikov": 1, "biweight": 2, "triweight": 3}
COSINES = np.array([0.0, 0.3, -0.6, 0.85, 0.95])


def entmax(nu):
    return FACTORIES["entmax"](nu=nu, scores="distance")


def ball(nodes, width):
    """Gauss–Legendre points and weights of the unit interval or, by polar coordinates, disc."""
    points, weights = leggauss(nodes)
    if width == 1:
        return points[:, None], weights
    angle = 2 * np.pi * np.arange(2 * nodes) / (2 * nodes)
    radius, each = (points + 1) / 2, weights / 2
    place = np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], -1)
    return place.reshape(-1, 2), np.repeat(each * radius, len(angle)) * np.pi / nodes


def by_quadrature(u, v, cosines, log_kernel, radius, nodes=40):
    """r_hg at one pair of projected queries, from the joint normal law of both projections."""
    c, width = np.atleast_1d(cosines), len(u)
    place, weight = ball(nodes, width)
    value = weight * np.exp(log_kernel(np.linalg.norm(place, axis=1)))
    s, t = u + radius * place, v + radius * place
    one = [value @ np.exp(-(z**2).sum(1) / 2) for z in (s, t)]
    # φ₂(s, t) over φ(s)φ(t), coordinate by coordinate
    rest = -np.add.outer(
        (c**2 / (1 - c**2) / 2 * s**2).sum(1), (c**2 / (1 - c**2) / 2 * t**2).sum(1)
    )
    joint = np.exp(rest + (s * c / (1 - c**2)) @ t.T) / np.prod(np.sqrt(1 - c**2))
    weights = [value * np.exp(-(z**2).sum(1) / 2) for z in (s, t)]
    return weights[0] @ joint @ weights[1] / (one[0] * one[1])


def polynomial(nu):
    return lambda u: nu * np.log(np.maximum(1 - u**2, 1e-300))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "bandwidth", "scale", "law"),
    [("gaussian", 0.7, 0.8, gaussian_overlap), ("softmax", 1.2, 0.6, softmax_overlap)],
)
def test_closed_forms(kernel, bandwidth, scale, law, width):
    series = angle_series(kernel, bandwidth, scale, width=width)
    at = np.append(COSINES, 1.0)[:, None] * [1.0, 0.4][:width]
    value, bound = series.overlap(at)
    expected = np.prod(np.asarray(law(at, bandwidth, scale)), axis=-1)
    assert (np.abs(value - expected) <= bound).all()
    assert bound[:-1].max() < 2e-7
    assert series.aligned == pytest.approx(float(law(1.0, bandwidth, scale)) ** width, rel=1e-12)


@pytest.mark.parametrize(
    ("kernel", "cosines", "scale", "radius", "sizes"),
    [
        *((kernel, [0.7], 0.5, 1.1, (30, 20)) for kernel in POWERS),
        ("biweight", [0.7, 0.4], 0.3, 1.5, (7, 8)),
    ],
)
def test_average_over_queries(kernel, cosines, scale, radius, sizes):
    """A product rule over all query coordinates, of quadrature at each; on the line and in the
    plane, there of two different angles."""
    width, c = len(cosines), np.array(cosines)
    total = 0.0
    for z, mass in zip(*normal_rule(sizes[0], 2 * width), strict=True):
        if mass > 1e-13:
            u, v = scale * z[:width], scale * (c * z[:width] + (1 - c**2) ** 0.5 * z[width:])
            total += mass * by_quadrature(u, v, c, polynomial(POWERS[kernel]), radius, sizes[1])
    value, bound = angle_series(kernel, radius, scale, width=width).overlap(cosines)
    assert float(bound) < 1e-9
    assert float(value) == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("nu", [1.0, 2.0, 3.0])
def test_adaptive_radii_at_the_origin(width, nu):
    """The noise covariance of first-order theory by its own quadrature over two balls."""
    cosines, n, temperature = np.array([0.6, 0.3])[:width], 200, 4.0 if width == 1 else 8.0
    frames = np.zeros((2, 2 * width, width))
    for i, c in enumerate(cosines):
        frames[0, i, i], frames[1, i, i] = 1.0, c
        frames[1, width + i, i] = (1 - c**2) ** 0.5
    task = Task(DESIGNS["isotropic"](2 * width), TARGETS["constant"](2 * width), 1.0)
    heads = Heads(frames, entmax(nu), temperature**0.5)
    theory = predict(task, heads, n, np.zeros((1, 2 * width)))
    noise = n * theory["noise_covariance"].values[0]
    series = angle_series(entmax(nu), temperature**0.5, 0.0, width=width, n=n)
    value, bound = series.overlap(cosines)
    assert float(value) == pytest.approx(noise[0, 1], abs=float(bound) + 1e-8)
    assert series.aligned == pytest.approx(noise[0, 0], rel=1e-9)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("rule", [*POWERS, "gaussian", "softmax", entmax(2.0)])
def test_coefficients_are_those_of_a_law(rule, width):
    """A_0 = 1, none negative, and their sum comes up to ρ(1) from below."""
    degrees = (60, 120) if width == 1 else (12, 24)
    found = [angle_series(rule, 1.6, 0.4, width=width, n=300, degree=degree) for degree in degrees]
    for series in found:
        assert series.coefficients.flat[0] == pytest.approx(1.0, abs=1e-12)
        assert (series.coefficients >= 0).all()
        assert series.coefficients.sum() <= series.aligned * (1 + 1e-12)
    assert found[1].missing <= found[0].missing + 1e-12
    assert found[1].missing < 0.2 * (found[1].aligned - 1)


def test_two_angles_exchange_and_one_right_angle_leaves_the_other():
    series = angle_series("epanechnikov", 1.0, 0.5, width=2)
    np.testing.assert_allclose(series.coefficients, series.coefficients.T, atol=1e-12)
    line = angle_series("gaussian", 0.7, 0.5)
    plane = angle_series("gaussian", 0.7, 0.5, width=2)
    assert float(plane.overlap([0.6, 0.0])[0]) == pytest.approx(float(line.overlap([0.6])[0]))


def test_bound_holds_where_the_series_is_cut_early():
    whole, short = (angle_series("epanechnikov", 0.8, 0.5, degree=d) for d in (800, 20))
    for c in (0.5, 0.8, 0.95, 1.0):
        (value, rest), (less, bound) = whole.overlap([c]), short.overlap([c])
        assert -float(rest) <= float(value - less) <= float(bound) + float(rest)


test_out_of_range_is_one_line = refusals(
    [
        (lambda: angle_series("epanechnikov", 0.8, 1.01), "query_scale: got 1.01; allowed: <= 1"),
        (lambda: angle_series("gaussian", 0.5, 1.19), "query_scale"),
        (lambda: angle_series("softmax", 1.0, 0.8), "query_scale: got 0.8; allowed: < 0.707"),
        (lambda: angle_series("gaussian", 0.5, 0.5, width=3), "width: got 3"),
        (lambda: angle_series("cosine", 0.5, 0.5), "heads.kernel: got 'cosine'"),
        (lambda: angle_series(entmax(2.0), 1.0, 0.5), "n: got None"),
        (lambda: angle_series(FACTORIES["entmax"](nu=2), 1.0, 0.5, n=9), "heads.kernel"),
        (lambda: angle_series("gaussian", 0.0, 0.5), "bandwidth"),
        (lambda: angle_series("gaussian", 0.5, 0.5, degree=7), "degree: got 7"),
    ],
)


def test_at_the_edge_of_the_range_the_average_exists():
    """κ = 1 for compact kernels: parts fall like e^{−hz} only, and still add up."""
    series = angle_series("epanechnikov", 1.0, 1.0)
    near = angle_series("epanechnikov", 1.0, 0.999)
    assert series.aligned == pytest.approx(near.aligned, rel=0.02)
    assert series.aligned > near.aligned
