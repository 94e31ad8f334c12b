"""Classes of problems: those of one class share a compiled program, and are counted together.

A class is read off the problems as data: nothing is built to sort them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.errors import InputError
from sims.study.grid import Point, point_errors
from sims.study.planning import Cost, check_covered, cost
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec


@dataclass(frozen=True)
class ProblemClass:
    """Problems that differ in numbers alone.

    Attributes:
        points: the problems.
        cost: of each.
        uncovered: why theory has nothing about them; empty if it has.
    """

    points: list[Point]
    cost: Cost
    uncovered: str


def classify(
    points: Sequence[Point], simulation: SimulationSpec, theory: TheorySpec
) -> list[ProblemClass]:
    """The classes of problems, in the order of their first ones.

    Of the problems of one shape but for n only the first is built, and those with the least and the
    largest value of every coordinate: numbers that are allowed lie in ranges.

    Raises:
        InputError: a problem is impossible; the line names it.
    """
    shapes: dict[object, dict[int, list[Point]]] = {}
    for point in points:
        by_n = shapes.setdefault(_shape(point.spec), {})
        by_n.setdefault(point.spec.n, []).append(point)
    classes = []
    for by_n in shapes.values():
        problem, uncovered = None, ""
        for point in _extremes([p for group in by_n.values() for p in group]):
            with point_errors(point.name, point.coordinates):
                built = point.spec.build()
                cost(point.spec, built, simulation)
            if problem is None:
                problem = built
                try:
                    check_covered(problem, theory)
                except InputError as error:
                    uncovered = f"{error.field} {error.value}; covered: {error.allowed}"
        assert problem is not None  # for the type checker
        for n, group in by_n.items():
            first = group[0]
            with point_errors(first.name, first.coordinates):
                group_cost = cost(first.spec, problem._replace(n=n), simulation)
            classes.append(ProblemClass(group, group_cost, uncovered))
    return classes


def _extremes(points: Sequence[Point]) -> list[Point]:
    """The first, and those with the least and the largest of every coordinate that is a number."""
    extremes = {0: points[0]}
    for path in points[0].coordinates:
        values = [point.coordinates[path] for point in points]
        with suppress(TypeError, ValueError):  # words
            numbers = np.array(values, float)
            extremes |= {int(i): points[int(i)] for i in (numbers.argmin(), numbers.argmax())}
    return list(extremes.values())


def _shape(spec: ProblemSpec) -> object:
    """Fields of a problem without n, real numbers and seeds."""
    fields = spec.model_dump(exclude={"n": True, "heads": {"kernel", "bandwidth"}})
    return _sizes("", fields), str(spec.heads.kernel)


def _sizes(name: str, value: Any) -> object:
    if isinstance(value, dict):
        if value.get("kind") == "python":  # its options are compiled in
            return str(value)
        return tuple((key, _sizes(key, item)) for key, item in value.items())
    if isinstance(value, list):
        return len(value)
    is_data = isinstance(value, float) or name.endswith("seed")
    return None if is_data else value
