"""Pilot of a problem: what is tuned, on draws of its own, by which nothing is judged."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sims.problem import TrigonometricSeries

from .frames import draw_rotations
from .keys import KeyLaw
from .moments import Sums, sums_of

GRID = 2.0 ** np.arange(-3.5, 2.51, 0.5)
"""Bandwidths that the pilot tries, over √d_k."""
PENALTIES = 4.0 ** np.arange(-6, 7)
"""Penalties that ridge regression tries, over the number of keys."""
GRID_BATCHES = 16
"""Batches of a pilot on the grid; the rest is spent around the minimum."""
LEAST_QUERIES = 1024
"""Queries of a pilot, at least."""
QUERIES = {64: 64, 512: 16, 4096: 8}
"""Number of keys to queries of a batch."""
ROTATIONS = {64: 4, 512: 1, 4096: 1}
"""Number of keys to rotations of a batch, each of which an equal part of the queries meets."""
TOGETHER = 5
"""Sets that are tuned at a time, always as many, so that few programs are compiled."""


class Tuned(NamedTuple):
    """Best bandwidths of sets, (S,): over their scale, whether inside the grid, and the error."""

    level: np.ndarray
    inside: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class Pilot:
    """Draws of a pilot.

    Attributes:
        law: of keys and queries.
        target: m.
        mean: of m over the keys.
        noise_sd: σ.
        n: number of keys.
        kernel: gaussian or softmax.
        seed: of the draws.
    """

    law: KeyLaw
    target: TrigonometricSeries
    mean: float
    noise_sd: float
    n: int
    kernel: str
    seed: int

    @property
    def batches(self) -> int:
        """Number of batches, of :data:`LEAST_QUERIES` queries in total or more."""
        return max(GRID_BATCHES, LEAST_QUERIES // QUERIES[self.n])

    def draw(self, batch: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Keys of one replicate, how often each was drawn, and queries.

        Errors differ by query, not by the keys that are drawn: one replicate is enough.
        """
        rng = np.random.default_rng([self.seed, 1, batch])
        return self.law.keys(rng, 1, self.n), self.law.queries(rng, QUERIES[self.n])

    def sums(
        self, batch: int, frames: tuple[np.ndarray, np.ndarray], bandwidth: np.ndarray, turned: bool
    ) -> Sums:
        """Sums of a batch for frames of queries and keys (S, H, d, d_k), at bandwidths (S, T, H).

        In float64, so that a problem is the same to rounding whatever the devices that draw it.
        """
        keys, queries = self.draw(batch)
        count, dimension = ROTATIONS[self.n], self.law.dimension
        rotations = np.broadcast_to(np.eye(dimension), (count, 1, 1, dimension, dimension))
        if turned:
            rng = np.random.default_rng([self.seed, 2, batch])
            rotations = draw_rotations(rng, count, dimension)
        groups = [rotations @ array for array in frames]
        return sums_of(self.target, keys, queries, groups, bandwidth, self.kernel, "float64")

    def errors(
        self,
        batches: Iterable[int],
        frames: tuple[np.ndarray, np.ndarray],
        bandwidth: np.ndarray,
        turned: bool,
    ) -> np.ndarray:
        """Mean squared error of each set's average at each temperature, (S, T)."""
        found = []
        for batch in batches:
            sums = self.sums(batch, frames, bandwidth, turned)
            noise = self.noise_sd**2 * sums.ensemble_noise
            found.append((sums.deviation.mean(3) ** 2 + noise).mean((0, 3)))
        return np.mean(found, axis=0)

    def tuned(
        self, frames: tuple[np.ndarray, np.ndarray], scale: np.ndarray, turned: bool = False
    ) -> Tuned:
        """Best bandwidths of :data:`TOGETHER` sets, over the scale of each head, (S, H).

        The grid is read with the first batches, and the three points around its least one with all
        of them. The vertex of a parabola through these in log bandwidth is the best one.
        """
        grid = self.errors(range(GRID_BATCHES), frames, GRID[:, None] * scale[:, None], turned)
        least = grid.argmin(1)
        centre = least.clip(1, len(GRID) - 2)
        around = centre[:, None] + np.arange(-1, 2)
        near = np.take_along_axis(grid, around, 1)
        if self.batches > GRID_BATCHES:
            rest = range(GRID_BATCHES, self.batches)
            finer = self.errors(rest, frames, GRID[around][..., None] * scale[:, None], turned)
            near += (1 - GRID_BATCHES / self.batches) * (finer - near)
        inside = least == centre
        level = np.where(inside, GRID[centre] * (GRID[1] / GRID[0]) ** vertex(near), GRID[least])
        return Tuned(level, inside, np.where(inside, near.min(1), grid.min(1)))

    def gains(
        self, frames: tuple[np.ndarray, np.ndarray], bandwidth: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Best gain of each set's average about the mean of m, (S,), and n_eff of heads, (S, H).

        The gain g of least error of c + g·(average − c), c the mean, at the bandwidths (S, H).
        """
        thrice = np.repeat(bandwidth[:, None], 3, axis=1)  # the program of three temperatures
        keys, top, bottom = [], [], []
        for batch in range(GRID_BATCHES):
            sums = self.sums(batch, frames, thrice, turned=False)
            keys.append(sums.keys[0, :, 0].mean(-1))
            heads = sums.deviation[0, :, 0].mean(1)
            shrunk = self.mean - self.target.values(self.draw(batch)[1])
            noise = self.noise_sd**2 * sums.ensemble_noise[0, :, 0]
            top.append((shrunk * (shrunk - heads)).mean(-1))
            bottom.append(((heads - shrunk) ** 2 + noise).mean(-1))
        return np.sum(top, axis=0) / np.sum(bottom, axis=0), np.mean(keys, axis=0)

    def baselines(self) -> np.ndarray:
        """Least errors of ridge regression on x, and of one head that sees all of x, (2,)."""
        found = []
        for batch in range(self.batches):
            (points, times), queries = self.draw(batch)
            drawn = times[0] > 0
            x, count = points[0][drawn], times[0][drawn]
            values, truth = self.target.values(x), self.target.values(queries)
            errors = []
            for weights in (
                ridge_weights(x, count, queries),
                full_head_weights(x, count, queries, self.kernel == "softmax"),
            ):
                noise = self.noise_sd**2 * (weights**2 / count).sum(-1)
                errors.append(((weights @ values - truth) ** 2 + noise).mean(1))
            found.append(errors)
        return np.asarray(np.mean(found, axis=0).min(1))


def vertex(near: np.ndarray) -> np.ndarray:
    """Place of the least value of parabolas through three points (S, 3) at −1, 0 and 1."""
    before, least, after = near.T
    bend = before - 2 * least + after
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.where(bend > 0, 0.5 * (before - after) / bend, np.sign(before - after))
    return np.asarray(place.clip(-1, 1))


def ridge_weights(points: np.ndarray, times: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Weights of labels in ridge regression with an intercept, at each penalty, (P, Q, n).

    Args:
        points: distinct keys (n, d).
        times: how often each was drawn, (n,).
        queries: (Q, d).
    """
    count = times.sum()
    centre = times @ points / count
    root = times[:, None] ** 0.5
    left, size, right = np.linalg.svd(root * (points - centre), full_matrices=False)
    shrunk = size / (size**2 + count * PENALTIES[:, None, None])
    return np.asarray((((queries - centre) @ right.T) * shrunk) @ (root * left).T + times / count)


def full_head_weights(
    points: np.ndarray, times: np.ndarray, queries: np.ndarray, dot: bool
) -> np.ndarray:
    """Weights of labels in one head that sees all of x, at each bandwidth over √d, (T, Q, n).

    Arguments are those of :func:`ridge_weights`, and whether the kernel is softmax.
    """
    score = queries @ points.T - (0.0 if dot else 0.5) * (points**2).sum(1)
    score = (score - score.max(1, keepdims=True)) / points.shape[1]
    kernel = times * np.exp(score / GRID[:, None, None] ** 2)
    return np.asarray(kernel / kernel.sum(-1, keepdims=True))
