"""LayerNorm against Equinox's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sims.attention.attention import layer_norm

N, D = 7, 12


def test_layer_norm_is_equinox_layer_norm():
    x = np.random.default_rng(0).normal(size=(N, D)) + 0.3
    layer = eqx.nn.LayerNorm(D, eps=0.01, use_weight=False, use_bias=False, dtype=jnp.float64)
    np.testing.assert_allclose(layer_norm(x, 0.01), jax.vmap(layer)(x), rtol=1e-12, atol=1e-12)
    with np.errstate(invalid="ignore"):
        assert np.isnan(layer_norm(np.ones((1, 4)))).all()
