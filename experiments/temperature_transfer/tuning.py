"""Tuning at one number of keys: the parameter of least error, and errors between the grid's."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

BETWEEN = 16
"""Places at which the least error is looked for, between neighbouring parameters of the grid."""


class Kept(NamedTuple):
    """A rule whose parameter was tuned at the first size.

    Attributes:
        error: with the parameter that is kept, (..., size).
        best: with the one of least error at each size.
        tuned: logarithm of that one.
        held: logarithm of the one that is kept.
    """

    error: np.ndarray
    best: np.ndarray
    tuned: np.ndarray
    held: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """What not re-tuning costs, as a share of the least error."""
        return self.error / self.best - 1


def kept(mse: np.ndarray, logs: np.ndarray, growth: np.ndarray | float = 0.0) -> Kept:
    """Tune at the first size and keep the parameter at all others.

    Args:
        mse: (..., step, size), positive; NaN where there is none.
        logs: logarithms of the grid of parameters, (step,), increasing.
        growth: logarithm by which the parameter is multiplied at each size, (size,).
    """
    tuned, best = least(mse, logs)
    held = tuned[..., :1] + growth
    return Kept(between(mse, logs, held), best, tuned, held)


def least(mse: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the error is least and how large it is there; (..., size).

    Of a cubic of its logarithm, which is continuous in the errors, as the jackknife asks: a
    parabola through the least three jumps where the second and the third change places. NaN where
    the error is least at an end of what there is of the grid.
    """
    fine, weights = _fine(tuple(logs))
    absent = np.isnan(mse)
    curve = np.einsum("fs,...sn->...fn", weights, np.log(np.where(absent, 1.0, mse)))
    touched = np.einsum("fs,...sn->...fn", (weights != 0).astype(float), absent.astype(float)) > 0
    curve = np.where(touched, np.inf, curve)
    at = np.clip(curve.argmin(axis=-2), 1, len(fine) - 2)[..., None, :]
    low, mid, high = (np.take_along_axis(curve, at + k, axis=-2)[..., 0, :] for k in (-1, 0, 1))
    inside = np.isfinite(low) & np.isfinite(high) & (mid <= low) & (mid <= high)
    low, mid, high = (np.where(inside, part, 0.0) for part in (low, mid, high))
    bend = low - 2 * mid + high
    shift = np.where(inside, 0.5 * (low - high) / np.where(bend > 0, bend, 1.0), np.nan)
    place = fine[at[..., 0, :]]
    step = fine[np.minimum(at[..., 0, :] + 1, len(fine) - 1)] - place
    return place + step * shift, np.where(inside, np.exp(mid), np.nan)


def between(values: np.ndarray, logs: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Positive values (..., step, size) at parameters off the grid, (..., size); NaN outside."""
    at = np.broadcast_to(at, np.broadcast_shapes(at.shape, values[..., 0, :].shape))
    outside = ~((at >= logs[0]) & (at <= logs[-1]))
    first, weights = _cubic(logs, np.where(outside, logs[0], at))
    near = np.stack(
        [
            np.take_along_axis(values, (first + j)[..., None, :], axis=-2)[..., 0, :]
            for j in range(4)
        ]
    )
    return np.where(outside, np.nan, np.exp(np.sum(weights * np.log(near), axis=0)))


def _cubic(logs: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First of the four nodes about each place, and Lagrange's weights of them, (4, ...)."""
    first = np.clip(np.searchsorted(logs, at, side="right") - 2, 0, len(logs) - 4)
    nodes = np.stack([logs[first + j] for j in range(4)])
    weights = [
        np.prod([(at - nodes[k]) / (nodes[j] - nodes[k]) for k in range(4) if k != j], axis=0)
        for j in range(4)
    ]
    return first, np.stack(weights)


@lru_cache(maxsize=64)
def _fine(logs: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A grid between the grid's points, and the matrix that interpolates from these."""
    nodes = np.array(logs)
    count = BETWEEN * (len(nodes) - 1) + 1
    fine = np.interp(np.arange(count) / BETWEEN, np.arange(len(nodes)), nodes)
    first, weights = _cubic(nodes, fine)
    matrix = np.zeros((count, len(nodes)))
    for j in range(4):
        matrix[np.arange(count), first + j] = weights[j]
    return fine, matrix
