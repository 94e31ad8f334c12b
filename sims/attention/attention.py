"""Multi-head attention and what stands around it in a Transformer's layer, as functions of arrays.

Tokens are the rows of X (n × d). Head h has matrices W_Q, W_K (d × d_k), W_V (d × d_v) and W_O
(d_v × d), stacked over heads in the first dimension. Its attention matrix is
``A_h = softmax(X W_Q W_Kᵀ Xᵀ/√d_k + bias)``, row by row, its output ``Y_h = A_h X W_V`` and its
contribution ``Y_h W_O``; attention is the sum of contributions. A layer's own biases are left out:
no law of this suite has them.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike


class HeadMatrices(NamedTuple):
    """The matrices of H heads.

    Attributes:
        query: W_Q, (H, d, d_k).
        key: W_K, (H, d, d_k).
        value: W_V, (H, d, d_v).
        output: W_O by heads, (H, d_v, d): the rows of the one output matrix that belong to each.
    """

    query: Array
    key: Array
    value: Array
    output: Array


def causal_mask(count: int) -> Bool[Array, "n n"]:
    """True where row i may attend to column j: j ≤ i."""
    return jnp.tril(jnp.ones((count, count), bool))


def distance_bias(count: int, slope: float) -> Float[Array, "n n"]:
    """``−slope·|i − j|``, a score bias by relative position, as in ALiBi without its mask."""
    place = jnp.arange(count)
    return -slope * jnp.abs(place[:, None] - place[None, :]).astype(float)


def attention_scores(tokens: ArrayLike, query: ArrayLike, key: ArrayLike) -> Float[Array, "H n n"]:
    """``X W_Q W_Kᵀ Xᵀ/√d_k`` of every head."""
    x, w_q, w_k = jnp.asarray(tokens), jnp.asarray(query), jnp.asarray(key)
    queries = jnp.einsum("nd,hdk->hnk", x, w_q)
    keys = jnp.einsum("nd,hdk->hnk", x, w_k)
    return jnp.einsum("hnk,hmk->hnm", queries, keys) / w_q.shape[-1] ** 0.5


def attention_weights(
    scores: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None
) -> Float[Array, "... n n"]:
    """``softmax(scores + bias)`` over the last dimension, 0 where the mask is False.

    Args:
        scores: (…, n, n).
        bias: added to the scores, of a shape that broadcasts to theirs: positions, for example.
        mask: True where a row may attend; every row has to have such a column.
    """
    s = jnp.asarray(scores)
    s = s if bias is None else s + jnp.asarray(bias)
    return jax.nn.softmax(s if mask is None else jnp.where(jnp.asarray(mask), s, -jnp.inf), axis=-1)


def head_outputs(weights: ArrayLike, tokens: ArrayLike, value: ArrayLike) -> Float[Array, "H n v"]:
    """``Y_h = A_h X W_V`` of every head, from its attention matrix."""
    values = jnp.einsum("nd,hdv->hnv", jnp.asarray(tokens), jnp.asarray(value))
    return jnp.asarray(weights) @ values


def contributions(outputs: ArrayLike, output: ArrayLike) -> Float[Array, "H n d"]:
    """``Y_h W_O`` of every head: the summands of multi-head attention."""
    return jnp.einsum("hnv,hvd->hnd", jnp.asarray(outputs), jnp.asarray(output))


def attend(
    tokens: ArrayLike,
    heads: HeadMatrices,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    gates: ArrayLike | None = None,
) -> Float[Array, "n d"]:
    """Multi-head attention of tokens to themselves, ``Σ_h diag(g_h) A_h X W_V W_O``.

    Args:
        tokens: X, (n, d).
        heads: the matrices.
        bias: of the scores, (n, n) or (H, n, n).
        mask: True where a row may attend, (n, n) or (H, n, n).
        gates: g, (n, H), one a token and head (:func:`output_gates`); None for ones.
    """
    scores = attention_scores(tokens, heads.query, heads.key)
    outputs = head_outputs(attention_weights(scores, bias, mask), tokens, heads.value)
    if gates is not None:
        outputs = outputs * jnp.asarray(gates).T[:, :, None]
    return jnp.sum(contributions(outputs, heads.output), axis=0)


def output_gates(
    tokens: ArrayLike, weights: ArrayLike, shift: ArrayLike = 0.0
) -> Float[Array, "n H"]:
    """``g = σ(X U + b)``, a logistic gate for every token and head, before the heads are mixed.

    It is our reading of a position-gated output projection (PG-OP): the source's abstract says
    neither what the gate is a function of nor where it stands.

    Args:
        tokens: X, (n, d).
        weights: U, (d, H).
        shift: b, a number or (H,).
    """
    return jax.nn.sigmoid(jnp.asarray(tokens) @ jnp.asarray(weights) + jnp.asarray(shift))


def residual(
    tokens: ArrayLike, branch: ArrayLike, scale: float = 1.0, skip: float = 1.0
) -> Float[Array, "n d"]:
    """``skip·X + scale·branch``: the residual stream after one branch, such as attention."""
    return skip * jnp.asarray(tokens) + scale * jnp.asarray(branch)


def token_mlp(
    tokens: ArrayLike,
    inner: ArrayLike,
    shift: ArrayLike,
    outer: ArrayLike,
    activation: Callable[[Array], Array] = jax.nn.gelu,
) -> Float[Array, "n d"]:
    """``φ(X W_1 + b) W_2``, the same two layers for every token.

    Args:
        tokens: X, (n, d).
        inner: W_1, (d, d_ff).
        shift: b, (d_ff,) or a number.
        outer: W_2, (d_ff, d).
        activation: φ, elementwise.
    """
    hidden = jnp.asarray(tokens) @ jnp.asarray(inner) + jnp.asarray(shift)
    return activation(hidden) @ jnp.asarray(outer)
