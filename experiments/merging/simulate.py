"""Errors of heads over keys and over slots at many bandwidths.

NumPy: gates, strides and lengths are data, and nothing is compiled for them.
"""

from collections.abc import Mapping
from functools import partial

import jax
import numpy as np

from sims.montecarlo import Draw
from sims.problem import SequenceDesign

from .problems import GRID, Problem


@partial(jax.jit, static_argnames="n")
def sequences(design: SequenceDesign, keys: jax.Array, n: int) -> jax.Array:
    """Keys of every replicate, (R, n, d)."""
    return jax.vmap(lambda key: design.sample(key, n))(keys)


def errors(draw: Draw, replicates: int, problem: Problem) -> Mapping[str, np.ndarray]:
    """Mean squared error and variance of the heads' average, (over, bandwidth)."""
    fields = problem.drawn
    keys = np.asarray(
        sequences(problem.design, jax.random.split(draw.key, replicates), fields["keys"])
    )
    values = target(problem, keys)
    chunks = (replicates, -1, fields["stride"])
    gates = gates_of(problem, keys).reshape(chunks)
    slots = np.einsum("rjs,rjsd->rjd", gates, keys.reshape(*chunks, keys.shape[-1]))
    means = (gates * values.reshape(chunks)).sum(-1)
    unmerged = moments(problem, keys, values, np.ones(values.shape))
    merged = moments(problem, slots, means, (gates**2).sum(-1))
    return dict(zip(("mse", "variance"), np.stack([unmerged, merged], 1), strict=True))


def target(problem: Problem, points: np.ndarray) -> np.ndarray:
    """The target at points (…, d), in NumPy."""
    series = problem.target
    return np.asarray(np.cos(points @ series.frequency.T + series.phase) @ series.amplitude)


def gates_of(problem: Problem, keys: np.ndarray) -> np.ndarray:
    """A gate for every key, (R, n).

    Where they depend on the keys they are sigmoids of a projection: over their chunk's sum if
    ``normalised``, else, as ``printed``, over the mean sum s/2, which a value matrix can undo.
    """
    fields, (replicates, n, _) = problem.drawn, keys.shape
    if problem.gates is not None:
        return np.tile(problem.gates, (replicates, n // fields["stride"]))
    raw = 1 / (1 + np.exp(-fields["spread"] * keys @ problem.raw_gates))
    if fields["gates"] == "printed":
        return np.asarray(raw / (fields["stride"] / 2))
    sums = raw.reshape(replicates, -1, fields["stride"]).sum(-1)
    return np.asarray(raw / sums.repeat(fields["stride"], axis=1))


def moments(
    problem: Problem, keys: np.ndarray, values: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """Mean squared error and variance of the heads' average at every bandwidth, (2, K).

    Label noise is integrated out: an error is ``(Σ w_j m_j − m(x))² + σ² Σ w_j² g_j²``.

    Args:
        problem: the problem.
        keys: of tokens or slots, (R, N, d).
        values: the target's there, (R, N).
        squares: the sum of a slot's squared gates, (R, N).
    """
    asks, tells = problem.queries @ problem.frames, keys[:, None] @ problem.frames
    scores = asks @ tells.swapaxes(-1, -2)
    if problem.drawn["kernel"] == "gaussian":
        scores -= (tells**2).sum(-1)[:, :, None] / 2
    scores = scores.swapaxes(1, 2) - scores.max(-1).swapaxes(1, 2)[..., None]
    kernel, rows = np.exp(scores / (GRID[-1] * problem.bandwidth) ** 2), []
    columns = np.stack([np.ones(values.shape), values], -1)[:, None]
    truth = target(problem, problem.queries)
    for _ in GRID:
        mass, sums = np.moveaxis(kernel @ columns, -1, 0)
        centre = (sums / mass).mean(-1)
        overlap = (kernel * squares[:, None, None]) @ kernel.swapaxes(-1, -2)
        overlap /= mass[..., None] * mass[..., None, :]
        noise = problem.drawn["noise_sd"] ** 2 * overlap.mean((-1, -2))
        error = ((centre - truth) ** 2 + noise).mean()
        rows.append([error, (centre.var(0, ddof=1) + noise.mean(0)).mean()])
        kernel *= kernel  # half the temperature
    return np.array(rows[::-1]).T
