"""Redundant views averaged over targets and queries, against quadrature of first-order theory."""

import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import Heads, Task, TrigonometricSeries, redundant_views
from sims.theory import SplitTerms, predict, view_terms
from sims.theory.first_order.views import matern_mixture
from tests.by_hand import normal_rule, refusals
from tests.theory.first_order.averages import averages, parts_of

pytestmark = pytest.mark.theory
NOISE, SCALE, RELEVANCE = 0.5, 0.45, np.array([0.7, 0.3])
OPTIONS = {"noise": NOISE, "relevance": RELEVANCE, "query_scale": SCALE}


def rows_of(limit, ratio, signal, noise):
    """Terms of two heads, of which the first one's own are taken."""
    return (
        limit[:, 0] ** 2,
        limit[:, 0] * limit[:, 1],
        limit[:, 0] * ratio[:, 0],
        limit[:, 1] * ratio[:, 0],
        ratio[:, 0] ** 2,
        ratio[:, 0] * ratio[:, 1],
        signal[:, 0, 0],
        signal[:, 0, 1],
        noise[:, 0, 0],
        noise[:, 0, 1],
    )


@pytest.mark.parametrize(
    ("width", "bandwidth", "kernel"),
    [
        (1, 0.6, "gaussian"),
        (2, 0.6, "gaussian"),
        (2, 1.3, "gaussian"),
        (1, 1.3, "softmax"),
        (2, 1.5, "softmax"),
    ],
)
def test_terms_by_quadrature(width, bandwidth, kernel):
    design, frames = redundant_views(2, 2, width, NOISE)
    nodes, weights = normal_rule(24, 2)
    queries, frequencies = (
        (jnp.pad(scale * nodes, ((0, 0), (0, 2 * width))), weights)
        for scale in (SCALE, RELEVANCE**0.5)
    )
    expected = averages(rows_of, design, Heads(frames, kernel, bandwidth), queries, frequencies)
    closed = view_terms(width, bandwidth, kernel=kernel, **OPTIONS)
    for name, value, brute in zip(SplitTerms._fields, closed, expected, strict=True):
        assert float(value) == pytest.approx(float(brute), rel=2e-6, abs=1e-9), name


def test_nothing_seen():
    """Heads that see nothing estimate the mean 0 of the target: error 1, no n_eff lost."""
    terms = view_terms(0, 0.7, **OPTIONS)
    blank = float(np.prod((1 + 2 * RELEVANCE) ** -0.5))
    at_query = float(np.prod((1 + RELEVANCE * (1 + SCALE**2)) ** -0.5))
    assert float(terms.limit_squared) == pytest.approx(1 + blank - 2 * at_query)
    assert float(terms.noise_variance) == float(terms.noise_covariance) == 1.0


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_widths_and_bandwidths_broadcast(kernel):
    widths, bandwidths = np.arange(3)[:, None], np.array([1.3, 1.6])
    table = view_terms(widths, bandwidths, nu=0.5, kernel=kernel, **OPTIONS)
    for (row, column), _ in np.ndenumerate(table.noise_variance):
        one = view_terms(row, bandwidths[column], nu=0.5, kernel=kernel, **OPTIONS)
        np.testing.assert_allclose([part[row, column] for part in table], one, rtol=1e-12)


def test_error_is_that_of_any_number_of_heads():
    """One pair gives the error of three heads; one wave, two queries."""
    target = TrigonometricSeries([1.3], [[0.9, 0.4]], [0.3])
    queries = np.array([[0.3, -0.5], [0.1, 0.8]])

    def problem(count):
        law, frames = redundant_views(2, count, 2, NOISE)
        points = np.pad(queries, ((0, 0), (0, 2 * count)))
        return Task(law, target.padded(2 * count), 1.0), Heads(frames, "gaussian", 0.8), points

    pair = SplitTerms(*(row.mean() for row in rows_of(*parts_of(*problem(2)))))
    for count, n in ((1, 50), (3, 50), (3, 800)):
        task, heads, at = problem(count)
        noisy = Task(task.design, task.target, 0.7)
        expected = float(predict(noisy, heads, n, at)["mse"])
        assert float(pair.error(float(n), count, 0.7)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 4.0])
def test_mixture_is_the_matern_covariance(distance):
    """ν = 1/2: exp(−δ); ν = 3/2: (1 + √3 δ) exp(−√3 δ)."""
    for nu, expected in (
        (0.5, np.exp(-distance)),
        (1.5, (1 + 3**0.5 * distance) * np.exp(-(3**0.5) * distance)),
    ):
        scales, weights = matern_mixture(nu)
        covariance = weights @ np.exp(-0.5 * distance**2 * scales)
        assert covariance == pytest.approx(expected, abs=2e-6)


test_bad_input = refusals(
    [
        ({"width": 3}, "width"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"noise": -1.0}, "noise"),
        ({"query_scale": 0.8}, "query_scale"),
        # Finite at this scale for b² > 2 κ √(1 + τ²), which is 1.006.
        ({"bandwidth": [2.0, 1.0], "kernel": "softmax"}, "query_scale"),
        ({"kernel": "laplace"}, "kernel"),
        ({"nu": 0.0}, "nu"),
        ({"relevance": [-1.0, 1.0]}, "relevance"),
    ],
    lambda change: view_terms(**{"width": 1, "bandwidth": 0.5, **OPTIONS, **change}),
)
