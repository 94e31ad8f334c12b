"""Variance of the average of H heads over the mean variance of one, at fixed angles."""

from itertools import pairwise

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, jackknife
from sims.study.results import Results

PARTS = ("ensemble_variance", "variance")
POPULATION = "population"


def effects(results: Results) -> Families:
    """Gaps of the ratio to 1 and to exact theory, and its paired steps in angle and in H."""
    names = grid(results)
    angles, counts = (sorted(set(axis)) for axis in zip(*names, strict=True))
    few, most = counts[-2:]
    drawn = populations(results)
    before, after = (names[next(angle for angle in angles if angle > 0), h] for h in (few, most))
    return {
        # Heads of one subspace are one head: an identity of every draw, here of every batch.
        "aligned heads": [
            Effect(f"H = {h:g}", values=kept(batches(results, names[0, h])) - 1)
            for h in counts
            if h > 1
        ],
        "gap to theory": [
            gap(results, name) for name in results.points if "exact" in results.orders(name)
        ],
        "step of the angle": [
            fall(results, names[angle, most], names[wider, most])
            for angle, wider in pairwise(angles)
        ],
        "last doubling": [fall(results, before, after).scaled(1 / ratio(results, before).value)],
        "step of the angle, drawn": [
            fall(
                results, at[angle, max(h for _, h in at)], at[wider, max(h for _, h in at)], kernel
            )
            for kernel, at in drawn.items()
            for angle, wider in pairwise(sorted({angle for angle, _ in at}))
        ],
        "last doubling, drawn": [doubling(results, at, kernel) for kernel, at in drawn.items()],
        **with_diversity(results, drawn),
    }


Places = dict[tuple[float, float], str]
"""(angle, H) to the name of the point."""


def grid(results: Results) -> Places:
    """The points of one fixed problem each."""
    fixed = [p for p in results.points if results.coordinates[p].get(POPULATION) is None]
    return placed(results, fixed)


def populations(results: Results) -> dict[str, Places]:
    """By kernel, the populations in which wider angles and more heads are compared."""
    names: dict[str, list[str]] = {}
    for point in results.points:
        if results.coordinates[point].get(POPULATION) == "wider angle":
            names.setdefault(str(results.coordinates[point]["heads.kernel"]), []).append(point)
    return {kernel: placed(results, points) for kernel, points in names.items()}


def placed(results: Results, points: list[str]) -> Places:
    """The points by their angle and number of heads."""
    paths = ("heads.frames.angle", "heads.count")
    return {
        (results.number(name, paths[0]), results.number(name, paths[1])): name for name in points
    }


def doubling(results: Results, at: Places, kernel: str) -> Effect:
    """Share of the variance that the last doubling removes, at the least angle above 0."""
    least = min(angle for angle, _ in at if angle > 0)
    few, most = sorted(h for angle, h in at if angle == least)[-2:]
    first, second = at[least, few], at[least, most]
    return fall(results, first, second, kernel).scaled(1 / ratio(results, first).value)


def with_diversity(results: Results, drawn: dict[str, Places]) -> Families:
    """The last doubling at the widest angle, and at the least above 0 over that, of each kernel.

    What it removes is :func:`removed`. A kernel is passed over unless both H are at both angles.
    """
    at_widest: list[Effect] = []
    shares: list[Effect] = []
    of_one_head: list[Effect] = []
    for kernel, at in drawn.items():
        few, most = sorted({h for _, h in at})[-2:]
        angles = min(angle for angle, _ in at if angle > 0), max(angle for angle, _ in at)
        places = {(angle, h): at.get((angle, h)) for angle in angles for h in (few, most)}
        points = [name for name in places.values() if name is not None]
        if len(points) < len(places):
            continue
        count = min(map(results.batches, points))
        terms = {
            f"{part} {place}": values
            for place, name in zip(("few", "most", "few apart", "most apart"), points, strict=True)
            for part, values in batches(results, name, count).items()
        }
        for family, statistic, own in (
            (at_widest, lambda means: removed(means, " apart"), points[2:]),
            (shares, lambda means: removed(means) / removed(means, " apart"), points),
            (of_one_head, in_units_of_one_head, points),
        ):
            values = jackknife(terms, statistic)
            label = f"{kernel}, {few:g} to {most:g} heads"
            family.append(of_batches(label, values, own, unit="problems", at={"kernel": kernel}))
    gain = "gain at the least angle over gain of orthogonal heads"
    return {
        "last doubling of orthogonal heads, drawn": at_widest,
        f"{gain}, drawn": shares,
        f"{gain}, of one head, drawn": of_one_head,
    }


def removed(terms: Batches, which: str = "", share: bool = True) -> np.ndarray:
    """``1 − r(2H)/r(H)``, what a doubling removes of the variance that is left.

    Args:
        terms: what the ratios r are made of, by part and place ("few" and "most" heads).
        which: what follows the name of the place, of another angle.
        share: False takes ``r(H) − r(2H)``, in units of one head's variance.
    """
    few, most = (
        kept({part: terms[f"{part} {place}{which}"] for part in PARTS}) for place in ("few", "most")
    )
    return (few - most) / few if share else few - most


def in_units_of_one_head(terms: Batches) -> np.ndarray:
    """What a doubling removes at the least angle over what it removes at the widest one."""
    return removed(terms, share=False) / removed(terms, " apart", share=False)


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


def predicted(results: Results, point: str) -> float:
    """The ratio by first-order theory."""
    theory = results.prediction(point)
    return float(theory[PARTS[0]] / theory[PARTS[1]])


def gap(results: Results, point: str) -> Effect:
    """Simulated over exact ratio of a population, less 1, paired problem by problem."""
    theory, data = results.prediction(point, "exact"), results.estimates[point]
    each = {f"exact {part}": theory[f"each_{part}"].values for part in PARTS}
    values = jackknife(
        {part: data[part].values for part in PARTS} | each,
        lambda terms: kept(terms) / kept({part: terms[f"exact {part}"] for part in PARTS}),
    )
    bound = sum(float(theory[f"{part}_error"] / theory[part]) for part in PARTS)
    exact = float(theory[PARTS[0]] / theory[PARTS[1]])
    at: dict[str, float | str] = {
        "kernel": str(results.coordinates[point]["heads.kernel"]),
        "first_order_gap": abs(predicted(results, point) / exact - 1),
    }
    return of_batches(point, values - 1, point, bound=bound, unit="problems", at=at)


def fall(results: Results, first: str, second: str, kernel: str = "gaussian") -> Effect:
    """Ratio at the first point less ratio at the second, over common draws."""
    count = min(results.batches(name) for name in (first, second))
    one, other = (jackknife(batches(results, name, count), kept) for name in (first, second))
    return of_batches(f"{first} to {second}", one - other, (first, second), at={"kernel": kernel})
