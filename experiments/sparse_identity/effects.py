"""Gaps in units of rounding, shares of rows, and the gap to softmax by ν."""

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.study.results import Results


def effects(results: Results) -> Families:
    """Every gap, an effect a point and quantity; shares and gaps, one a point."""
    powers = {"sparsemax": lambda nu: nu == 1, "entmax": lambda nu: nu > 1}
    norms = {"distance": "distance", "equal norms": "equal"}
    families = {
        f"{rule}, {words}": [
            gap(results, point, name)
            for point in part(results, where)
            if chosen(results.number(point, "power"))
            for name in ("weights", "denominator")
        ]
        for rule, chosen in powers.items()
        for words, where in norms.items()
    }
    for words, where in {"relu": "relu", "relu of the gap": "gap"}.items():
        families[f"{words}, equal norms"] = [
            gap(results, point, "weights") for point in part(results, where)
        ]
    for rule in ("sparsemax", "relu"):
        families[f"{rule}, nearer key left out"] = [
            of_batches(point, batches(results, point, rule), point)
            for point in part(results, "literal")
        ]
    families["empty rows"] = [
        of_batches(point, batches(results, point, "empty") - law(results, point), point)
        for point in part(results, "empty")
    ]
    families["gap to softmax"] = [
        of_batches(point, batches(results, point, "gap"), point, x=results.number(point, "power"))
        for point in part(results, "softmax")
    ]
    return families


def part(results: Results, name: str) -> list[str]:
    """Points of one part of the experiment."""
    return [point for point in results.points if results.coordinates[point]["part"] == name]


def gap(results: Results, point: str, variable: str) -> Effect:
    """All gaps of a point."""
    return Effect(f"{point}, {variable}", values=results.estimates[point][variable].values)


def batches(results: Results, point: str, variable: str) -> np.ndarray:
    """A variable's mean over replicates, one value a batch."""
    return results.estimates[point][variable].mean("replicate").values


def law(results: Results, point: str) -> float:
    """The probability of an empty row."""
    return float(results.prediction(point)["empty"])
