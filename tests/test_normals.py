"""The law of the normal draws: SciPy's quantile at the bits of a key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtri

from sims.problem.normals import normal, quantile


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
    small = np.geomspace(2000, 2**54, 30_000).astype(np.uint64)
    middle = np.uint64(2**55 - 1) - np.geomspace(1, 2**50, 500).astype(np.uint64)
    mass = np.concatenate([np.arange(2000, dtype=np.uint64), small, middle])
    got, expected = drawn(mass, negative)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=1e-7)
    assert np.abs(got).max() == pytest.approx(8.5, abs=0.05)


def test_draws_are_quantiles_of_the_keys_bits():
    """One bit of 64 is the sign, the next 55 the mass beyond; fewer rows are the first ones."""
    key = jax.random.key(3)
    bits = np.asarray(jax.random.bits(key, (500, 3), jnp.uint64)).astype(object)
    mass = np.array(bits % 2**63 // 2**8, float)
    expected = np.where(bits // 2**63 == 1, 1, -1) * ndtri((mass + 0.5) * 2.0**-56)
    draw = jax.jit(normal, static_argnums=(1, 2))
    got = np.asarray(draw(key, (500, 3), "float32"))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=5e-7, atol=1e-7)
    np.testing.assert_array_equal(draw(key, (20, 3), "float32"), got[:20])


def test_double_precision_is_jaxs():
    key = jax.random.key(4)
    expected = jax.random.normal(key, (50,), jnp.float64)
    np.testing.assert_array_equal(normal(key, (50,), jnp.float64), expected)
