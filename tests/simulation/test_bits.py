"""The C++ random bits are those of JAX's own Threefry keys, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.normals import normal
from sims.problem import KERNELS
from sims.simulation.native import usable, with_native_bits


@pytest.fixture
def keys():
    if not usable(KERNELS["gaussian"], "cpu", np.inf):
        pytest.skip("no C++ compiler")
    plain = jax.random.split(jax.random.key(2**40 + 7), (2, 3))
    return plain, with_native_bits(plain)


@pytest.mark.parametrize("shape", [(), (15,), (16,), (17,), (100, 33)])
@pytest.mark.parametrize("draw", [jax.random.normal, jax.random.uniform, normal])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_draws_are_equal(keys, draw, precision, shape):
    plain, native = (draw(key[1, 2], shape, precision) for key in keys)
    np.testing.assert_array_equal(plain, native)


def test_many_keys_and_narrow_bits(keys):
    plain, native = (
        jax.vmap(jax.vmap(lambda key: jax.random.normal(key, (5, 3))))(k) for k in keys
    )
    np.testing.assert_array_equal(plain, native)
    plain, native = (jax.random.bits(k[0, 0], (9,), jnp.uint16) for k in keys)
    np.testing.assert_array_equal(plain, native)
