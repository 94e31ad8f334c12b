"""The C++ random bits are those of JAX's own Threefry keys, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.problem.normals import normal
from sims.simulation.native import with_native_bits, with_quick_bits


@pytest.fixture
def keys(compiler):
    plain = jax.random.split(jax.random.key(2**40 + 7), (2, 3))
    return plain, with_native_bits(plain)


@pytest.mark.parametrize("draw", [jax.random.normal, jax.random.uniform, normal])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_draws_are_equal(keys, draw, precision):
    shapes = (), (15,), (100, 33)
    drawn = jax.jit(lambda key: [draw(key[1, 2], shape, precision) for shape in shapes])
    for plain, native in zip(*map(drawn, keys), strict=True):
        np.testing.assert_array_equal(plain, native)


def test_many_keys_and_narrow_bits(keys):
    drawn = jax.jit(jax.vmap(jax.vmap(lambda key: jax.random.normal(key, (5, 3)))))
    plain, native = map(drawn, keys)
    np.testing.assert_array_equal(plain, native)
    plain, native = (jax.random.bits(k[0, 0], (9,), jnp.uint16) for k in keys)
    np.testing.assert_array_equal(plain, native)


@pytest.mark.parametrize(("setting", "of"), [("1", 1), ("0", 0)])
def test_quick_bits_are_native_where_they_can_be(keys, monkeypatch, setting, of):
    """And the same in any case: a seed names its draws, whoever makes them."""
    monkeypatch.setenv("SIMS_NATIVE", setting)
    quick = with_quick_bits(keys[0][0, 1])
    assert jax.random.key_impl(quick) == jax.random.key_impl(keys[of])
    drawn, again = (jax.random.normal(jax.random.split(k)[1], (7,)) for k in (quick, keys[0][0, 1]))
    np.testing.assert_array_equal(drawn, again)
