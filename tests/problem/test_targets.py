"""Targets: values, reproducibility, variance, and the waves that their names promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma, kv

from sims.problem import TARGETS, TrigonometricSeries
from tests.by_hand import refusals

EXAMPLES = {
    "explicit": {
        "amplitude": [1.0, -0.5],
        "frequency": [[1.0, 0.0, 2.0], [0.3, -1.0, 0.0]],
        "phase": [0.1, 2.0],
    },
    "holder": {"beta": 0.7, "levels": 4},
    "matern": {"features": 4096},
}
"""Options of targets that have required ones, or telling ones; a new target needs no entry here."""
SEEDLESS = {"constant", "explicit"}
UNIT_VARIANCE = ("matern", "rbf", "decaying")


def make(name, seed=0):
    return TARGETS[name](3, seed, **EXAMPLES.get(name, {}))


@pytest.mark.parametrize("name", TARGETS)
def test_contract(name):
    """The value is the plain sum, at any batch shape; reproducible, and the seed's own."""
    m = make(name)
    assert m.dimension == 3
    a, w, c = (np.asarray(v) for v in (m.amplitude, m.frequency, m.phase))
    x = np.random.default_rng(0).normal(size=(4, 5, 3))
    plain = np.sum(a * np.cos(np.einsum("...d,jd->...j", x, w) + c), axis=-1)
    np.testing.assert_allclose(m.values(x), plain, rtol=1e-11, atol=1e-12)
    values = jax.jit(lambda x: m(x))
    np.testing.assert_allclose(values(x), plain, rtol=1e-11, atol=1e-12)
    single = values(x[0, 0].astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, plain[0, 0], atol=1e-4 * np.abs(a).sum())
    np.testing.assert_array_equal(make(name).phase, m.phase)
    np.testing.assert_array_equal(make(name).frequency, m.frequency)
    if name not in SEEDLESS:
        other = make(name, seed=1)
        assert not np.allclose(other.phase, m.phase)
        assert not np.allclose(other.frequency, m.frequency)
        phases = np.concatenate([make(name, seed).phase for seed in range(30)])
        assert ((phases >= 0) & (phases < 2 * np.pi)).all()
        assert abs(np.exp(1j * phases).mean()) < 5 / np.sqrt(len(phases))
    if name in UNIT_VARIANCE:
        # Over uniform phases, Var m(x) = Σ a²/2 exactly, at every x and for all frequencies.
        np.testing.assert_allclose(np.sum(a**2) / 2, 1, rtol=1e-14)
        options = EXAMPLES.get(name, {})
        wide = TARGETS[name](3, lengthscale=2.5, **options)
        np.testing.assert_allclose(wide.frequency * 2.5, w, rtol=1e-12)


def frequencies(name, **options):
    """Many draws of ω; all families and seeds here share one compiled shape."""
    draws = [TARGETS[name](3, seed, features=4096, **options).frequency for seed in range(8)]
    return np.concatenate(draws)


def matern_kernel(r, nu, lengthscale):
    scaled = np.sqrt(2 * nu) * r / lengthscale
    return 2 ** (1 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)


@pytest.mark.theory
@pytest.mark.parametrize(
    ("name", "options", "covariance"),
    [
        ("matern", {"nu": 0.5}, lambda r: matern_kernel(r, 0.5, 0.7)),
        ("matern", {"nu": 1.5}, lambda r: matern_kernel(r, 1.5, 0.7)),
        ("rbf", {}, lambda r: np.exp(-(r**2) / (2 * 0.49))),
    ],
)
def test_spectra_give_the_covariances_of_their_names(name, options, covariance):
    """E cos(ω·r) over the spectral law is the covariance at lag r (Bochner); 5 standard errors."""
    w = frequencies(name, lengthscale=0.7, **options)
    for r in (0.2, 0.7, 1.5):
        values = np.cos(w @ np.array([0.6 * r, 0.8 * r, 0.0]))
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - covariance(r)) < 5 * error


def test_holder_series():
    """Amplitudes and lengths of its waves; directions uniform, of mean 0 and E uuᵀ = I/3."""
    m, scale = make("holder"), 2.0 ** np.arange(5)
    np.testing.assert_allclose(m.amplitude, scale**-0.7, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(m.frequency, axis=1), scale, rtol=1e-14)
    waves = np.concatenate([TARGETS["holder"](3, seed, levels=9).frequency for seed in range(60)])
    u = waves / np.linalg.norm(waves, axis=1, keepdims=True)
    assert np.abs(u.mean(0)).max() < 5 / np.sqrt(3 * len(u))
    assert np.abs(u.T @ u / len(u) - np.eye(3) / 3).max() < 5 * np.sqrt(4 / 45 / len(u))


@pytest.mark.theory
def test_decaying_relevance():
    """E ω_j² = e^{−αj}/ℓ²; 5 standard errors."""
    w = frequencies("decaying", alpha=0.8, lengthscale=2.0)
    expected = np.exp(-0.8 * np.arange(3)) / 4
    error = expected * np.sqrt(2 / len(w))
    assert np.abs((np.mean(w**2, axis=0) - expected) / error).max() < 5


def test_constant_part():
    """Of waves with ω = 0 alone: a mean over a large box of points comes near it."""
    m = TrigonometricSeries([2.0, 5.0, 3.0], [[0, 0], [0, 4.0], [0, 0]], [0.5, 0.1, np.pi])
    assert m.constant == pytest.approx(2 * np.cos(0.5) - 3)
    x = np.random.default_rng(0).normal(size=(9, 2))
    rest = m.without_constant()
    np.testing.assert_allclose(rest(x), m(x) - m.constant, rtol=0, atol=1e-12)
    assert rest.constant == 0
    assert TARGETS["constant"](3, value=-2.0).constant == -2.0
    moving = TARGETS["rbf"](2)
    assert moving.without_constant() is moving


test_bad_input_is_named = refusals(
    [
        (lambda: TARGETS["holder"](3, beta=0.0), "target.beta: got 0.0; allowed: finite and > 0"),
        (lambda: TARGETS["matern"](3, nu=-1.0), "target.nu: got -1.0"),
        (lambda: TARGETS["rbf"](3, seed=2**64), "target.seed: got 18446744073709551616"),
        (lambda: TARGETS["constant"](3, value=float("nan")), "target.amplitude"),
        (lambda: TrigonometricSeries([], np.zeros((0, 2)), []), r"target.frequency: got \(0, 2\)"),
        (lambda: TrigonometricSeries([1.0], [[1.0]], [0.0, 1.0]), r"target.phase: got \(2,\)"),
        (lambda: TARGETS["explicit"](2, **EXAMPLES["explicit"]), r"target.frequency: got \(2, 3\)"),
    ],
)
