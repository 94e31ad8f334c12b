"""Nadaraya–Watson heads, computed stably: a readable reference, and the sums the engine streams.

Exponents are shifted by their maximum before the exponential is taken, so a query far from every
key still has an estimate. A compact kernel may leave a query with no key in reach (log K = −inf
for all keys); then **the estimate counts as 0**, all its weights are 0, and the engine reports how
often it happened (``empty_rate``). Nothing is ever NaN.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from sims.errors import InputError
from sims.problem import Heads, Kernel

UNIT: Any = 1.0
"""The bandwidth left once coordinates are divided by b; a Python number, so it costs nothing."""


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
    return _weights(heads, query, keys)


@jax.jit
def _weights(
    heads: Heads, query: Float[Array, " d"], keys: Float[Array, "n d"]
) -> Float[Array, "H n"]:
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


def scaled_projection(
    heads: Heads, points: Float[Array, "n d"], dtype: Any
) -> Float[Array, "p H n"]:
    """``U_hᵀx / b_h``, coordinates first: scaled kernels see a point only through this.

    ``U_hᵀx`` for a kernel that is not scaled (see Kernel); :func:`left_bandwidth` goes with it.
    """
    frames = heads.frames
    if heads.kernel.scaled:
        frames = frames / heads.bandwidth[:, None, None]
    return jnp.einsum("hdp,nd->phn", frames.astype(dtype), points.astype(dtype))


def left_bandwidth(heads: Heads, dtype: Any) -> Any:
    """What is left of b_h after :func:`scaled_projection`: 1, or b_h (H, 1) if not scaled."""
    return UNIT if heads.kernel.scaled else heads.bandwidth[:, None].astype(dtype)


def finite_or_zero(peak: Array) -> Array:
    """The shift to use: the largest exponent, or 0 where no key is in reach."""
    return jnp.where(jnp.isfinite(peak), peak, 0.0)


def anchors(
    kernel: Kernel, queries: Float[Array, "Q p H"], keys: Float[Array, "p H n"]
) -> tuple[Float[Array, "Q p H"], Float[Array, "Q H"]]:
    """Where exponents are measured from: the point of the keys' bounding box nearest the query.

    Returns:
        The anchors a, and ``log K(q, a)`` in float64: what :func:`kernel_sums` leaves out of the
        exponents. Both are 0 for a kernel without ``log_ratio``.
    """
    if kernel.log_ratio is None or not kernel.scaled:
        return jnp.zeros_like(queries), jnp.zeros((queries.shape[0], queries.shape[2]))
    a = jnp.clip(queries, -_row_max(-keys), _row_max(keys))
    q, at = (jnp.moveaxis(x, 1, 0).astype(jnp.float64) for x in (queries, a))
    return a, kernel.log_value(q, at, UNIT)


def kernel_sums(
    kernel: Kernel,
    queries: Float[Array, "q p H"],
    anchor: Float[Array, "q p H"],
    keys: Float[Array, "p H n"],
    columns: tuple[Float[Array, " n"], ...],
    bandwidth: Any = UNIT,
) -> tuple[Float[Array, "q H"], Float[Array, "q H H"], Float[Array, "q H c"]]:
    """All sums over one block of keys, for a block of queries, with shifted exponents.

    With ``l_hi = log K_h(x, X_i)`` less the anchor's, ``peak_h = max_i l_hi`` and
    ``u_hi = exp(l_hi − peak_h)``:

    Args:
        kernel: K.
        queries: :func:`scaled_projection` of the queries, query first.
        anchor: of :func:`anchors`.
        keys: :func:`scaled_projection` of the keys.
        columns: vectors to be summed against the weights (m(X), noise), besides ones.
        bandwidth: of :func:`left_bandwidth`.

    Returns:
        ``peak`` (−inf where all K vanish), ``Σ_i u_hi u_gi``, and ``Σ_i u_hi c_i`` for the
        columns c and, last, for ones.
    """

    def exponents(query: Array, near: Array) -> Array:
        if kernel.log_ratio is None or not kernel.scaled:
            return kernel.log_value(query[..., None], keys, bandwidth)
        return kernel.log_ratio(query[..., None], keys, near[..., None])

    # Mapped over queries, not broadcast: with the query axis inside, XLA's CPU code is 10× slower.
    log_k = jax.vmap(exponents)(queries, anchor)
    peak = _row_max(log_k)
    u = jnp.exp(log_k - finite_or_zero(peak)[..., None])
    # Matrix times vector, one by one: a product with a thin matrix takes as long as all the rest.
    linear = [u @ column for column in (*columns, jnp.ones_like(keys[0, 0]))]
    return peak, jnp.einsum("qhn,qgn->qhg", u, u), jnp.stack(linear, axis=-1)


def _row_max(x: Float[Array, "*lead n"]) -> Float[Array, "*lead"]:
    # XLA's CPU maximum along the last axis is scalar code; over the axis before it, vectorised.
    lanes = 16
    if x.shape[-1] % lanes:
        return x.max(-1)
    return x.reshape(*x.shape[:-1], -1, lanes).max(-2).max(-1)
