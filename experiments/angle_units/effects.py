"""Pairs of lines in a plane, all at once: what the angle between two heads decides, and where.

Heads of one point are many, and a statistic of two of them is read off the covariances between all.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, jackknife
from sims.study.results import Results

Pair = tuple[float, float]
"""Two lines, by the angles at which they stand in their plane, in degrees."""
Heads = tuple[int, int]
"""Two heads of a point, by their places."""

KERNEL, DESIGN, UNIT = "heads.kernel", "design", "heads.bandwidth"
SLOPED, CUBE = "correlation 0.9", "cube"
"""Labels of the laws of keys that are not N(0, I)."""
TARGETS, DIRECTIONS = "targets of one direction", "prescribed angles"
"""Labels of the populations."""
MAJOR, MINOR = 45.0, 135.0
"""Where the principal axes of Σ stand, of two coordinates of equal variance."""
AXES, COORDINATES = (MAJOR, MINOR), (0.0, 90.0)
"""The two orthogonal pairs that differ most: along the axes of Σ, and at 45° to both."""


def effects(results: Results) -> Families:
    """Rivals of the pair along the axes, differences at one principal angle, and the law."""
    found: Families = {
        "rival of the axes": [],
        "rise from the orthogonal pair": [],
        "rise from the Σ-orthogonal pair": [],
        "correlation at one principal angle": [],
        "decorrelation at one principal angle": [],
        "correlation at one canonical correlation": [],
        "total correlation": [],
        "total decorrelation": [],
        "label noise": [],
        "decorrelation against the law": [],
    }
    for name in results.points:
        at = facts(results, name)
        if at["keys"] == SLOPED:
            for family, members in of_sloped_keys(results, name, at).items():
                found[family] += members
        elif at["keys"] == CUBE:
            pairs = [heads_of(results, name, pair) for pair in (COORDINATES, AXES)]
            found["decorrelation at one principal angle"].append(
                apart(results, name, *pairs, at={**at, "angle": 90.0}, less=True)
            )
        elif at["population"] == TARGETS:
            for family, members in of_targets(results, name, at).items():
                found[family] += members
        else:
            found["decorrelation against the law"] += against_law(results, name, at)
    return found


def of_sloped_keys(results: Results, name: str, at: Mapping[str, float | str]) -> Families:
    """Keys N(0, Σ): every pair against the axes, and pairs about the axes against one another."""

    def heads(pair: Pair) -> Heads:
        return heads_of(results, name, pair)

    axes, between = heads(AXES), heads(COORDINATES)
    symmetric = {
        angle: (heads(about(MAJOR, angle)), heads(about(MINOR, angle))) for angle in opened(results)
    }
    narrow = symmetric[min(symmetric)][1]
    rivals = [p for p in combinations(range(len(lines(results, name))), 2) if p != axes]
    alike = [(angle, *pairs) for angle, pairs in symmetric.items()] + [(90.0, between, axes)]
    each = [pair for pairs in symmetric.values() for pair in pairs]
    return {
        "rival of the axes": [
            apart(results, name, pair, axes, at=at, less=True) for pair in rivals
        ],
        "rise from the orthogonal pair": [
            rise(
                results,
                name,
                pair,
                between,
                at={**at, "pair": "Σ-orthogonal" if pair == narrow else "other"},
            )
            for pair in each
        ],
        "rise from the Σ-orthogonal pair": [
            rise(results, name, pair, narrow, at=at) for pair in (*each, between) if pair != narrow
        ],
        "correlation at one principal angle": [
            apart(results, name, *pairs, at={**at, "angle": angle}) for angle, *pairs in alike
        ],
        "decorrelation at one principal angle": [
            apart(results, name, *pairs, at={**at, "angle": angle}, less=True)
            for angle, *pairs in alike
        ],
        "correlation at one canonical correlation": [apart(results, name, axes, narrow, at=at)],
    }


def of_targets(results: Results, name: str, at: Mapping[str, float | str]) -> Families:
    """Targets of one direction: two pairs at one angle, in all that heads give and in the noise."""
    found: Families = {"total correlation": [], "total decorrelation": [], "label noise": []}
    everything = ("signal", "noise")
    for two in results.settings["sided"]:
        own = {**at, "angle": float(two["angle"])}
        pairs = [(int(first), int(second)) for first, second in (two["first"], two["second"])]
        found["total correlation"].append(apart(results, name, *pairs, at=own, parts=everything))
        found["total decorrelation"].append(
            apart(results, name, *pairs, at=own, parts=everything, less=True)
        )
        found["label noise"].append(apart(results, name, *pairs, at=own))
    return found


def facts(results: Results, name: str) -> dict[str, float | str]:
    """What claims select effects of a point by."""
    own = results.coordinates[name]
    return {
        "kernel": str(own[KERNEL]),
        "bandwidth": np.nan if isinstance(own[UNIT], str) else results.number(name, UNIT),
        "unit": "own" if isinstance(own[UNIT], str) else "common",
        "keys": str(own[DESIGN]),
        "population": str(own["population"]),
    }


def opened(results: Results) -> list[float]:
    """Principal angles below 90° at which pairs stand about either axis, in degrees."""
    return [float(angle) for angle in results.settings["opened"]]


def about(axis: float, angle: float) -> Pair:
    """The pair at a principal angle to either side of an axis, the lower line first."""
    first, second = sorted((axis + side * angle / 2) % 180 for side in (-1, 1))
    return first, second


def lines(results: Results, name: str) -> list[float]:
    """Where the lines of a point stand, in degrees."""
    return [float(angle) for angle in results.problems[name]["heads"]["frames"]["angles"]]


def heads_of(results: Results, name: str, pair: Pair) -> Heads:
    """The heads of a point that stand along two lines.

    Raises:
        ValueError: a line is not, or not once, among the heads.
    """
    angles = np.asarray(lines(results, name))
    places = [np.flatnonzero(np.isclose(angles, line, rtol=0, atol=1e-4)) for line in pair]
    if any(len(place) != 1 for place in places):
        raise ValueError(f"{name}: {pair} is not among the lines {angles.tolist()}")
    return int(places[0][0]), int(places[1][0])


def parts_of(
    results: Results, name: str, pair: Heads, parts: Sequence[str] = ("noise",)
) -> dict[str, np.ndarray]:
    """Batches of a pair's covariance and of the mean variance of its two heads.

    Parts of the variance, ``signal`` and ``noise``, add up.
    """
    first, second = pair
    data = results.estimates[name]
    whole = np.sum([data[f"integrated_{part}_covariance"].values for part in parts], axis=0)
    variance = (whole[:, first, first] + whole[:, second, second]) / 2
    return {"covariance": whole[:, first, second], "variance": variance}


def correlation(terms: Batches) -> np.ndarray:
    """Of two heads: the share of their mean variance that an average of both does not lower.

    The variance of the average is (1 + ρ)/2 of the mean variance, whether or not both are equal.
    """
    return np.asarray(terms["covariance"] / terms["variance"])


def of_two(
    results: Results, name: str, pairs: Sequence[Heads], parts: Sequence[str] = ("noise",)
) -> dict[str, np.ndarray]:
    """The batches of two pairs of one point, by the place of the pair and the term."""
    own = [parts_of(results, name, pair, parts) for pair in pairs]
    return {f"{place} {k}": v for place, terms in enumerate(own) for k, v in terms.items()}


def both(terms: Batches) -> list[np.ndarray]:
    """The correlations of the two pairs of :func:`of_two`."""
    return [
        correlation({k: terms[f"{place} {k}"] for k in ("covariance", "variance")})
        for place in (0, 1)
    ]


def apart(
    results: Results,
    name: str,
    first: Heads,
    second: Heads,
    *,
    at: Mapping[str, float | str],
    parts: Sequence[str] = ("noise",),
    less: bool = False,
) -> Effect:
    """ρ of the first pair over that of the second, less 1, paired; ``less``: of 1 − ρ."""

    def statistic(terms: Batches) -> np.ndarray:
        one, other = (1 - rho if less else rho for rho in both(terms))
        return np.asarray(one / other - 1)

    values = jackknife(of_two(results, name, (first, second), parts), statistic)
    return of_batches(f"{name}: heads {first} against {second}", values, name, at=at)


def rise(
    results: Results, name: str, first: Heads, second: Heads, *, at: Mapping[str, float | str]
) -> Effect:
    """Noise correlation of the first pair less that of the second, paired."""

    def statistic(terms: Batches) -> np.ndarray:
        one, other = both(terms)
        return np.asarray(one - other)

    values = jackknife(of_two(results, name, (first, second)), statistic)
    return of_batches(f"{name}: heads {first} less {second}", values, name, at=at)


def against_law(results: Results, name: str, at: Mapping[str, float | str]) -> list[Effect]:
    """1 − ρ of the first line and each other over that of the law, less 1."""
    theory = results.predictions[name]
    start, *others = lines(results, name)
    out = []
    for place, line in enumerate(others):
        law = float(theory["law"][place])

        def statistic(terms: Batches, law: float = law) -> np.ndarray:
            return np.asarray((1 - correlation(terms)) / (1 - law) - 1)

        values = jackknife(
            parts_of(results, name, heads_of(results, name, (start, line))), statistic
        )
        gap = float(theory["alternative_gap"][place])
        out.append(
            of_batches(
                f"{name}, {line:g}°",
                values,
                name,
                unit="problems",
                at={**at, "angle": line, "alternative_gap": gap},
            )
        )
    return out
