"""The draws of one replicate: what they are, named by (seed, batch, replicate) alone.

Keys come in blocks of :data:`DRAW_BLOCK` rows, each from a Threefry key of its own, so that a
replicate with a million keys never holds them together. The block size is part of the identity of
the draws (a constant, not a tuning knob): chunk sizes, devices and order of work do not enter.
A larger n extends the draws of a smaller n, and every problem with the same design dimension sees
the same underlying normals: common random numbers.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.errors import InputError
from sims.problem import Task, TrigonometricSeries, threefry
from sims.problem.checks import on_device

DRAW_BLOCK = 4096
"""Rows drawn from one key; changing it changes every simulated number."""


def root_key(key_or_seed: Any) -> Array:
    """A Threefry key from an integer seed (0 ≤ seed < 2⁶³) or a typed scalar key.

    Raises:
        InputError: neither of the two.
    """
    if isinstance(key_or_seed, int | np.integer) and not isinstance(key_or_seed, bool):
        if not 0 <= key_or_seed < 2**63:
            raise InputError("seed", key_or_seed, "an integer from 0 to 2**63 - 1")
        return _typed(threefry.root(int(key_or_seed)))
    dtype = getattr(key_or_seed, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key) or key_or_seed.shape != ():
        raise InputError("seed", key_or_seed, "an integer, or one key of jax.random.key")
    if "fry" not in str(jax.random.key_impl(key_or_seed)):
        raise InputError("seed", str(jax.random.key_impl(key_or_seed)), "a threefry2x32 key")
    return key_or_seed


def replicate_key(root: Array, batch: Any, replicate: Any) -> Array:
    """The key of one replicate."""
    return jax.random.fold_in(jax.random.fold_in(root, batch), replicate)


def batch_keys(root: Array, batches: np.ndarray, replicates: int) -> Array:
    """:func:`replicate_key` of all replicates of some batches, shape (B, R).

    By NumPy: a compiled program for them would take longer than they do.
    """
    of_batch = threefry.fold_in(np.asarray(jax.random.key_data(root)), batches)
    return _typed(threefry.fold_in(of_batch[:, None], np.arange(replicates)))


def _typed(words: np.ndarray) -> Array:
    return jax.random.wrap_key_data(on_device(words), impl="threefry2x32")


def draw_block(
    task: Task, key: Array, block: Any, size: int, dtype: Any
) -> tuple[Float[Array, "size d"], Float[Array, " size"]]:
    """Block number ``block`` of a replicate: its first ``size`` keys X and unit label noise.

    Args:
        task: the design is drawn from; the noise level is not applied.
        key: :func:`replicate_key`.
        block: 0, 1, …; row i of it is row ``block·DRAW_BLOCK + i`` of the replicate.
        size: at most :data:`DRAW_BLOCK`.
        dtype: float32 and float64 draws are different numbers.
    """
    for_keys, for_labels = jax.random.split(jax.random.fold_in(key, block))
    x = task.design.sample(for_keys, size, dtype)
    return x, jax.random.normal(for_labels, (size,), dtype)


@partial(jax.jit, static_argnames=("n", "dtype"))
def draw(
    task: Task, key: Array, n: int, dtype: Any = jnp.float64
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """All n keys X and unit label noise of a replicate at once (for reference and tests)."""
    sizes = [min(DRAW_BLOCK, n - start) for start in range(0, n, DRAW_BLOCK)]
    blocks = [draw_block(task, key, i, size, dtype) for i, size in enumerate(sizes)]
    return jnp.concatenate([x for x, _ in blocks]), jnp.concatenate([e for _, e in blocks])


# sin(2πv) = v·P(v²), Taylor's P: on |v| ≤ 1/4 within 7e-10 (7 terms) and 5e-16 (11 terms).
_SINE = [(-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]
_TERMS = {"float32": 7, "float64": 11}


def target_values(target: TrigonometricSeries, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """m(x) in the precision of x.

    The cosine is a polynomial after reduction of the angle in turns, because XLA's CPU cosine is
    scalar code and would take as long as all the kernels together; its absolute error is that of
    rounding the angle, as with any cosine.
    """
    if not isinstance(target, TrigonometricSeries):
        return target(x)
    turns = x @ (target.frequency / (2 * np.pi)).T.astype(x.dtype)
    turns = turns + (target.phase / (2 * np.pi)).astype(x.dtype)
    v = 0.25 - jnp.abs(turns - jnp.round(turns))
    *lower, last = _SINE[: _TERMS[x.dtype.name]]
    square, poly = v * v, jnp.full_like(v, last)
    for coefficient in reversed(lower):
        poly = poly * square + coefficient
    return (v * poly) @ target.amplitude.astype(x.dtype)
