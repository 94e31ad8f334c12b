"""Redundant views averaged over targets and queries, against quadrature of first-order theory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import Heads, Task, TrigonometricSeries, redundant_views
from sims.theory import ViewTerms, first_order_arrays, predict, view_terms
from sims.theory.first_order.views import matern_mixture
from tests.by_hand import refused

pytestmark = pytest.mark.theory
NOISE, SCALE, RELEVANCE = 0.5, 0.45, np.array([0.7, 0.3])
OPTIONS = {"noise": NOISE, "relevance": RELEVANCE, "query_scale": SCALE}


def grid(size):
    """Nodes (size², 2) and weights of a standard normal in the plane."""
    x, w = np.polynomial.hermite_e.hermegauss(size)
    nodes = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    return nodes, np.outer(w, w).ravel() / (2 * np.pi)


def by_quadrature(width, bandwidth, kernel):
    """The terms from ``first_order_arrays``, waves in both phases, over frequencies and queries."""
    law, frames = redundant_views(2, 2, width, NOISE)
    heads = Heads(frames, kernel, bandwidth)
    pad = ((0, 0), (0, 2 * width))
    at, query_weight = grid(24)
    queries = jnp.pad(SCALE * at, pad)
    frequency, wave_weight = grid(24)
    frequency = jnp.pad(frequency * np.sqrt(RELEVANCE), pad)

    def one(frequency, phase):
        target = TrigonometricSeries([2**0.5], frequency[None], phase[None])
        arrays = first_order_arrays(Task(law, target, 1.0), heads, 1.0, queries)
        limit = arrays.limit[:, 0] - target(queries)
        ratio = arrays.bias[:, 0] - limit
        signal, noise = arrays.signal_covariance, arrays.noise_covariance
        rows = (
            limit**2,
            limit * ratio,
            ratio**2,
            signal[:, 0, 0],
            signal[:, 0, 1],
            noise[:, 0, 0],
            noise[:, 0, 1],
        )
        return jnp.stack(rows) @ query_weight

    over = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    averages = over(frequency, jnp.array([0.0, -jnp.pi / 2])).mean(1)
    return ViewTerms(*(wave_weight @ averages))


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
    closed = view_terms(width, bandwidth, kernel=kernel, **OPTIONS)
    for name, value, expected in zip(
        ViewTerms._fields, closed, by_quadrature(width, bandwidth, kernel), strict=True
    ):
        assert float(value) == pytest.approx(float(expected), rel=2e-6, abs=1e-9), name


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
        extra = ((0, 0), (0, 2 * count))
        padded = TrigonometricSeries(
            target.amplitude, jnp.pad(target.frequency, extra), target.phase
        )
        return Task(law, padded, 0.7), Heads(frames, "gaussian", 0.8), np.pad(queries, extra)

    task, heads, at = problem(2)
    one = first_order_arrays(task, heads, 1.0, at)
    limit = one.limit[:, 0] - task.target(at)
    ratio = one.bias[:, 0] - limit
    rows = (
        limit**2,
        limit * ratio,
        ratio**2,
        one.signal_covariance[:, 0, 0],
        one.signal_covariance[:, 0, 1],
        one.noise_covariance[:, 0, 0] / 0.49,
        one.noise_covariance[:, 0, 1] / 0.49,
    )
    pair = ViewTerms(*(row.mean() for row in rows))
    for count, n in ((1, 50), (3, 50), (3, 800)):
        task, heads, at = problem(count)
        expected = float(predict(task, heads, n, at)["mse"])
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


@pytest.mark.parametrize(
    ("change", "field"),
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
)
def test_bad_input(change, field):
    with refused(field):
        view_terms(**{"width": 1, "bandwidth": 0.5, **OPTIONS, **change})
