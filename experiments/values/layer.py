"""A layer of heads at a point of an arm: what it writes, its error, and its best temperatures.

Head h averages the values v_hi and writes B_h times the average, over H::

    F = Σ_h B_h Σ_i w_hi v_hi / H,    B_h·B_g = κ for h ≠ g,    |B_h| = 1    (outputs)
    F = Σ_h Σ_i w_hi v_hi / H,        v_h = √κ y + √(1 − κ) y_h             (values)

y are labels of the target m that all heads share, y_h labels of a target of the head's own; both
have the same law and independent noise of variance σ². Given keys, the noise of F has in both arms
the variance ``σ² Σ_hg κ_hg Σ_i w_hi w_gi / H²`` with κ_hh = 1, by algebra.
"""

from collections.abc import Mapping

import numpy as np

from sims.problem import TrigonometricSeries

from ..house.frames import draw_rotations
from ..house.moments import averages_of
from ..house.pilot import GRID, GRID_BATCHES, LEAST_QUERIES, vertex
from ..house.problems import Problem, draw_target
from ..house.sets import ALIGNED, COMMON, HAAR, OWN_BEST
from .points import ENDS, POINTS, Point

ROTATIONS = 4
"""Rotations of a batch of the pilot, each of which an equal part of the queries meets."""


def layer_output(point: Point, shared: np.ndarray, own: np.ndarray) -> np.ndarray:
    """What a layer writes, by direction of its output, (C, …, Q).

    ``B_h = √κ e_0 + √(1 − κ) e_h`` where outputs are apart, so that C = H + 1; else C = 1.

    Args:
        point: of an arm.
        shared: averages of the values that all heads share, (…, H, Q).
        own: averages of the heads' own values.
    """
    together = np.sqrt(point.alignment) * shared.mean(-2)
    rest = np.sqrt(1 - point.alignment)
    if point.arm == "values":
        return np.asarray(together + rest * own.mean(-2))[None]
    heads = np.moveaxis(shared, -2, 0)
    return np.concatenate([together[None], rest / len(heads) * heads])


def label_noise(
    point: Point, ensemble_noise: np.ndarray, noise: np.ndarray, heads: int
) -> np.ndarray:
    """The noise of the layer given keys over σ², by the identity above.

    Args:
        point: of an arm.
        ensemble_noise: ``Σ_i w²`` of the heads' mean weights.
        noise: the same of a head, mean over heads.
        heads: H.
    """
    return np.asarray(point.alignment * ensemble_noise + (1 - point.alignment) * noise / heads)


def own_targets(problem: Problem) -> list[TrigonometricSeries]:
    """A target of each head's own, by the law of the problem's, of the same variance."""
    dimension, heads, width = problem.fields["size"]
    rng = np.random.default_rng(problem.fields["pilot"])
    sample, times = problem.law.keys(rng, 1, 4096)
    targets = []
    for head in range(heads):
        drawn: Mapping[str, object] = problem.fields | {"target": [problem.fields["target"], head]}
        series = draw_target(drawn, dimension, width)
        values = series.values(sample[0])
        variance = np.average(
            (values - np.average(values, weights=times[0])) ** 2, weights=times[0]
        )
        amplitude = np.asarray(series.amplitude) * (problem.variance / variance) ** 0.5
        targets.append(TrigonometricSeries(amplitude, series.frequency, series.phase))
    return targets


def tuned_bandwidths(problem: Problem, targets: list[TrigonometricSeries]) -> np.ndarray:
    """Bandwidths of either end's least error at every point, (2, P, H), random heads' first.

    A pilot on draws of its own finds them on the grid of ``house``, with a parabola around the
    least error. Those of shared values are the problem's.
    """
    heads, width = problem.heads, problem.fields["size"][2]
    scale = width**0.5
    frames = problem.key_frames[[ALIGNED, HAAR]]
    tried = np.broadcast_to(GRID[:, None] * scale, (len(ENDS), len(GRID), heads))
    errors = np.zeros((len(ENDS), len(POINTS), len(GRID)))
    for batch in range(GRID_BATCHES):
        rng = np.random.default_rng([problem.fields["pilot"], 3, batch])
        keys = problem.law.keys(rng, 1, problem.n)
        queries = problem.law.queries(rng, LEAST_QUERIES // GRID_BATCHES)
        turned = draw_rotations(rng, ROTATIONS, problem.law.dimension) @ frames
        values, truth = values_of(problem, targets, keys[0], queries)
        found = averages_of(
            keys, values, queries, (turned, turned), tried, problem.fields["kernel"], "float64"
        )
        deviation = found.columns[0] - truth
        for place, point in enumerate(POINTS):
            output = layer_output(point, deviation[..., 0], deviation[..., 1])
            noise = label_noise(point, found.ensemble_noise[0], found.noise[0], heads)
            errors[:, place] += ((output**2).sum(0) + problem.noise_sd**2 * noise).mean(-1)
    flat = errors.reshape(-1, len(GRID))
    centre = flat.argmin(1).clip(1, len(GRID) - 2)
    near = np.take_along_axis(flat, centre[:, None] + np.arange(-1, 2), 1)
    level = GRID[centre] * (GRID[1] / GRID[0]) ** vertex(near)
    bandwidth = np.repeat(level.reshape(len(ENDS), len(POINTS), 1), heads, axis=2) * scale
    bandwidth = bandwidth[::-1].copy()
    bandwidth[:, 0] = problem.equal_bandwidth[HAAR, [COMMON, OWN_BEST]]
    return bandwidth


def values_of(
    problem: Problem,
    targets: list[TrigonometricSeries],
    points: np.ndarray,
    queries: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The target and the own target of each head at keys, (R, H, n, 2), and queries, (H, Q, 2)."""
    at_keys = [problem.target.values(points), problem.target.values(queries)]
    columns = np.stack([target.values(points) for target in targets], axis=1)
    shared = np.broadcast_to(at_keys[0][:, None], columns.shape)
    truth = np.stack([target.values(queries) for target in targets])
    return (
        np.stack([shared, columns], axis=-1),
        np.stack([np.broadcast_to(at_keys[1], truth.shape), truth], axis=-1),
    )
