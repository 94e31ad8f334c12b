"""Random numbers named by (seed, stream, batch, replicate) alone.

Chunk sizes, devices, order of work, shards and resumption do not enter, so they cannot change a
number.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.base import threefry
from sims.base.checks import check_count, on_device
from sims.base.errors import InputError
from sims.base.runtime import configure

configure()  # before the first array is made: precision and devices cannot change afterwards

PILOT = 2**32 - 1
"""Batch number for draws made once per run, such as a pilot; no batch of a run has it."""


def root_key(seed: int | Array) -> Array:
    """Threefry key from an integer seed (0 ≤ seed < 2⁶³) or a typed scalar key.

    Raises:
        InputError: the seed is neither.
    """
    if isinstance(seed, jax.Array):
        typed = jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ()
        if not typed or "fry" not in str(jax.random.key_impl(seed)):
            raise InputError("seed", seed, "an integer, or one Threefry key of jax.random.key")
        return seed
    check_count("seed", seed, minimum=0)
    if seed >= 2**63:
        raise InputError("seed", seed, "an integer below 2**63")
    return wrap_key(threefry.root(int(seed)))


def replicate_key(root: Array, batch: int | Array, replicate: int | Array) -> Array:
    """Random key of one replicate: the root with the batch folded in, then the replicate."""
    return jax.random.fold_in(jax.random.fold_in(root, batch), replicate)


def wrap_key(words: np.ndarray) -> Array:
    """Threefry keys of words (…, 2)."""
    return jax.random.wrap_key_data(on_device(words), impl="threefry2x32")


@dataclass(frozen=True)
class Draw:
    """Name of the random numbers of a batch or replicate, and generators made from it.

    Attributes:
        seed: the integer seed; the key's words as text if the run was given a key.
        stream: numbers folded into the root, to distinguish independent parts of a study.
        words: the root key with the stream folded in, two 32-bit words.
        replicates: R, replicates of a batch.
        batch: b, from 0.
        replicate: r, from 0; None for draws that the replicates of a batch share.
    """

    seed: int | str
    stream: tuple[int, ...]
    words: np.ndarray
    replicates: int
    batch: int = 0
    replicate: int | None = None

    @classmethod
    def from_seed(cls, seed: int | Array, stream: tuple[int, ...], replicates: int) -> "Draw":
        """The first batch of a seed or key.

        Raises:
            InputError: the seed is neither an integer nor a key, or the stream holds no numbers.
        """
        words = np.asarray(jax.random.key_data(root_key(seed)))
        name = int(seed) if isinstance(seed, int | np.integer) else f"key {words[0]} {words[1]}"
        for number in stream:
            check_count("stream", number, minimum=0)
            words = threefry.fold_in(words, number)
        return cls(name, tuple(stream), words, replicates)

    def draw(self, batch: int, replicate: int | None = None) -> "Draw":
        """Another batch of the run, or one of its replicates."""
        return replace(self, batch=batch, replicate=replicate)

    def keys(self, batches: np.ndarray) -> Array:
        """:func:`replicate_key` of all replicates of some batches, shape (B, R).

        NumPy computes them, because compiling a program would take longer.
        """
        batch_words = threefry.fold_in(self.words, batches)
        return wrap_key(threefry.fold_in(batch_words[:, None], np.arange(self.replicates)))

    @property
    def key(self) -> Array:
        """JAX key: the root with the batch folded in, then the replicate if there is one."""
        words = threefry.fold_in(self.words, self.batch)
        return wrap_key(
            words if self.replicate is None else threefry.fold_in(words, self.replicate)
        )

    def rng(self) -> np.random.Generator:
        """NumPy's generator of ``[seed, *stream, batch, replicate]``, without a replicate if None.

        Raises:
            InputError: the run has a key instead of an integer seed, which NumPy needs.
        """
        if isinstance(self.seed, str):
            raise InputError("seed", self.seed, "an integer, where NumPy draws")
        last = () if self.replicate is None else (self.replicate,)
        return np.random.default_rng([self.seed, *self.stream, self.batch, *last])
