"""Nadaraya–Watson heads, computed stably: a readable reference, and the sums the engine streams.

Exponents are shifted by their maximum before the exponential is taken, so a query far from every
key still has an estimate. A compact kernel may leave a query with no key in reach (log K = −inf
for all keys); then **the estimate counts as 0**, all its weights are 0, and the engine reports how
often it happened (``empty_rate``). Nothing is ever NaN.
"""

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from sims.errors import InputError
from sims.problem import Heads, Kernel


def nw_weights(heads: Heads, query: Any, keys: Any) -> Float[Array, "H n"]:
    """Attention weights ``w_hi(x) = K_h(x, X_i) / Σ_j K_h(x, X_j)``, in float64.

    Args:
        heads: H heads in R^d.
        query: x, shape (d,).
        keys: X, shape (n, d).

    Returns:
        Weights (H, n); each row sums to 1, or is 0 when every K_h(x, X_i) is 0.

    Raises:
        InputError: shapes disagree with the heads.
    """
    query, keys = jnp.asarray(query, jnp.float64), jnp.asarray(keys, jnp.float64)
    if query.shape != (heads.dimension,):
        raise InputError("query", query.shape, f"shape ({heads.dimension},)")
    if keys.ndim != 2 or keys.shape[1] != heads.dimension or not len(keys):
        raise InputError("keys", keys.shape, f"shape (n, {heads.dimension}), n >= 1")
    q = jnp.einsum("hdp,d->ph", heads.frames, query)[:, :, None]
    k = jnp.einsum("hdp,nd->phn", heads.frames, keys)
    log_k = heads.kernel.log_value(q, k, heads.bandwidth[:, None])
    total = logsumexp(log_k, axis=1, keepdims=True)
    return jnp.exp(log_k - jnp.where(jnp.isfinite(total), total, 0.0))


def nw_estimates(heads: Heads, queries: Any, keys: Any, labels: Any) -> Float[Array, "Q H"]:
    """``f̂_h(x) = Σ_i w_hi(x) Y_i`` at every query, in float64.

    Args:
        heads: H heads in R^d.
        queries: (Q, d).
        keys: X, (n, d).
        labels: Y, (n,); the unit of the result.

    Raises:
        InputError: shapes disagree.
    """
    labels = jnp.asarray(labels, jnp.float64)
    if labels.shape != (len(keys),):
        raise InputError("labels", labels.shape, f"shape ({len(keys)},)")
    return jnp.stack([nw_weights(heads, query, keys) @ labels for query in jnp.asarray(queries)])


def scaled_projection(heads: Heads, points: Float[Array, "n d"], dtype: Any) -> Float[Array, "p H n"]:
    """``U_hᵀx / b_h``, coordinates first: kernels see a point only through this (see Kernel)."""
    frames = heads.frames / heads.bandwidth[:, None, None]
    return jnp.einsum("hdp,nd->phn", frames.astype(dtype), points.astype(dtype))


def finite_or_zero(peak: Array) -> Array:
    """The shift to use: the largest exponent, or 0 where no key is in reach."""
    return jnp.where(jnp.isfinite(peak), peak, 0.0)


def kernel_sums(
    kernel: Kernel,
    queries: Float[Array, "p q H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "n c"],
) -> tuple[Float[Array, "q H"], Float[Array, "q H H"], Float[Array, "q H c"]]:
    """All sums over one block of keys, for a block of queries, with shifted exponents.

    With ``peak_h = max_i log K_h(x, X_i)`` and ``u_hi = exp(log K_h(x, X_i) − peak_h)``:

    Args:
        kernel: K.
        queries: :func:`scaled_projection` of the queries, transposed.
        keys: :func:`scaled_projection` of the keys.
        columns: vectors to be summed against the weights (m(X), noise, ones).

    Returns:
        ``peak`` (−inf where all K vanish), ``Σ_i u_hi u_gi``, and ``Σ_i u_hi columns_i``.
    """
    log_k = kernel.log_value(queries[..., None], keys[:, None], 1.0)
    peak = _row_max(log_k)
    u = jnp.exp(log_k - finite_or_zero(peak)[..., None])
    q, h, n = u.shape
    linear = (u.reshape(q * h, n) @ columns).reshape(q, h, -1)
    return peak, jnp.einsum("qhn,qgn->qhg", u, u), linear


def _row_max(x: Float[Array, "*lead n"]) -> Float[Array, "*lead"]:
    # XLA's CPU maximum along the last axis is scalar code; over the axis before it, vectorised.
    lanes = 16
    if x.shape[-1] % lanes:
        return x.max(-1)
    return x.reshape(*x.shape[:-1], -1, lanes).max(-2).max(-1)
