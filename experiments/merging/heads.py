"""Errors of heads over the keys of drawn sequences and over their slots, at any temperatures.

NumPy: gates, strides and lengths are data, and nothing is compiled for them.
"""

from collections.abc import Iterable
from functools import partial

import jax
import numpy as np
import pandas as pd

from sims.problem import SequenceDesign

from .problems import Problem


@partial(jax.jit, static_argnames="n")
def draw_sequences(design: SequenceDesign, keys: jax.Array, n: int) -> jax.Array:
    """Keys of every replicate, (R, n, d)."""
    return jax.vmap(lambda key: design.sample(key, n))(keys)


def errors_of(
    problem: Problem,
    key: jax.Array,
    replicates: int,
    bandwidths: Iterable[Iterable[float]],
) -> pd.DataFrame:
    """Terms of heads over all keys, over slots and over every s-th key, as :func:`terms_of`.

    Args:
        problem: the problem.
        key: of the draws.
        replicates: number of sequences.
        bandwidths: of each of these kinds of heads.
    """
    random = jax.random.split(key, replicates)
    keys = np.asarray(draw_sequences(problem.design, random, problem["keys"]))
    chunks = keys.reshape(replicates, -1, problem["stride"], keys.shape[-1])
    gates = draw_gates(problem, chunks)
    slots = (gates[..., None] * chunks).sum(2)
    values = problem.target.values(keys)
    means = (gates * values.reshape(gates.shape)).sum(-1)
    every = chunks[:, :, 0], values.reshape(gates.shape)[..., 0], np.ones(means.shape)
    kinds = (keys, values, np.ones(values.shape)), (slots, means, (gates**2).sum(-1)), every
    parts = [terms_of(problem, *kind, b) for kind, b in zip(kinds, bandwidths, strict=True)]
    return pd.concat(parts, ignore_index=True)


def draw_gates(problem: Problem, chunks: np.ndarray) -> np.ndarray:
    """A gate for every key of chunks (R, C, s, d), (R, C, s).

    Gates that depend on the keys are sigmoids of a projection, divided by their chunk's sum if
    ``normalised``, or, as in the paper's formula (``printed``), by its mean s/2, a constant that a
    value matrix can absorb.
    """
    if problem.gates is not None:
        return np.broadcast_to(problem.gates, chunks.shape[:-1])
    raw = 1 / (1 + np.exp(-problem["spread"] * chunks @ problem.raw_gates))
    if problem["gates"] == "printed":
        return raw / (problem["stride"] / 2)
    return raw / raw.sum(-1, keepdims=True)


def terms_of(
    problem: Problem,
    keys: np.ndarray,
    values: np.ndarray,
    squares: np.ndarray,
    bandwidths: Iterable[float],
) -> pd.DataFrame:
    """Terms of the heads' average and of a head, a row per bandwidth.

    ``mse`` is of the average; label noise is integrated out, so that an error is
    ``(Σ w_j m_j − m(x))² + σ² Σ w_j² g_j²`` with weights w, values m and squared gates g² of keys
    or slots. ``n_eff`` is a head's ``1/Σ w_j² g_j²``.

    Args:
        problem: the problem.
        keys: of tokens or slots, (R, N, d).
        values: the target's there, (R, N).
        squares: the sum of a slot's squared gates, (R, N).
        bandwidths: whose squares are the temperatures.
    """
    projected = keys[:, None] @ problem.frames
    scores = problem.queries @ problem.frames @ projected.swapaxes(-1, -2)
    if problem["kernel"] == "gaussian":
        scores -= (projected**2).sum(-1)[:, :, None] / 2
    scores -= scores.max(-1, keepdims=True)
    truth = problem.target.values(problem.queries)
    rows = []
    for bandwidth in bandwidths:
        weights = np.exp(scores / bandwidth**2)
        weights /= weights.sum(-1, keepdims=True)
        average = weights.mean(1)
        centre = (average @ values[..., None])[..., 0]
        noise = problem["noise_sd"] ** 2 * (average**2 @ squares[..., None])[..., 0]
        rows.append(
            {
                "mse": ((centre - truth) ** 2 + noise).mean(),
                "n_eff": (1 / (weights**2 @ squares[:, None, :, None])).mean(),
            }
        )
    return pd.DataFrame(rows)
