"""Disjoint blocks averaged over targets and queries, against quadrature of first-order theory."""

import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import DESIGNS, Heads
from sims.theory import SplitTerms, block_terms, view_terms
from tests.by_hand import normal_rule, refusals
from tests.theory.first_order.averages import averages

pytestmark = pytest.mark.theory
SCALE, BANDWIDTH, RELEVANCE, N, NOISE_SD = 0.3, 0.9, 0.12, 40.0, 0.7
OPTIONS = {"dimension": 3, "relevance": RELEVANCE, "query_scale": SCALE}


def rows_of(limit, ratio, signal, noise):
    """Terms of three heads of one coordinate each, and the error of their average."""
    whole = jnp.mean(limit + ratio / N, 1) ** 2
    whole += jnp.mean(signal + NOISE_SD**2 * noise, (1, 2)) / N
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
        whole,
    )


@pytest.mark.parametrize(("kernel", "bandwidth"), [("gaussian", BANDWIDTH), ("softmax", 1.2)])
def test_terms_by_quadrature(kernel, bandwidth):
    z, weight = normal_rule(7, 3)
    at, query_weight = normal_rule(11, 3)
    heads = Heads(np.eye(3)[:, :, None], kernel, bandwidth)
    *expected, whole = averages(
        rows_of,
        DESIGNS["isotropic"](3),
        heads,
        (jnp.asarray(SCALE * at), query_weight),
        (jnp.asarray(RELEVANCE**0.5 * z), weight),
    )
    closed = block_terms(1, bandwidth, kernel=kernel, **OPTIONS)
    for name, value, brute in zip(SplitTerms._fields, closed, expected, strict=True):
        assert float(value) == pytest.approx(brute, rel=2e-5, abs=1e-7), name
    assert float(closed.noise_covariance) == pytest.approx(1.0)
    assert float(closed.error(N, 3, NOISE_SD)) == pytest.approx(whole, rel=2e-5)


def test_one_head_needs_no_pair():
    """A head that sees everything: no room for a second one, and none needed."""
    terms = block_terms(np.array([1, 2, 3]), BANDWIDTH, **OPTIONS)
    assert np.isnan(terms.error(N, np.array([3, 1.5, 3]), 1.0)).tolist() == [False, True, True]
    own = terms.limit_squared + 2 * terms.limit_ratio / N + terms.ratio_squared / N**2
    own += (terms.signal_variance + terms.noise_variance) / N
    assert terms.error(N, 1, 1.0) == pytest.approx(own)
    assert terms.variance(N, 2, 2.0)[0] - terms.variance(N, 2, 0.0)[0] == pytest.approx(
        4 * terms.noise(N, 2)[0]
    )


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("width", [2, 3])
def test_one_head_is_a_clear_view(width, kernel):
    """A head is a redundant view without noise, also where two blocks do not fit."""
    block = block_terms(width, BANDWIDTH, nu=0.5, kernel=kernel, **OPTIONS)
    view = view_terms(
        width,
        BANDWIDTH,
        noise=0.0,
        relevance=np.full(3, RELEVANCE),
        query_scale=SCALE,
        nu=0.5,
        kernel=kernel,
    )
    for name in (
        "limit_squared",
        "limit_ratio",
        "ratio_squared",
        "signal_variance",
        "noise_variance",
    ):
        assert float(getattr(block, name)) == pytest.approx(float(getattr(view, name))), name


def test_matern_is_a_mixture():
    """Against a Laplace rule over g of squared-exponential terms, ν = 1."""
    rough = block_terms(1, BANDWIDTH, nu=1.0, **OPTIONS)
    t = np.arange(-14, 4, 0.1)
    weight = np.exp(t - np.exp(t)) * 0.1
    for name in ("limit_squared", "limit_product", "signal_covariance"):
        mixed = sum(
            w * getattr(block_terms(1, BANDWIDTH, **OPTIONS | {"relevance": RELEVANCE / g}), name)
            for g, w in zip(np.exp(t), weight / weight.sum(), strict=True)
        )
        assert float(getattr(rough, name)) == pytest.approx(float(mixed), abs=2e-5), name


test_bad_input = refusals(
    [
        ({"width": 4}, "width"),
        ({"width": 0}, "width"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"query_scale": 0.8}, "query_scale"),
        ({"kernel": "softmax"}, "query_scale"),  # finite for b² > 2 κ = 0.6
        ({"relevance": -1.0}, "relevance"),
        ({"nu": 0.0}, "nu"),
    ],
    lambda change: block_terms(**{"width": 1, "bandwidth": 0.5, **OPTIONS, **change}),
)
