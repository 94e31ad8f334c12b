"""Weights of heads on drawn keys, what they average, and the sums that every term is made of."""

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


class Averages(NamedTuple):
    """Averages of each set of heads at each temperature, as arrays.

    Attributes:
        columns: of values, (R, S, T, H, Q, V).
        noise: ``Σ_i w²`` of a head, mean over heads, (R, S, T, Q).
        ensemble_noise: the same of the heads' mean weights.
        keys: effective number of keys ``1/Σ_i w²`` of each head, (R, S, T, H, Q).
    """

    columns: Any
    noise: Any
    ensemble_noise: Any
    keys: Any


class Sums(NamedTuple):
    """What heads that share values make of a target, as arrays.

    Attributes:
        deviation: of each head from the target, given the keys, (R, S, T, H, Q).
        noise: of a head, mean over heads, over σ²: ``Σ_i w²``, (R, S, T, Q).
        ensemble_noise: of the mean of all heads, (R, S, T, Q).
        keys: effective number of keys ``1/Σ_i w²`` of each head, (R, S, T, H, Q).
    """

    deviation: Any
    noise: Any
    ensemble_noise: Any
    keys: Any


@jax.jit
def replicate_averages(
    points: Float[Array, "R n d"],
    times: Float[Array, "R n"],
    values: Float[Array, "R K n V"],
    queries: Float[Array, "G Q d"],
    query_frames: Float[Array, "G S H d k"],
    key_frames: Float[Array, "G S H d k"],
    inverse: Float[Array, "S T H"],
    dot: Array,
) -> Averages:
    """The averages of every replicate and group of queries, with R and G as the first axes.

    Weights are ``w_i ∝ c_i exp(s_i)``, of a key that was drawn c_i times. With q and z the
    projections of query and key, ``s = ⟨q, z⟩/b²`` (softmax) or ``−|q − z|²/(2b²)`` (Gaussian).
    Labels of equal keys have noise of their own: w_i²/c_i stands for w_i² in the noise.

    Args:
        points: distinct keys.
        times: c, how often each was drawn; 0 fills up.
        values: columns of values of each head, or of all (K = 1).
        queries: at which the heads predict, in G groups.
        query_frames: of S sets of H heads, for each group.
        key_frames: the same for keys.
        inverse: 1/b² of T temperatures.
        dot: whether the kernel is softmax.
    """
    asked = jnp.einsum("gqd,gshdk->gshqk", queries, query_frames)

    def of_replicate(keys: tuple[Array, Array, Array]) -> Averages:
        x, count, columns = keys
        ones = jnp.ones_like(count)
        share = jnp.where(count > 0, 1 / jnp.maximum(count, 1), 0.0)

        def of_group(group: tuple[Array, Array]) -> Averages:
            return lax.map(of_set, (*group, inverse))

        def of_set(heads: tuple[Array, Array, Array]) -> Averages:
            q, frames, inverse = heads
            z = jnp.einsum("nd,hdk->hnk", x, frames)
            size = jnp.where(dot, 0.0, 0.5) * (z**2).sum(-1)
            score = jnp.einsum("hqk,hnk->hqn", q, z) - size[:, None]
            score = jnp.where(count > 0, score, -jnp.inf)
            score = score - score.max(-1, keepdims=True)
            return lax.map(partial(at_temperature, score), inverse)

        def at_temperature(score: Array, inverse: Array) -> Averages:
            weights = jnp.exp(score * inverse[:, None, None]) * count
            weights = weights / weights.sum(-1, keepdims=True)
            return Averages(
                columns=weights @ columns,
                noise=(weights**2 @ share).mean(0),
                ensemble_noise=weights.mean(0) ** 2 @ share,
                keys=1 / (weights**2 @ ones),
            )

        return lax.map(of_group, (asked, key_frames))

    return lax.map(of_replicate, (points, times, values))


def averages_of(
    keys: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    queries: np.ndarray,
    frames: Sequence[np.ndarray],
    bandwidth: np.ndarray,
    kernel: str,
    precision: str = "float32",
) -> Averages:
    """The averages, by a program for keys and frames filled up with zeros.

    Args:
        keys: distinct keys (R, n, d) and how often each was drawn (R, n).
        values: columns of each head, or of all (K = 1), (R, K, n, V).
        queries: (Q, d).
        frames: of queries and keys, (G, S, H, d, d_k): the g-th of G groups of queries meets the
            g-th.
        bandwidth: (S, T, H).
        kernel: gaussian or softmax.
        precision: of the sums.
    """
    points, times = keys
    arrays = (
        fill_up(points, DIMENSION),
        times,
        values,
        fill_up(queries, DIMENSION).reshape(len(frames[0]), -1, DIMENSION),
        *(fill_up(of_groups, DIMENSION, WIDTH) for of_groups in frames),
        bandwidth**-2.0,
    )
    rounded = [np.asarray(array, precision) for array in arrays]
    found = replicate_averages(*rounded, np.asarray(kernel == "softmax"))
    columns, *others = (np.asarray(part, float) for part in found)
    return Averages(_joined(columns, -2), *(_joined(part, -1) for part in others))


def sums_of(
    target: TrigonometricSeries,
    keys: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    frames: Sequence[np.ndarray],
    bandwidth: np.ndarray,
    kernel: str,
    precision: str = "float32",
) -> Sums:
    """What heads make of a target m; the other arguments are those of :func:`averages_of`."""
    values = target.values(keys[0])[:, None, :, None]
    found = averages_of(keys, values, queries, frames, bandwidth, kernel, precision)
    return Sums(found.columns[..., 0] - target.values(queries), *found[1:])


def _joined(values: np.ndarray, place: int) -> np.ndarray:
    """Groups of queries (R, G, …, Q, …) as one, (R, …, G·Q, …), with queries at that place."""
    moved = np.moveaxis(values, 1, place - 1)
    shape = moved.shape
    end = shape[place + 1 :] if place < -1 else ()
    return moved.reshape(*shape[: place - 1], -1, *end)
