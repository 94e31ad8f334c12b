"""Collapse and growth: against plain softmax, against an integral of Frullani's, and limits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import integrate

from sims.theory.neighbours.collapse import (
    growth,
    late_rate,
    log_pull,
    near_collapse,
    normed_growth,
    simplex_ratios,
    spectral_ratio,
)
from sims.theory.neighbours.hidden import Simplex, simplex_log_sizes

pytestmark = pytest.mark.theory


def softmax(scores):
    kernel = np.exp(scores - scores.max(-1, keepdims=True))
    return kernel / kernel.sum(-1, keepdims=True)


def test_map_near_collapse_against_plain_attention():
    """Its error falls as ρ²; the residual itself as ρ³."""
    rng = np.random.default_rng(0)
    mean, r = rng.normal(size=4), rng.normal(size=(6, 4))
    r = (r - r.mean(0)) / np.linalg.norm(r)
    score, value = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    sizes, errors, lengths = (1e-1, 1e-2), [], []
    for size in sizes:
        x = mean + size * r
        after = softmax(x @ score @ x.T) @ x @ value
        after = after - after.mean(0)
        lengths.append(np.linalg.norm(after))
        law = near_collapse(mean, size * r, score, value)
        errors.append(np.linalg.norm(after - law) / np.linalg.norm(law))
    assert -np.log10(errors[1] / errors[0]) == pytest.approx(2, abs=0.15)
    assert -np.log10(lengths[1] / lengths[0]) == pytest.approx(3, abs=0.05)


def test_map_near_collapse_where_the_mean_prefers_some_keys():
    """A long mean token makes p far from 1/n while ``R M Rᵀ`` is small: Cov_p needs its mean."""
    rng = np.random.default_rng(0)
    mean, r = 1e4 * rng.normal(size=4), 1e-4 * rng.normal(size=(6, 4))
    score, value = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    r = r - r.mean(0)
    scores = (mean @ score @ r.T) + r @ score @ r.T  # without what is common to a row
    after = softmax(scores) @ r @ value
    law = near_collapse(mean, r, score, value)
    np.testing.assert_allclose(law, after - after.mean(0), rtol=0, atol=1e-3 * np.abs(law).max())


def simplex(n, m, a, extra=2):
    return np.hstack([a * (np.eye(n) - 1 / n), np.full((n, 1), m), np.zeros((n, extra))])


@pytest.mark.parametrize("w", [0.5, -0.4])
def test_simplex_ratios_against_normed_layers(w):
    n, scale, layers = 4, 0.9, 6
    x = simplex(n, 1.0, 0.8)
    found = [0.8]
    for _ in range(layers):
        x = x / np.linalg.norm(x, axis=1, keepdims=True) * 1.5
        x = x + softmax(scale * x @ x.T) @ x * w
        found.append(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x.mean(0)) / (n - 1) ** 0.5)
    law = simplex_ratios(0.8, scale, n, layers, w, size=1.5)
    np.testing.assert_allclose(np.abs(found), np.abs(law), rtol=1e-12)


def test_simplex_sizes_below_any_number():
    """By decimals through ten layers: log a is −10^4 and less; and scores of 10^4, where e^b is."""
    with localcontext() as context:
        context.prec = 60
        a, n, expected = Decimal("0.6"), 3, [np.log(0.6)]
        for _ in range(9):
            b = a * a
            raised = b.exp() - 1 if b > Decimal("1e-20") else b + b * b / 2
            a *= raised / (raised + n)
            expected.append(float(a.ln()))
    found = simplex_log_sizes(Simplex(3, 0.6, 1.0, 1.0), 9)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[-1] < -1e4
    assert -float(log_pull(np.log(40.0), 3)) == pytest.approx(3 * np.exp(-40.0), rel=1e-12, abs=0)


def test_late_rate_by_powers():
    """What is left of a vector after many layers; of a causal mask one half a layer."""
    place = np.arange(9)
    causal = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    for attention in (softmax(-0.4 * np.abs(place[:, None] - place)), causal):
        vector, lengths = np.random.default_rng(1).normal(size=9), []
        for _ in range(80):
            vector = attention @ (vector - vector.mean())
            lengths.append(np.linalg.norm(vector - vector.mean()))
        steps = np.diff(np.log(lengths[40:60]))
        assert steps[-1] == pytest.approx(late_rate(attention), rel=2e-3)
    assert late_rate(causal) == pytest.approx(-np.log(2), rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 32, 768])
@pytest.mark.parametrize("variance", [0.05, 0.25, 1.0, 4.0])
def test_growth_by_an_integral_of_the_laplace_transform(dimension, variance):
    """``E log Y = ∫ (e^{−t} − E e^{−tY})/t dt`` of ``Y = (σ²/d) χ′²_d(d/σ²)``."""

    def integrand(log_t):
        t = np.exp(log_t)
        u = variance / dimension * t
        transform = (1 + 2 * u) ** (-dimension / 2) * np.exp(-t / (1 + 2 * u))
        return np.exp(-t) - transform

    expected = integrate.quad(integrand, -40, 80, limit=800, points=[-10, 0, 5, 10])[0]
    assert growth(dimension, variance) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 3, 5, 64])
def test_growth_of_small_branches(dimension):
    """E log((1 + √v z)² + vχ²_{d−1}) = (d − 2)v − (d − 2)(d − 4)v²/2 + O(v³), v = σ²/d."""
    d = dimension
    for variance in (1e-10, 1e-6, 1e-4):
        v = variance / d
        series = (d - 2) * v - (d - 2) * (d - 4) * v**2 / 2
        assert growth(d, variance) == pytest.approx(series, rel=1e-10 + 10 * (d * v) ** 2)


def test_norm_takes_the_part_along_the_new_mean():
    """The mean share of a unit vector orthogonal to m that lies along m(I + W), by drawing both."""
    rng, d, variance = np.random.default_rng(2), 6, 0.5
    moved = rng.normal(size=(400_000, d)) * (variance / d) ** 0.5
    moved[:, 0] += 1
    share = np.mean(moved[:, 1] ** 2 / np.sum(moved**2, 1))
    law = normed_growth(d, variance) - growth(d, variance)
    assert law == pytest.approx(share, rel=0.12)


def test_spectral_ratio_of_iid_scores():
    n, s = 1024, 0.5
    a = softmax(s * np.random.default_rng(3).normal(size=(n, n)))
    first, second = np.linalg.svd(a, compute_uv=False)[:2]
    assert second / first == pytest.approx(spectral_ratio(n, s), rel=0.03)
