"""Multi-head attention and what stands around it in a Transformer's layer, as functions of arrays.

Tokens are the rows of X (n × d). Head h has matrices W_Q, W_K (d × d_k), W_V (d × d_v) and W_O
(d_v × d), stacked over heads in the third dimension from the end. Its attention matrix is
``A_h = softmax(X W_Q W_Kᵀ Xᵀ/√d_k + bias)``, row by row, its output ``Y_h = A_h X W_V`` and its
contribution ``Y_h W_O``; attention is the sum of contributions. A layer's own biases are left out:
no law of this suite has them.

Arrays are NumPy's or JAX's, and so are the results; further dimensions may lead, for many layers
at once. NumPy compiles nothing, which is most of the time that small layers take.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sims.attention.norms import Numbers


class HeadMatrices(NamedTuple):
    """The matrices of H heads.

    Attributes:
        query: W_Q, (…, H, d, d_k).
        key: W_K, (…, H, d, d_k).
        value: W_V, (…, H, d, d_v).
        output: W_O by heads, (…, H, d_v, d): the rows of the one output matrix that belong to each.
    """

    query: Numbers
    key: Numbers
    value: Numbers
    output: Numbers


def causal_mask(count: int) -> Bool[np.ndarray, "n n"]:
    """True where row i may attend to column j: j ≤ i."""
    return np.tril(np.ones((count, count), bool))


def distance_bias(count: int, slope: float) -> Float[np.ndarray, "n n"]:
    """``−slope·|i − j|``, a score bias by relative position, as in ALiBi without its mask."""
    place = np.arange(count, dtype=float)
    return -slope * np.abs(place[:, None] - place[None, :])


def attention_scores(tokens: Numbers, query: Numbers, key: Numbers) -> Numbers:
    """``X W_Q W_Kᵀ Xᵀ/√d_k`` of every head, (…, H, n, n)."""
    x = tokens[..., None, :, :]
    return (x @ query) @ (x @ key).swapaxes(-1, -2) / query.shape[-1] ** 0.5


def attention_weights(
    scores: Numbers, bias: Numbers | None = None, mask: Numbers | None = None
) -> Numbers:
    """``softmax(scores + bias)`` over the last dimension, 0 where the mask is False.

    Args:
        scores: (…, n, n).
        bias: added to the scores, of a shape that broadcasts to theirs: positions, for example.
        mask: True where a row may attend; every row has to have such a column.
    """
    xp = scores.__array_namespace__()
    shifted = scores if bias is None else scores + bias
    shifted = shifted if mask is None else xp.where(mask, shifted, -xp.inf)
    kernel = xp.exp(shifted - shifted.max(-1, keepdims=True))
    return kernel / kernel.sum(-1, keepdims=True)


def head_outputs(weights: Numbers, tokens: Numbers, value: Numbers) -> Numbers:
    """``Y_h = A_h X W_V`` of every head from its attention matrix, (…, H, n, d_v)."""
    return weights @ (tokens[..., None, :, :] @ value)


def contributions(outputs: Numbers, output: Numbers) -> Numbers:
    """``Y_h W_O`` of every head, (…, H, n, d): the summands of multi-head attention."""
    return outputs @ output


def attend(
    tokens: Numbers,
    heads: HeadMatrices,
    bias: Numbers | None = None,
    mask: Numbers | None = None,
    gates: Numbers | None = None,
) -> Numbers:
    """Multi-head attention of tokens to themselves, ``Σ_h diag(g_h) A_h X W_V W_O``, (…, n, d).

    Args:
        tokens: X, (…, n, d).
        heads: the matrices.
        bias: of the scores, (n, n) or (…, H, n, n).
        mask: True where a row may attend, (n, n) or (…, H, n, n).
        gates: g, (…, n, H), one a token and head (:func:`output_gates`); None for ones.
    """
    scores = attention_scores(tokens, heads.query, heads.key)
    outputs = head_outputs(attention_weights(scores, bias, mask), tokens, heads.value)
    if gates is not None:
        outputs = outputs * gates.swapaxes(-1, -2)[..., None]
    return contributions(outputs, heads.output).sum(-3)


def output_gates(tokens: Numbers, weights: Numbers, shift: Numbers = 0.0) -> Numbers:
    """``g = σ(X U + b)``, a logistic gate for every token and head, before the heads are mixed.

    It is our reading of PG-OP, the gated output projection of arXiv 2604.23681, whose abstract says
    neither what a gate is a function of nor where it stands.

    Args:
        tokens: X, (…, n, d).
        weights: U, (d, H).
        shift: b, a number or (H,).
    """
    return 1 / (1 + np.e ** -(tokens @ weights + shift))


def residual(tokens: Numbers, branch: Numbers, scale: float = 1.0, skip: float = 1.0) -> Numbers:
    """``skip·X + scale·branch``: the residual stream after one branch, such as attention."""
    return skip * tokens + scale * branch


def token_mlp(
    tokens: Numbers,
    inner: Numbers,
    shift: Numbers,
    outer: Numbers,
    activation: Callable[[Numbers], Numbers] = np.tanh,
) -> Numbers:
    """``φ(X W_1 + b) W_2``, the same two layers for every token.

    Args:
        tokens: X, (…, n, d).
        inner: W_1, (d, d_ff).
        shift: b, (d_ff,) or a number.
        outer: W_2, (d_ff, d).
        activation: φ, elementwise.
    """
    return activation(tokens @ inner + shift) @ outer
