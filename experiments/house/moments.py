"""Weights of heads on drawn keys, and the sums that every term is made of."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from sims.base.arrays import fill_up
from sims.problem import TrigonometricSeries

DIMENSION, WIDTH = 32, 8
"""What keys and frames are padded to by zero columns, so that few programs are compiled."""


class Sums(NamedTuple):
    """Sums of one replicate and group of queries at each set of heads and temperature, as arrays.

    Attributes:
        deviation: of each head from the target, given the keys, (S, T, H, Q).
        noise: of a head, mean over heads, over σ²: ``Σ_i w²``, (S, T, Q).
        ensemble_noise: of the mean of all heads, (S, T, Q).
        keys: effective number of keys ``1/Σ_i w²`` of each head, (S, T, H, Q).
    """

    deviation: Any
    noise: Any
    ensemble_noise: Any
    keys: Any


@jax.jit
def replicate_sums(
    points: Float[Array, "R n d"],
    times: Float[Array, "R n"],
    values: Float[Array, "R n"],
    queries: Float[Array, "G Q d"],
    truth: Float[Array, "G Q"],
    query_frames: Float[Array, "G S H d k"],
    key_frames: Float[Array, "G S H d k"],
    inverse: Float[Array, "S T H"],
    dot: Array,
) -> Sums:
    """The sums of every replicate and group of queries, with R and G as the first axes.

    Weights are ``w_i ∝ c_i exp(s_i)``, of a key that was drawn c_i times. With q and z the
    projections of query and key, ``s = ⟨q, z⟩/b²`` (softmax) or ``−|q − z|²/(2b²)`` (Gaussian).
    Labels of equal keys have noise of their own: w_i²/c_i stands for w_i² in the noise.

    Args:
        points: distinct keys.
        times: c, how often each was drawn; 0 fills up.
        values: the target at the keys.
        queries: at which the heads predict, in G groups.
        truth: the target there.
        query_frames: of S sets of H heads, for each group.
        key_frames: the same for keys.
        inverse: 1/b² of T temperatures.
        dot: whether the kernel is softmax.
    """
    asked = jnp.einsum("gqd,gshdk->gshqk", queries, query_frames)

    def of_replicate(keys: tuple[Array, Array, Array]) -> Sums:
        x, count, y = keys
        ones = jnp.ones_like(count)
        share = jnp.where(count > 0, 1 / jnp.maximum(count, 1), 0.0)

        def of_group(group: tuple[Array, Array, Array]) -> Sums:
            q, frames, truth = group
            return lax.map(partial(of_set, truth), (q, frames, inverse))

        def of_set(truth: Array, heads: tuple[Array, Array, Array]) -> Sums:
            q, frames, inverse = heads
            z = jnp.einsum("nd,hdk->hnk", x, frames)
            size = jnp.where(dot, 0.0, 0.5) * (z**2).sum(-1)
            score = jnp.einsum("hqk,hnk->hqn", q, z) - size[:, None]
            score = jnp.where(count > 0, score, -jnp.inf)
            score = score - score.max(-1, keepdims=True)

            def at_temperature(inverse: Array) -> Sums:
                kernel = jnp.exp(score * inverse[:, None, None]) * count
                total = kernel @ ones
                weights = kernel / total[..., None]
                return Sums(
                    deviation=kernel @ y / total - truth,
                    noise=(weights**2 @ share).mean(0),
                    ensemble_noise=weights.mean(0) ** 2 @ share,
                    keys=1 / (weights**2 @ ones),
                )

            return lax.map(at_temperature, inverse)

        return lax.map(of_group, (asked, key_frames, truth))

    return lax.map(of_replicate, (points, times, values))


def sums_of(
    target: TrigonometricSeries,
    keys: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    frames: Sequence[np.ndarray],
    bandwidth: np.ndarray,
    kernel: str,
    precision: str = "float32",
) -> Sums:
    """The sums of given keys and queries, by a program for keys and frames filled up with zeros.

    Args:
        target: m.
        keys: distinct keys (R, n, d) and how often each was drawn (R, n).
        queries: (Q, d).
        frames: of queries and keys, (G, S, H, d, d_k): the g-th of G groups of queries meets the
            g-th.
        bandwidth: (S, T, H).
        kernel: gaussian or softmax.
        precision: of the sums.
    """
    points, times = keys
    groups = len(frames[0])
    arrays = (
        fill_up(points, DIMENSION),
        times,
        target.values(points),
        fill_up(queries, DIMENSION).reshape(groups, -1, DIMENSION),
        target.values(queries).reshape(groups, -1),
        *(fill_up(of_groups, DIMENSION, WIDTH) for of_groups in frames),
        bandwidth**-2.0,
    )
    rounded = [np.asarray(array, precision) for array in arrays]
    sums = replicate_sums(*rounded, np.asarray(kernel == "softmax"))
    return Sums(*(_joined(np.asarray(values, float)) for values in sums))


def _joined(values: np.ndarray) -> np.ndarray:
    """Groups of queries (R, G, …, Q) as one, (R, …, G·Q)."""
    moved = np.moveaxis(values, 1, -2)
    return moved.reshape(*moved.shape[:-2], -1)
