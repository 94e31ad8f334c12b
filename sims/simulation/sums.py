"""The sums the engine streams: over one block of keys, for all queries and heads at once.

The one place where kernels are evaluated, in plain JAX; :func:`~.native.native_sums` computes the
same in C++.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.problem import Kernel
from sims.simulation.heads import UNIT, Columns, ProjectedKeys, ProjectedQueries, finite_or_zero


class Sums(NamedTuple):
    """Sums over a set of keys, with exponents shifted, in float64.

    With ``u_hi = K_h(x, X_i)·exp(−peak_h)``: any shift will do for which no sum overflows and the
    largest u of every head is far from underflow. Where all K vanish, ``peak`` is −inf and the
    sums are 0.
    """

    peak: Float[Array, "Q H"]
    """The shift, in units of log K."""
    gram: Float[Array, "Q H H"]
    """``Σ_i u_hi u_gi``."""
    linear: Float[Array, "Q H c"]
    """``Σ_i u_hi c_i`` for every column c."""
    centred: Float[Array, "Q H H"] | None = None
    """``Σ_i u_hi u_gi (m_i − c_h)(m_i − c_g)``, m the first column; None if no c was given."""


def anchors(
    kernel: Kernel, queries: ProjectedQueries, keys: ProjectedKeys
) -> tuple[ProjectedQueries, Float[Array, "Q H"]]:
    """Where exponents are measured from: the point of the keys' bounding box nearest the query.

    Returns:
        The anchors a, and ``log K(q, a)`` in float64: what the exponents
        leave out. Both are 0 for a kernel without ``log_ratio``.
    """
    if kernel.log_ratio is None or not kernel.scaled:
        return jnp.zeros_like(queries), jnp.zeros((queries.shape[0], queries.shape[2]))
    a = jnp.clip(queries, -_row_max(-keys), _row_max(keys))
    q = jnp.moveaxis(queries, 1, 0).astype(jnp.float64)
    nearest = jnp.moveaxis(a, 1, 0).astype(jnp.float64)
    return a, kernel.log_value(q, nearest, UNIT)


def streamed_sums(
    kernel: Kernel,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    bandwidth: Any = UNIT,
    query_block: int = 1,
    centres: Float[Array, "Q H"] | None = None,
) -> Sums:
    """The sums in plain JAX: one block of queries after another, in a CPU's cache.

    Args:
        kernel: K.
        queries: from :func:`~.heads.scaled_projection`, query first, in the working precision.
        keys: projected likewise.
        columns: vectors to be summed against the kernels; the last one is ones.
        bandwidth: remaining bandwidth: 1 for a scaled kernel, else (H, 1).
        query_block: queries weighed together, a divisor of Q.
        centres: c of :class:`Sums`, in float64.
    """
    near, offset = anchors(kernel, queries, keys)

    def exponents(query: Array, near: Array) -> Array:
        if kernel.log_ratio is None or not kernel.scaled:
            return kernel.log_value(query[..., None], keys, bandwidth)
        return kernel.log_ratio(query[..., None], keys, near[..., None])

    def block(part: tuple[Array, Array, Array | None]) -> tuple[Array, ...]:
        queries, near, centres = part
        # Mapped over queries, not broadcast: with the query axis inside, XLA's CPU code is 10×
        # slower.
        log_k = jax.vmap(exponents)(queries, near)
        peak = _row_max(log_k)
        u = jnp.exp(log_k - finite_or_zero(peak)[..., None])
        # Matrix times vector, one by one: a product with a thin matrix takes as long as the rest.
        linear = jnp.stack([u @ column for column in columns], axis=-1)
        sums = peak, jnp.einsum("qhn,qgn->qhg", u, u), linear
        if centres is None:
            return sums
        z = u * (columns[0] - centres[..., None])
        return *sums, jnp.einsum("qhn,qgn->qhg", z, z)

    cast_centres = None if centres is None else centres.astype(keys.dtype)
    parts = jax.tree.map(
        lambda x: x.reshape(-1, query_block, *x.shape[1:]), (queries, near, cast_centres)
    )
    peak, *others = (x.reshape(-1, *x.shape[2:]).astype(jnp.float64) for x in lax.map(block, parts))
    return Sums(peak + offset, *others)


def _row_max(x: Float[Array, "*lead n"]) -> Float[Array, "*lead"]:
    # XLA's CPU maximum along the last axis is scalar code; over the axis before it, vectorised.
    lanes = 16
    if x.shape[-1] % lanes:
        return x.max(-1)
    return x.reshape(*x.shape[:-1], -1, lanes).max(-2).max(-1)
