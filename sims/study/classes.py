"""Problems sorted into classes: those of one share a compiled program, and are counted together.

A class is read off the problems as data: nothing is built to sort them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.errors import InputError
from sims.study.grid import Point
from sims.study.planning import Cost, check_covered, cost, named
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
        of_n = shapes.setdefault(_shape(point.spec), {})
        of_n.setdefault(point.spec.n, []).append(point)
    found = []
    for of_n in shapes.values():
        problem, uncovered = None, ""
        for point in _extremes([p for same in of_n.values() for p in same]):
            with named(point.name, point.coordinates):
                built = point.spec.build()
                cost(point.spec, built, simulation)
            if problem is None:
                problem = built
                try:
                    check_covered(problem, theory)
                except InputError as error:
                    uncovered = f"{error.field} {error.value}; covered: {error.allowed}"
        assert problem is not None  # for the type checker
        for n, same in of_n.items():
            first = same[0]
            with named(first.name, first.coordinates):
                each = cost(first.spec, problem._replace(n=n), simulation)
            found.append(ProblemClass(same, each, uncovered))
    return found


def _extremes(points: Sequence[Point]) -> list[Point]:
    """The first, and those with the least and the largest of every coordinate that is a number."""
    chosen = {0: points[0]}
    for path in points[0].coordinates:
        values = [point.coordinates[path] for point in points]
        with suppress(TypeError, ValueError):  # words
            numbers = np.array(values, float)
            chosen |= {int(i): points[int(i)] for i in (numbers.argmin(), numbers.argmax())}
    return list(chosen.values())


def _shape(spec: ProblemSpec) -> object:
    """All of a problem but n and its real numbers and seeds."""
    whole = spec.model_dump(exclude={"n": True, "heads": {"kernel", "bandwidth"}})
    return _sizes("", whole), str(spec.heads.kernel)


def _sizes(name: str, value: Any) -> object:
    if isinstance(value, dict):
        if value.get("kind") == "python":  # its options are compiled in
            return str(value)
        return tuple((key, _sizes(key, item)) for key, item in value.items())
    if isinstance(value, list):
        return len(value)
    drawn = isinstance(value, float) or name.endswith("seed")
    return None if drawn else value
