"""Normalisation of tokens one by one: LayerNorm and RMSNorm, with their constant inside the root.

Both act on the last dimension, the d features of a token, and leave all others alone.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike


def layer_norm(
    tokens: ArrayLike, scale: ArrayLike = 1.0, shift: ArrayLike = 0.0, epsilon: float = 0.0
) -> Float[Array, "... d"]:
    """``γ ⊙ (x − x̄)/√(var x + ε) + β``, with mean and variance over the token's own d features.

    Args:
        tokens: x, of shape (…, d).
        scale: γ, a number or (d,).
        shift: β, a number or (d,).
        epsilon: ε ≥ 0. With 0 a token of equal features has no LayerNorm: it becomes NaN.
    """
    x = jnp.asarray(tokens)
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + epsilon) * jnp.asarray(scale) + jnp.asarray(shift)


def rms_norm(
    tokens: ArrayLike, scale: ArrayLike = 1.0, epsilon: float = 0.0
) -> Float[Array, "... d"]:
    """``γ ⊙ x/√(‖x‖²/d + ε)``: LayerNorm without its centring and its shift.

    Args:
        tokens: x, of shape (…, d).
        scale: γ, a number or (d,).
        epsilon: ε ≥ 0. With 0 a token of zeros becomes NaN.
    """
    x = jnp.asarray(tokens)
    square = jnp.mean(x**2, axis=-1, keepdims=True)
    return x / jnp.sqrt(square + epsilon) * jnp.asarray(scale)
