"""Draws of one replicate, determined by its random key alone.

Keys come in blocks of :data:`DRAW_BLOCK` rows, each from a separate Threefry key, so that a
replicate with a million keys never holds them together. The block size is part of the identity of
the draws (a constant, not a tuning knob): chunk sizes, devices and order of work do not enter.
A larger n extends the draws of a smaller n, and every problem with the same design dimension sees
the same underlying normals: common random numbers.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from sims.base.checks import on_device
from sims.problem import Target, Task, TrigonometricSeries
from sims.problem.normals import normal

DRAW_BLOCK = 4096
"""Rows drawn from one key; changing it changes every simulated number."""


def draw_block(
    task: Task, key: Array, block: int | Array, size: int, dtype: DTypeLike
) -> tuple[Float[Array, "size d"], Float[Array, " size"]]:
    """First ``size`` keys X, and unit label noise, of block number ``block`` of a replicate.

    Args:
        task: task whose design is sampled; its noise level is not applied.
        key: :func:`replicate_key`.
        block: 0, 1, …; row i of it is row ``block·DRAW_BLOCK + i`` of the replicate.
        size: number of keys, at most :data:`DRAW_BLOCK`.
        dtype: float32 and float64 draws are different numbers.
    """
    for_keys, for_labels = jax.random.split(jax.random.fold_in(key, block))
    x = task.design.sample(for_keys, size, dtype)
    return x, normal(for_labels, (size,), dtype)


@partial(jax.jit, static_argnames=("n", "dtype"))
def draw(
    task: Task, key: Array, n: int, dtype: DTypeLike = jnp.float64
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """All n keys X and unit label noise of a replicate at once."""
    full, rest = divmod(n, DRAW_BLOCK)
    parts = []
    if full:
        blocks = lax.map(lambda i: draw_block(task, key, i, DRAW_BLOCK, dtype), jnp.arange(full))
        parts.append(jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), blocks))
    if rest:
        parts.append(draw_block(task, key, full, rest, dtype))
    return jax.tree.map(lambda *part: jnp.concatenate(part), *parts)


# sin(2πv) = v·P(v²), Taylor's P: on |v| ≤ 1/4 within 7e-10 (7 terms) and 5e-16 (11 terms).
_SINE = [(-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]
_TERMS = {"float32": 7, "float64": 11}


def cosine(turns: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """``cos(2π t)`` of angles in turns, in their precision, float32 or float64.

    A polynomial after reduction of the angle, because XLA's CPU cosine is scalar code, twenty times
    as slow as its exponential. The absolute error is that of rounding the angle, as with any
    cosine, plus a few units of rounding of 1.
    """
    v = 0.25 - jnp.abs(turns - jnp.round(turns))
    *lower, last = _SINE[: _TERMS[turns.dtype.name]]
    square = v * v
    poly = jnp.full_like(v, last)
    for coefficient in reversed(lower):
        poly = poly * square + coefficient
    return v * poly


def target_values(target: Target, x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
    """Values m(x) in the precision of x; a series uses :func:`cosine`."""
    if not isinstance(target, TrigonometricSeries):
        return target(x)
    turns = x @ (target.frequency / (2 * np.pi)).T.astype(x.dtype)
    turns = turns + (target.phase / (2 * np.pi)).astype(x.dtype)
    return cosine(turns) @ target.amplitude.astype(x.dtype)


def split_constant(task: Task) -> tuple[Task, Float[Array, ""] | None]:
    """Task whose target has no constant part, and that part; None for 0."""
    constant = task.target.constant
    if not constant:
        return task, None
    task = eqx.tree_at(lambda t: t.target, task, task.target.without_constant())
    return task, on_device(np.asarray(constant))
