"""Sequences of dependent keys: their law, and what takes them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem import FRAMES, SEQUENCES, TARGETS, Heads, SequenceDesign, Task
from sims.problem.sequences import cumulate
from sims.simulation import estimate
from tests.by_hand import refused

SIGMA = np.array([[1.5, 0.4], [0.4, 0.7]])
ROOTS = [(0.0, 0.0), (0.8, 0.0), (0.6, 0.6), (0.9, -0.4)]
QUERIES = np.array([[0.3, -0.2]])
SAMPLE = eqx.filter_jit(lambda design, key, n, dtype=jnp.float64: design.sample(key, n, dtype))


@pytest.mark.parametrize("roots", ROOTS)
def test_contract(roots):
    """Shape and precision; more keys extend fewer."""
    design, key = SequenceDesign(SIGMA, roots), jax.random.key(5)
    sample = partial(SAMPLE, design, key)
    long = sample(300)
    assert long.shape == (300, 2)
    assert long.dtype == jnp.float64
    assert sample(7, jnp.float32).dtype == jnp.float32
    for n in (1, 2, 128):
        np.testing.assert_allclose(sample(n), long[:n], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("root", [0.99, -0.97, 0.3])
def test_cumulated_noise_is_that_of_a_plain_loop(root):
    """Over five blocks of 32 and a broken one, of which all before reach the last."""
    noise = np.random.default_rng(3).normal(size=(170, 2))
    expected = noise.copy()
    for t in range(1, len(noise)):
        expected[t] += root * expected[t - 1]
    found = cumulate(jnp.asarray(noise), jnp.asarray(root))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.theory
@pytest.mark.parametrize("roots", ROOTS)
def test_autocorrelation_from_the_spectrum(roots):
    """ρ from the density 1/|(1 − φ_1 z)(1 − φ_2 z)|² by a Fourier sum, and from draws.

    A covariance at each of four lags and three times, the second before the end of a block: 5
    standard errors, false alarms < 2e-4.
    """
    design = SequenceDesign(SIGMA, roots)
    z = np.exp(-2j * np.pi * np.arange(4096) / 4096)
    density = 1 / np.abs((1 - roots[0] * z) * (1 - roots[1] * z)) ** 2
    covariance = np.fft.ifft(density).real
    rho = design.autocorrelation(40)
    np.testing.assert_allclose(rho, covariance[:40] / covariance[0], rtol=1e-9, atol=1e-12)
    keys = jax.random.split(jax.random.key(1), 10_000)
    x = np.asarray(jax.vmap(lambda key: design.sample(key, 60))(keys))
    for at in (0, 29, 50):
        for lag in (0, 1, 2, 5):
            products = x[:, at, :, None] * x[:, at + lag, None]
            error = products.std(0) / len(x) ** 0.5
            assert (np.abs(products.mean(0) - rho[lag] * SIGMA) < 5 * error).all()


def test_kinds_in_files():
    rho = SEQUENCES["autoregressive"](2, 0.7).autocorrelation(5)
    np.testing.assert_allclose(rho, 0.7 ** np.arange(5), rtol=1e-13)
    eta, k = 0.05, np.arange(6)
    near = SEQUENCES["smooth"](2, np.exp(-eta)).autocorrelation(6)
    np.testing.assert_allclose(near, (1 + eta * k) * np.exp(-eta * k), atol=2 * eta**3)
    np.testing.assert_allclose(SEQUENCES["smooth"](2, 0.5, scale=2.0).covariance, 4 * np.eye(2))


@pytest.mark.parametrize("roots", [(1.0, 0.0), (0.5,), (0.0, -1.2)])
def test_roots_that_are_none(roots):
    with refused("roots"):
        SequenceDesign(SIGMA, roots)


def test_what_simulation_refuses():
    """A sequence beyond a block of draws would be cut; the control variate needs iid keys."""
    task = Task(SEQUENCES["smooth"](2, 0.5), TARGETS["rbf"](2), 0.5)
    heads = Heads(FRAMES["equiangular"](2, 1, 1, angle=0), "gaussian", 1.0)
    for problem, options in (((task, 5000), {}), ((task, 50), {"control_variate": True})):
        own, n = problem
        with refused(r"sequence|dependent"):
            estimate(own, heads, n, QUERIES, 0, batches=2, **options)
