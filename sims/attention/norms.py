"""Normalisation of tokens one by one: LayerNorm and RMSNorm, with their constant inside the root.

Both act on the last dimension, the d features of a token, and leave all others alone. Arrays are
NumPy's or JAX's, and so are the results.
"""

from typing import Any

Numbers = Any
"""An array of floats of either library, or a number."""


def layer_norm(
    tokens: Numbers, scale: Numbers = 1.0, shift: Numbers = 0.0, epsilon: float = 0.0
) -> Numbers:
    """``γ ⊙ (x − x̄)/√(var x + ε) + β``, with mean and variance over the token's own d features.

    Args:
        tokens: x, of shape (…, d).
        scale: γ, a number or (d,).
        shift: β, a number or (d,).
        epsilon: ε ≥ 0. With 0 a token of equal features has no LayerNorm: it becomes NaN.
    """
    centred = tokens - tokens.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / (variance + epsilon) ** 0.5 * scale + shift


def rms_norm(tokens: Numbers, scale: Numbers = 1.0, epsilon: float = 0.0) -> Numbers:
    """``γ ⊙ x/√(‖x‖²/d + ε)``: LayerNorm without its centring and its shift.

    Args:
        tokens: x, of shape (…, d).
        scale: γ, a number or (d,).
        epsilon: ε ≥ 0. With 0 a token of zeros becomes NaN.
    """
    return tokens / ((tokens**2).mean(-1, keepdims=True) + epsilon) ** 0.5 * scale
