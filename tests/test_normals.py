"""The law of the normal draws: by enumeration, by SciPy's quantile, by moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri

from sims.normals import normal, quantile


def drawn(mass: np.ndarray, negative: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Draws whose bits say that this mass, in units of 2⁻⁵⁶, lies beyond; and what they should be.

    A unit is the last of the 24 bits. The last eight bits of 64, which are not used, are ones.
    """
    mass = np.asarray(mass, np.uint64)
    bits = (mass >> np.uint64(24)) << np.uint64(32) | (mass & np.uint64(2**24 - 1)) << np.uint64(8)
    bits |= np.uint64(255) | np.uint64(negative) << np.uint64(63)
    expected = ndtri((mass.astype(float) + 0.5) * 2.0**-56)
    return np.asarray(quantile(bits)), expected if negative else -expected


@pytest.mark.parametrize("negative", [False, True])
def test_the_quantile_is_scipys(negative):
    """Within units of rounding of single precision, to the ends and where the two fits meet."""
    small = np.geomspace(2000, 2**54, 300_000).astype(np.uint64)
    middle = np.uint64(2**55 - 1) - np.geomspace(1, 2**50, 500).astype(np.uint64)
    mass = np.concatenate([np.arange(2000, dtype=np.uint64), small, middle])
    got, expected = drawn(mass, negative)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=1e-7)
    assert np.abs(got).max() == pytest.approx(8.5, abs=0.05)


@pytest.mark.parametrize("c", [1.0, 2.0, 3.0, 4.0])
def test_the_tails_are_those_of_the_law(c):
    """``E e^{cZ} = e^{c²/2}``.

    The masses in between are counted in ever longer runs, each at its middle.
    """
    edges = np.unique(np.geomspace(64, 2**55, 400_000).astype(np.uint64))
    mass = np.concatenate([np.arange(64, dtype=np.uint64), edges[:-1] + np.diff(edges) // 2])
    counts = np.concatenate([np.ones(64), np.diff(edges)])
    z = drawn(mass)[0].astype(float)
    mean = ((np.exp(c * z) + np.exp(-c * z)) * counts).sum() * 2.0**-56
    assert mean == pytest.approx(np.exp(c * c / 2), rel=1e-5)


def test_what_the_tails_of_jaxs_draws_lack():
    """All 2²³ values of ``jax.random.normal`` in float32: their ends, and ``E e^{cZ}``."""
    bits = np.arange(2**23, dtype=np.uint32)
    unit = (bits | np.float32(1).view(np.uint32)).view(np.float32) - np.float32(1)
    low = np.nextafter(np.float32(-1), np.float32(0))
    uniform = np.maximum(low, unit * (np.float32(1) - low) + low)
    z = np.asarray(np.float32(2**0.5) * jax.lax.erf_inv(uniform))
    key = jax.random.key(6)
    at = np.asarray(jax.random.bits(key, (1000,), jnp.uint32)) >> 9
    np.testing.assert_array_equal(jax.random.normal(key, (1000,), jnp.float32), z[at])
    assert (z.min(), z.max()) == pytest.approx((-5.42, 5.22), abs=0.005)
    lacking = {c: np.exp(c * z.astype(float) - c * c / 2).mean() - 1 for c in (3, 4, -3, -4)}
    assert lacking == pytest.approx({3: -0.00854, 4: -0.08432, -3: 0.00183, -4: -0.00876}, abs=2e-5)


def test_draws_are_quantiles_of_the_keys_bits():
    """One bit of 64 is the sign, the next 55 the mass beyond; fewer rows are the first ones."""
    key = jax.random.key(3)
    bits = np.asarray(jax.random.bits(key, (500, 3), jnp.uint64)).astype(object)
    mass = np.array(bits % 2**63 // 2**8, float)
    expected = np.where(bits // 2**63 == 1, 1, -1) * ndtri((mass + 0.5) * 2.0**-56)
    got = normal(key, (500, 3), "float32")
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=1e-7)
    np.testing.assert_array_equal(normal(key, (20, 3), "float32"), got[:20])


def test_double_precision_is_jaxs():
    key = jax.random.key(4)
    expected = jax.random.normal(key, (50,), jnp.float64)
    np.testing.assert_array_equal(normal(key, (50,), jnp.float64), expected)


def test_moments_of_draws():
    """Each within five of its standard errors: a false alarm in 1.7 million for each of six."""
    count = 2_000_000
    z = np.asarray(normal(jax.random.key(5), (count,), "float32"), float)
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) < 5 * (variance / count) ** 0.5
    for side in (z, -z):
        tail = np.exp(log_ndtr(-4.0))
        assert abs((side > 4).mean() - tail) < 5 * (tail / count) ** 0.5
