"""Errors of heads over the keys of drawn sequences and over their slots, at any temperatures.

NumPy: gates, strides and lengths are data, and nothing is compiled for them.
"""

from collections.abc import Iterable
from functools import partial

import jax
import numpy as np

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
    all_keys: Iterable[float],
    merged: Iterable[float],
) -> dict[str, np.ndarray]:
    """Terms of heads over all keys, then over slots, at these bandwidths, as :func:`terms_of`."""
    random = jax.random.split(key, replicates)
    keys = np.asarray(draw_sequences(problem.design, random, problem.drawn["keys"]))
    values = evaluate_target(problem, keys)
    chunks = (replicates, -1, problem.drawn["stride"])
    gates = draw_gates(problem, keys).reshape(chunks)
    slots = (gates[..., None] * keys.reshape(*chunks, keys.shape[-1])).sum(2)
    means = (gates * values.reshape(chunks)).sum(-1)
    terms = terms_of(problem, keys, values, np.ones(values.shape), all_keys)
    of_slots = terms_of(problem, slots, means, (gates**2).sum(-1), merged)
    return {name: np.concatenate([terms[name], of_slots[name]]) for name in terms}


def evaluate_target(problem: Problem, points: np.ndarray) -> np.ndarray:
    """The target at points (…, d), in NumPy."""
    series = problem.target
    phases = points @ np.asarray(series.frequency).T + np.asarray(series.phase)
    return np.asarray(np.cos(phases) @ np.asarray(series.amplitude))


def draw_gates(problem: Problem, keys: np.ndarray) -> np.ndarray:
    """A gate for every key, (R, n).

    Where they depend on the keys they are sigmoids of a projection: over their chunk's sum if
    ``normalised``, else, as ``printed``, over the mean sum s/2, which a value matrix can undo.
    """
    stride = problem.drawn["stride"]
    replicates, count, _ = keys.shape
    if problem.gates is not None:
        return np.tile(problem.gates, (replicates, count // stride))
    raw = 1 / (1 + np.exp(-problem.drawn["spread"] * keys @ problem.raw_gates))
    if problem.drawn["gates"] == "printed":
        return np.asarray(raw / (stride / 2))
    sums = raw.reshape(replicates, -1, stride).sum(-1)
    return np.asarray(raw / sums.repeat(stride, axis=1))


def terms_of(
    problem: Problem,
    keys: np.ndarray,
    values: np.ndarray,
    squares: np.ndarray,
    bandwidths: Iterable[float],
) -> dict[str, np.ndarray]:
    """Terms of the heads' average and of a head at every bandwidth, (K,).

    ``mse`` and ``variance`` are of the average; label noise is integrated out, so that an error is
    ``(Σ w_j m_j − m(x))² + σ² Σ w_j² g_j²``. ``n_eff`` is a head's ``1/Σ w_j² g_j²``.

    Args:
        problem: the problem.
        keys: of tokens or slots, (R, N, d).
        values: the target's there, (R, N).
        squares: the sum of a slot's squared gates, (R, N).
        bandwidths: whose squares are the temperatures.
    """
    projected = keys[:, None] @ problem.frames
    scores = problem.queries @ problem.frames @ projected.swapaxes(-1, -2)
    if problem.drawn["kernel"] == "gaussian":
        scores -= (projected**2).sum(-1)[:, :, None] / 2
    scores -= scores.max(-1, keepdims=True)
    truth = evaluate_target(problem, problem.queries)
    terms: dict[str, list[float]] = {"mse": [], "variance": [], "n_eff": []}
    for bandwidth in bandwidths:
        weights = np.exp(scores / bandwidth**2)
        weights /= weights.sum(-1, keepdims=True)
        average = weights.mean(1)
        centre = (average @ values[..., None])[..., 0]
        noise = problem.drawn["noise_sd"] ** 2 * (average**2 @ squares[..., None])[..., 0]
        terms["mse"].append(((centre - truth) ** 2 + noise).mean())
        terms["variance"].append((centre.var(0, ddof=1) + noise.mean(0)).mean())
        terms["n_eff"].append((1 / (weights**2 @ squares[:, None, :, None])).mean())
    return {name: np.array(column) for name, column in terms.items()}
