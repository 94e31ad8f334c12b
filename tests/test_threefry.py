"""Set-up draws are JAX's own: keys, bits and uniforms bit for bit, the rest to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.base import threefry

SEEDS = (0, 7, 2**40 + 5, 2**63 - 1)


@pytest.fixture(params=SEEDS)
def keys(request):
    return jax.random.key(request.param, impl="threefry2x32"), threefry.root(request.param)


def test_keys_and_uniforms_are_equal(keys):
    theirs, ours = keys
    assert np.array_equal(jax.random.key_data(theirs), ours)
    assert np.array_equal(jax.random.key_data(jax.random.split(theirs, 5)), threefry.split(ours, 5))
    for number in (0, 12345, 2**32 - 1):
        folded = jax.random.key_data(jax.random.fold_in(theirs, number))
        assert np.array_equal(folded, threefry.fold_in(ours, number))
    for shape in ((), (7,), (40, 3)):
        drawn = jax.random.uniform(theirs, shape, jnp.float64)
        assert np.array_equal(drawn, threefry.uniform(ours, shape))


def test_many_keys_at_once(keys):
    _, ours = keys
    many = threefry.fold_in(ours, np.arange(3))
    for draw in (threefry.split, threefry.uniform, threefry.normal):
        assert np.array_equal(draw(many), [draw(key) for key in many])


def test_other_laws_agree_to_rounding(keys):
    theirs, ours = keys
    close = {"rtol": 1e-12, "atol": 1e-12}
    normals = jax.random.normal(theirs, (3000, 3), jnp.float64)
    np.testing.assert_allclose(threefry.normal(ours, (3000, 3)), normals, **close)
    for parameter in (0.2, 0.5, 1.0, 1.5, 7.0):
        gammas = jax.random.gamma(theirs, parameter, (3000,), jnp.float64)
        np.testing.assert_allclose(threefry.gamma(ours, parameter, 3000), gammas, **close)
    turn = jax.random.orthogonal(theirs, 6, dtype=jnp.float64)
    np.testing.assert_allclose(threefry.orthogonal(ours, 6, 6), turn, **close)
