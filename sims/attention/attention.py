"""Multi-head attention and what stands around it in a Transformer's layer, as functions of arrays.

Tokens are the rows of X (n × d). Head h has matrices W_Q, W_K (d × d_k), W_V (d × d_v) and W_O
(d_v × d), stacked over heads in the third dimension from the end. Its attention matrix is
``A_h = softmax(X W_Q W_Kᵀ Xᵀ/√d_k)``, row by row, its output ``Y_h = A_h X W_V`` and its
contribution ``Y_h W_O``; attention is the sum of contributions. A layer's own biases are left out:
no law of this suite has them.

Arrays are NumPy's: small layers would take most of their time to compile. Further dimensions may
lead, for many layers at once.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


class HeadMatrices(NamedTuple):
    """The matrices of H heads.

    Attributes:
        query: W_Q, (…, H, d, d_k).
        key: W_K, (…, H, d, d_k).
        value: W_V, (…, H, d, d_v).
        output: W_O by heads, (…, H, d_v, d): the rows of the one output matrix that belong to each.
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
        scores: S, (…, n); −∞ for a weight of 0. JAX's arrays will do, and objects with
            differences, sums, quotients and ``exp``.
        mask: True where a row may attend; every row has to have such a column.
    """
    xp: Any = scores.__array_namespace__()
    shown = scores if mask is None else xp.where(mask, scores, -np.inf)
    raised = xp.exp(shown - shown.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def attention_scores(tokens: Array, query: Array, key: Array) -> Array:
    """``X W_Q W_Kᵀ Xᵀ/√d_k`` of every head, (…, H, n, n)."""
    x = tokens[..., None, :, :]
    return np.asarray((x @ query) @ (x @ key).swapaxes(-1, -2) / query.shape[-1] ** 0.5)


def head_outputs(weights: Array, tokens: Array, value: Array) -> Array:
    """``Y_h = A_h X W_V`` of every head from its attention matrix, (…, H, n, d_v)."""
    return np.asarray(weights @ (tokens[..., None, :, :] @ value))


def attend(tokens: Array, heads: HeadMatrices) -> Array:
    """Multi-head attention of tokens (…, n, d) to themselves, ``Σ_h A_h X W_V W_O``."""
    weights = softmax(attention_scores(tokens, heads.query, heads.key))
    return np.asarray((head_outputs(weights, tokens, heads.value) @ heads.output).sum(-3))


def token_mlp(tokens: Array, inner: Array, shift: Array, outer: Array) -> Array:
    """``tanh(X W_1 + b) W_2``, the same two layers for every token.

    Args:
        tokens: X, (…, n, d).
        inner: W_1, (d, d_ff).
        shift: b, (d_ff,).
        outer: W_2, (d_ff, d).
    """
    return np.asarray(np.tanh(tokens @ inner + shift) @ outer)


def layer_norm(tokens: Array, epsilon: float = 0.0) -> Array:
    """``(x − x̄)/√(var x + ε)``, with mean and variance over the d features of each token.

    With ε = 0 a token of equal features has no LayerNorm: it becomes NaN.
    """
    centred = tokens - tokens.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon))


def rms_norm(tokens: Array) -> Array:
    """``x/√(‖x‖²/d)``: LayerNorm without its centring. A token of zeros becomes NaN."""
    return np.asarray(tokens / np.sqrt((tokens**2).mean(-1, keepdims=True)))
