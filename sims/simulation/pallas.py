"""The kernel sums as one fused GPU kernel (Pallas, Triton): no weight ever leaves the registers.

A program of the grid holds a few queries and streams the keys once. Every lane keeps sums of its
own, ``Σ u_h c`` and ``Σ u_h u_g``, to be added up across lanes at the end alone. Exponents are
shifted by a running maximum per (query, head). It is raised, and all sums are rescaled, only when
an exponent exceeds it by :data:`LIFT`: nearly always in the first step alone. All products are
float32 on the vector units, none is TF32; sums over blocks of keys are float64, in
:mod:`sims.simulation.replicate`. On an H200 it is right to 2e-6 and 3.9 times as fast as plain XLA
(docs/gpu.md).
"""

import functools
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from sims.problem import Kernel
from sims.simulation.heads import UNIT, finite_or_zero
from sims.simulation.sums import Sums, anchors, streamed_sums

LIFT = 20.0
"""How far an exponent may exceed the shift: u² ≤ e⁴⁰, whose sums stay far below float32's end."""


@dataclass(frozen=True)
class Tile:
    """How a program is cut; powers of 2. It changes no number but by rounding.

    The default is the fastest of 24 on an H200 with 8 heads of width 4.
    """

    queries: int = 2
    keys: int = 64
    warps: int = 2


def pallas_sums(
    kernel: Kernel,
    queries: Float[Array, "Q p H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "c n"],
    bandwidth: Array = UNIT,
    query_block: int = 1,
    *,
    tile: Tile = Tile(),
    interpret: bool = False,
) -> Sums:
    """A :data:`~.sums.KernelSums` for CUDA devices.

    A kernel that is not written over coordinates (see :class:`~sims.problem.Kernel`) falls back to
    :func:`~.sums.streamed_sums`.

    Args:
        kernel: K.
        queries: projected, query first.
        keys: projected; n need not be a multiple of the tile.
        columns: vectors to be summed against the kernels.
        bandwidth: left to be applied: 1, or (H, 1).
        query_block: for the fallback alone.
        tile: of a program.
        interpret: run without a GPU, slowly: for tests.
    """
    if not _over_coordinates(kernel, keys):
        return streamed_sums(kernel, queries, keys, columns, bandwidth, query_block)
    near, offset = anchors(kernel, queries, keys)
    (count, width, heads), (rows, n) = queries.shape, columns.shape
    padding = -count % tile.queries

    def cut(x: Array) -> Array:
        return jnp.pad(x, ((0, padding), (0, 0), (0, 0)), mode="edge").transpose(1, 2, 0)

    b = jnp.broadcast_to(jnp.asarray(bandwidth, keys.dtype), (heads, 1))
    pairs = heads * (heads + 1) // 2
    sizes = (heads, pairs, rows * heads)
    peak, gram, linear = pl.pallas_call(
        partial(_program, kernel=kernel, sizes=(width, heads, rows, n), tile=tile),
        out_shape=[jax.ShapeDtypeStruct((s, count + padding), keys.dtype) for s in sizes],
        grid=((count + padding) // tile.queries,),
        compiler_params=triton.CompilerParams(num_warps=tile.warps, num_stages=2),
        interpret=interpret,
        name="kernel_sums",
    )(cut(queries), cut(near), keys, columns, b)
    first, second = np.triu_indices(heads)
    place = np.zeros((heads, heads), int)
    place[first, second] = place[second, first] = np.arange(pairs)
    wide = (x[:, :count].astype(jnp.float64) for x in (peak, gram, linear))
    shift, gram, linear = wide
    return Sums(
        shift.T + offset,
        jnp.moveaxis(gram[place], -1, 0),
        jnp.moveaxis(linear.reshape(rows, heads, count), -1, 0).mT,
    )


def _over_coordinates(kernel: Kernel, keys: Array) -> bool:
    """Whether the kernel takes a point as a tuple of its coordinates: tiles cannot be stacked."""
    point = (jax.ShapeDtypeStruct((1,), keys.dtype),) * keys.shape[0]
    function = kernel.log_value if kernel.log_ratio is None else kernel.log_ratio
    last = point[0] if kernel.log_ratio is None else point
    try:
        jax.eval_shape(function, point, point, last)
    except (TypeError, AttributeError):
        return False
    return True


def _program(
    query_ref: Any,
    near_ref: Any,
    key_ref: Any,
    column_ref: Any,
    bandwidth_ref: Any,
    peak_ref: Any,
    gram_ref: Any,
    linear_ref: Any,
    *,
    kernel: Kernel,
    sizes: tuple[int, int, int, int],
    tile: Tile,
) -> None:
    """One program: a few queries, all keys.

    Refs in: queries and anchors (p, H, Q), keys (p, H, n), columns (c, n), bandwidth (H, 1).
    Out: shifts (H, Q), pair sums (H(H+1)/2, Q), sums of columns (c·H, Q).
    """
    width, heads, rows, n = sizes
    dtype = key_ref.dtype
    pairs = [(h, g) for h in range(heads) for g in range(h, heads)]
    own = pl.ds(pl.program_id(0) * tile.queries, tile.queries)
    relative = kernel.log_ratio is not None and kernel.scaled

    def point(ref: Any, head: int, place: Any) -> tuple[Array, ...]:
        return tuple(ref[i, head, place] for i in range(width))

    def exponents(step: Array) -> tuple[list[Array], list[Array]]:
        start = step * tile.keys
        lanes = start + jnp.arange(tile.keys)
        inside = lanes < n
        # Past the end the last keys are read again, and count for nothing.
        place = lanes if n % tile.keys == 0 else jnp.minimum(lanes, n - 1)
        logs = []
        for h in range(heads):
            k = tuple(x[None, :] for x in point(key_ref, h, place))
            q = tuple(x[:, None] for x in point(query_ref, h, own))
            if relative:
                a = tuple(x[:, None] for x in point(near_ref, h, own))
                value = kernel.log_ratio(q, k, a)  # type: ignore[misc, arg-type]
            else:
                b = UNIT if kernel.scaled else bandwidth_ref[h, 0]
                value = kernel.log_value(q, k, b)  # type: ignore[arg-type]
            logs.append(value if n % tile.keys == 0 else jnp.where(inside[None], value, -jnp.inf))
        return logs, [column_ref[c, place][None, :] for c in range(rows)]

    def raised(carry: Any, logs: list[Array]) -> Any:
        shifts, gram, linear = carry
        new = [jnp.maximum(s, x.max(1)) for s, x in zip(shifts, logs, strict=True)]
        factor = [jnp.exp(s - finite_or_zero(t))[:, None] for s, t in zip(shifts, new, strict=True)]
        gram = [x * factor[h] * factor[g] for x, (h, g) in zip(gram, pairs, strict=True)]
        return new, gram, [x * factor[i % heads] for i, x in enumerate(linear)]

    def absorb(step: Array, carry: Any) -> Any:
        logs, values = exponents(step)
        # A shift is −inf until a key has been in reach.
        excess = [x > (s + LIFT)[:, None] for s, x in zip(carry[0], logs, strict=True)]
        over = functools.reduce(jnp.logical_or, excess)
        any_over = jnp.where(over, 1, 0).sum() > 0
        carry = lax.cond(any_over, raised, lambda carry, _: carry, carry, logs)
        shifts, gram, linear = carry
        u = [jnp.exp(x - finite_or_zero(s)[:, None]) for s, x in zip(shifts, logs, strict=True)]
        gram = [x + u[h] * u[g] for x, (h, g) in zip(gram, pairs, strict=True)]
        linear = [x + u[i % heads] * values[i // heads] for i, x in enumerate(linear)]
        return shifts, gram, linear

    nothing = jnp.zeros((tile.queries, tile.keys), dtype)
    start = (
        [jnp.full((tile.queries,), -jnp.inf, dtype)] * heads,
        [nothing] * len(pairs),
        [nothing] * (rows * heads),
    )
    steps = -(-n // tile.keys)
    shifts, gram, linear = lax.fori_loop(0, steps, absorb, start)
    for h, shift in enumerate(shifts):
        peak_ref[h, own] = shift
    for index, value in enumerate(gram):
        gram_ref[index, own] = value.sum(1)
    for index, value in enumerate(linear):
        linear_ref[index, own] = value.sum(1)
