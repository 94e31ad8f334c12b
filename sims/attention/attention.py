"""Parts of every attention layer: softmax, a causal mask and LayerNorm.

Arrays are NumPy's, because small layers would spend most of their time compiling. Additional
leading dimensions stand for many layers.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


class HeadMatrices(NamedTuple):
    """Matrices of H heads.

    Attributes:
        query: W_Q, (…, H, d, d_k).
        key: W_K, (…, H, d, d_k).
        value: W_V, (…, H, d, d_v).
        output: W_O by heads, (…, H, d_v, d): the rows of the output matrix for each head.
    """

    query: Array
    key: Array
    value: Array
    output: Array


def causal_mask(count: int) -> Bool[Array, "n n"]:
    """True where row i may attend to column j: j ≤ i."""
    return np.tri(count, dtype=bool)


def distance_bias(count: int, slope: float) -> Float[Array, "n n"]:
    """``−slope·|i − j|``, a score bias by relative position, as in ALiBi without its mask."""
    place = np.arange(count, dtype=float)
    return -slope * np.abs(place[:, None] - place[None, :])


def softmax(scores: Array, mask: Array | None = None) -> Array:
    """``e^S`` over its sum along the last dimension.

    Args:
        scores: S, (…, n); −∞ for a weight of 0. JAX arrays are accepted, and objects with
            differences, sums, quotients and ``exp``.
        mask: True where a row may attend; every row needs such a column.
    """
    xp: Any = scores.__array_namespace__()
    shown = scores if mask is None else xp.where(mask, scores, -np.inf)
    raised = xp.exp(shown - shown.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def layer_norm(tokens: Array, epsilon: float = 0.0) -> Array:
    """``(x − x̄)/√(var x + ε)``, with mean and variance over the d features of each token.

    With ε = 0 a token of equal features has no LayerNorm: it becomes NaN.
    """
    centred = tokens - tokens.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon))
