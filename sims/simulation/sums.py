"""The sums the engine streams: over one block of keys, for all queries and heads at once.

The one place where kernels are evaluated. :data:`KernelSums` is the contract;
:func:`streamed_sums` is the engine's own implementation, in plain JAX.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.problem import Kernel
from sims.simulation.heads import UNIT, finite_or_zero


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


KernelSums = Callable[..., Sums]
"""``(kernel, queries (Q, p, H), keys (p, H, n), columns (c, n), bandwidth, query_block,
centres) -> Sums``.

``queries`` and ``keys`` are :func:`~.heads.scaled_projection`, in the precision of the work;
``columns`` are the vectors to be summed against the kernels: m(X), the label noise if labels are
drawn, and last ones, so that ``linear[..., -1]`` is ``Σ_i u_hi``. ``bandwidth`` is 1 for a scaled
kernel, else (H, 1). ``query_block`` (which divides Q) and n are the sizes the plan chose for its
memory budget: n is at most :data:`~.draws.DRAW_BLOCK`, and need not be a multiple of anything.
``centres`` c (Q, H) in float64 are given only for a :class:`~.replicate.Control`. The function is
called under ``jit``, inside loops over keys and replicates, and may be under ``vmap`` (over
replicates: then ``queries`` and ``centres`` are not batched).
"""


def anchors(
    kernel: Kernel, queries: Float[Array, "Q p H"], keys: Float[Array, "p H n"]
) -> tuple[Float[Array, "Q p H"], Float[Array, "Q H"]]:
    """Where exponents are measured from: the point of the keys' bounding box nearest the query.

    Returns:
        The anchors a, and ``log K(q, a)`` in float64: what :func:`block_sums` leaves out of the
        exponents. Both are 0 for a kernel without ``log_ratio``.
    """
    if kernel.log_ratio is None or not kernel.scaled:
        return jnp.zeros_like(queries), jnp.zeros((queries.shape[0], queries.shape[2]))
    a = jnp.clip(queries, -_row_max(-keys), _row_max(keys))
    q, at = (jnp.moveaxis(x, 1, 0).astype(jnp.float64) for x in (queries, a))
    return a, kernel.log_value(q, at, UNIT)


def streamed_sums(
    kernel: Kernel,
    queries: Float[Array, "Q p H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "c n"],
    bandwidth: Array = UNIT,
    query_block: int = 1,
    centres: Float[Array, "Q H"] | None = None,
) -> Sums:
    """A :data:`KernelSums` in plain JAX: one block of queries after another, in a CPU's cache."""
    near, offset = anchors(kernel, queries, keys)

    def cut(x: Array) -> Array:
        return x.reshape(-1, query_block, *x.shape[1:])

    def join(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:]).astype(jnp.float64)

    given = None if centres is None else cut(centres.astype(keys.dtype))
    peak, gram, linear, centred = lax.map(
        lambda part: block_sums(kernel, part[0], part[1], keys, columns, bandwidth, part[2]),
        (cut(queries), cut(near), given),
    )
    return Sums(
        join(peak) + offset, join(gram), join(linear), None if centred is None else join(centred)
    )


def block_sums(
    kernel: Kernel,
    queries: Float[Array, "q p H"],
    anchor: Float[Array, "q p H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "c n"],
    bandwidth: Array = UNIT,
    centres: Float[Array, "q H"] | None = None,
) -> tuple[
    Float[Array, "q H"], Float[Array, "q H H"], Float[Array, "q H c"], Float[Array, "q H H"] | None
]:
    """All sums over one block of keys, for a block of queries, in the precision of the keys.

    With ``l_hi = log K_h(x, X_i)`` less the anchor's, ``peak_h = max_i l_hi`` and
    ``u_hi = exp(l_hi − peak_h)``:

    Args:
        kernel: K.
        queries: projected, query first.
        anchor: of :func:`anchors`.
        keys: projected.
        columns: vectors to be summed against the kernels.
        bandwidth: left to be applied.
        centres: c of :class:`Sums`.

    Returns:
        ``peak`` (−inf where all K vanish), ``Σ_i u_hi u_gi``, ``Σ_i u_hi c_i``, and the centred
        sums or None.
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
    linear = [u @ column for column in columns]
    centred = None
    if centres is not None:
        z = u * (columns[0] - centres[..., None])
        centred = jnp.einsum("qhn,qgn->qhg", z, z)
    return peak, jnp.einsum("qhn,qgn->qhg", u, u), jnp.stack(linear, axis=-1), centred


def _row_max(x: Float[Array, "*lead n"]) -> Float[Array, "*lead"]:
    # XLA's CPU maximum along the last axis is scalar code; over the axis before it, vectorised.
    lanes = 16
    if x.shape[-1] % lanes:
        return x.max(-1)
    return x.reshape(*x.shape[:-1], -1, lanes).max(-2).max(-1)
