"""Gaps in units of rounding, and how much attention a missing tilt moves."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results


def effects(results: Results) -> Families:
    """Every gap, an effect a point; the attention moved, and its ratio to the law less one."""
    spread = {point: results.number(point, "spread") for point in part(results, "tilt")}
    apart = [point for point, value in spread.items() if value > 0]
    return {
        "one head, float64": gaps(results, "single", "float64"),
        "one head, float32": gaps(results, "single", "float32"),
        "one head, mixed": gaps(results, "single", "mixed"),
        "layer, float64": gaps(results, "layer", "float64"),
        "layer, float32": gaps(results, "layer", "float32"),
        "without the tilt": gaps(results, "tilt", "plain"),
        "with the tilt": gaps(results, "tilt", "tilted"),
        "attention moved": [of_batches(p, moved(results, p), p) for p in apart],
        "attention moved, over the law": [
            of_batches(p, moved(results, p) / law(results, p) - 1, p) for p in apart
        ],
    }


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment: ``single``, ``layer`` or ``tilt``."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def gaps(results: Results, name: str, variable: str) -> list[Effect]:
    """All gaps of a part, an effect a point, with the spread of key norms if there is one."""
    return [
        Effect(
            point,
            values=results.estimates[point][variable].values,
            at={"spread": results.number(point, "spread")},
        )
        for point in part(results, name)
    ]


def moved(results: Results, point: str, variable: str = "total_variation") -> np.ndarray:
    """The share of attention that moves to other keys, one value a batch."""
    return results.estimates[point][variable].mean("replicate").values


def law(results: Results, point: str) -> float:
    """The same as n → ∞."""
    return float(results.prediction(point)["total_variation"])
