"""Variance of the average of H heads over the mean variance of one, at fixed angles."""

from itertools import pairwise

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, jackknife
from sims.study.results import Results

PARTS = ("ensemble_variance", "variance")


def effects(results: Results) -> Families:
    """Gaps of the ratio to 1 and to exact theory, and its paired steps in angle and in H."""
    names = grid(results)
    angles, counts = (sorted(set(axis)) for axis in zip(*names, strict=True))
    spread = [names[angle, h] for angle in angles for h in counts if angle > 0 and h > 1]
    few, most = counts[-2:]
    before, after = (names[next(angle for angle in angles if angle > 0), h] for h in (few, most))
    return {
        # Heads of one subspace are one head: an identity of every draw, here of every batch.
        "aligned heads": [
            Effect(f"H = {h:g}", values=kept(batches(results, names[0, h])) - 1)
            for h in counts
            if h > 1
        ],
        "gap to theory": [gap(results, name) for name in spread],
        "step of the angle": [
            fall(results, names[angle, most], names[wider, most])
            for angle, wider in pairwise(angles)
        ],
        "last doubling": [fall(results, before, after).scaled(1 / ratio(results, before).value)],
    }


def grid(results: Results) -> dict[tuple[float, float], str]:
    """(angle, H) to the name of the point."""
    paths = ("heads.frames.angle", "heads.count")
    return {
        (results.number(name, paths[0]), results.number(name, paths[1])): name
        for name in results.points
    }


def kept(terms: Batches) -> np.ndarray:
    """Variance of the ensemble over the mean variance of a head."""
    return terms["ensemble_variance"] / terms["variance"]


def batches(results: Results, point: str, count: int | None = None) -> Batches:
    """The first batches of what the ratio is made of, or all of them."""
    data = results.estimates[point]
    return {part: data[part].values[:count] for part in PARTS}


def ratio(results: Results, point: str) -> Effect:
    """The simulated ratio at a point."""
    return of_batches(point, jackknife(batches(results, point), kept), point)


def predicted(results: Results, point: str) -> tuple[float, float]:
    """The ratio by exact theory, and a bound on its relative error."""
    theory = results.prediction(point, "exact")
    slack = sum(float(theory[f"{part}_error"] / theory[part]) for part in PARTS)
    return float(theory[PARTS[0]] / theory[PARTS[1]]), slack


def gap(results: Results, point: str) -> Effect:
    """Simulated over predicted ratio, less 1."""
    theory, slack = predicted(results, point)
    values = jackknife(batches(results, point), kept) / theory - 1
    return of_batches(point, values, point, bound=slack)


def fall(results: Results, first: str, second: str) -> Effect:
    """Ratio at the first point less ratio at the second, over common draws."""
    count = min(results.batches(name) for name in (first, second))
    one, other = (jackknife(batches(results, name, count), kept) for name in (first, second))
    return of_batches(f"{first} to {second}", one - other, (first, second))
