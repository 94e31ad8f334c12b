"""What heads average when each has values of its own.

With weights ``w_hi`` of head h at a query, a column v of values gives ``Σ_i w_hi v_hi``. Heads with
the same scores may average different columns: the target, a target of their own, label noise.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from sims.base.arrays import fill_up

from ..house.moments import DIMENSION, WIDTH


class Averages(NamedTuple):
    """Averages of each set of heads at each temperature, as arrays.

    Attributes:
        columns: of values, (R, S, T, H, Q, V).
        noise: ``Σ_i w²`` of a head, mean over heads, (R, S, T, Q).
        ensemble_noise: the same of the heads' mean weights.
    """

    columns: Any
    noise: Any
    ensemble_noise: Any


@jax.jit
def replicate_averages(
    points: Float[Array, "R n d"],
    times: Float[Array, "R n"],
    values: Float[Array, "R H n V"],
    queries: Float[Array, "G Q d"],
    query_frames: Float[Array, "G S H d k"],
    key_frames: Float[Array, "G S H d k"],
    inverse: Float[Array, "S T H"],
    dot: Array,
) -> Averages:
    """The averages of every replicate and group of queries, with R and G as the first axes.

    Weights are ``w_i ∝ c_i exp(s_i)`` of a key that was drawn c_i times, with the scores s of
    ``experiments.house.moments``.

    Args:
        points: distinct keys.
        times: c, how often each was drawn; 0 fills up.
        values: columns of values of each head.
        queries: at which the heads predict, in G groups.
        query_frames: of S sets of H heads, for each group.
        key_frames: the same for keys.
        inverse: 1/b² of T temperatures.
        dot: whether the kernel is softmax.
    """
    asked = jnp.einsum("gqd,gshdk->gshqk", queries, query_frames)

    def of_replicate(keys: tuple[Array, Array, Array]) -> Averages:
        x, count, columns = keys
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
        values: columns of each head, (R, H, n, V).
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
    columns = np.moveaxis(np.asarray(found.columns, float), 1, -3)  # groups next to queries
    columns = columns.reshape(*columns.shape[:-3], -1, columns.shape[-1])
    noises = []
    for noise in found[1:]:
        moved = np.moveaxis(np.asarray(noise, float), 1, -2)
        noises.append(moved.reshape(*moved.shape[:-2], -1))
    return Averages(columns, *noises)
