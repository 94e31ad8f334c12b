"""Collapse and growth: against plain softmax, against an integral of Frullani's, and limits."""

import numpy as np
import pytest
from scipy import integrate
from scipy.special import softmax

from sims.theory.neighbours.collapse import growth, late_rate, norm_rate

pytestmark = pytest.mark.theory


def test_late_rate_by_powers():
    """What is left of a vector after many layers; of a causal mask one half a layer."""
    place = np.arange(9)
    causal = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    for attention in (softmax(-0.4 * np.abs(place[:, None] - place), axis=1), causal):
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


def test_norm_takes_the_sine_after_two_maps():
    """Of two orthogonal vectors, through 5 dimensions into 9."""
    rng = np.random.default_rng(3)
    pair = rng.normal(size=(200_000, 2, 5)) @ rng.normal(size=(200_000, 5, 9))
    mean, apart = pair[:, 0], pair[:, 1]
    cosine = np.sum(mean * apart, 1) / np.linalg.norm(mean, axis=1) / np.linalg.norm(apart, axis=1)
    assert np.mean(np.log(1 - cosine**2)) / 2 == pytest.approx(norm_rate(5, 9), rel=0.02)
