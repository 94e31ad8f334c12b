"""Cost of a run, and refusal of impossible problems, before any work.

Problems that differ only in numbers form a class: they share a compiled program, and are counted
together. Classes follow from the problems as data, so that sorting builds nothing.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.base.runtime import host_devices, in_threads, memory
from sims.problem import Heads, Kernel, check_compatible
from sims.simulation.plan import Shape, make_plan
from sims.study.grid import Point, point_errors
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem, ProblemSpec, check_fits, gibibytes
from sims.theory import FEW_KEYS, check_affordable, check_exact, in_range, predict

RATE = 1e9
"""Operations a second and core in float32, half as many in float64, on docs/performance.md's
machine: five problems of different shapes came to 0.24e9 to 2.4e9. A kernel evaluation is one
operation, drawing a coordinate of a key five, a summand of the target at a key one."""
POINT = 0.006
"""Seconds per point in addition to its operations, to build, predict and label it."""
COMPILATION = 4.0
"""Seconds to compile the programs of a shape."""
MAX_OPERATIONS = 1e17
"""Maximum operations of a point: three years of one core."""
LOOKED, FEW_LOOKED = 100, 4
"""Points of kernels, and of other weight rules, at which a plan evaluates theory of first order."""
COPIES = 12
"""Number of arrays (head, head) per batch, including intermediate ones."""


@dataclass(frozen=True)
class Cost:
    """Cost of simulating one problem.

    Attributes:
        shape: sizes that determine its compiled program, shared by problems of one shape.
        work: operations of the minimum number of batches; see :data:`RATE`.
        size: bytes to build and simulate it, including those batches.
    """

    shape: tuple[object, ...]
    work: float
    size: int


@dataclass(frozen=True)
class ProblemClass:
    """Problems that differ only in numbers.

    Attributes:
        points: the problems.
        cost: cost of each.
        uncovered: reason why theory does not cover them; empty if it does.
    """

    points: list[Point]
    cost: Cost
    uncovered: str


def classify(
    points: Sequence[Point], simulation: SimulationSpec, theory: TheorySpec
) -> list[ProblemClass]:
    """Classes of problems, in the order of their first members.

    For each shape, except n, only the first problem is built, and those with the least and largest
    value of every coordinate, because allowed numbers lie in ranges.

    Raises:
        InputError: a problem is impossible; the line names it.
    """
    shapes: dict[object, list[Point]] = {}
    for point in points:
        shapes.setdefault(_shape(point.spec), []).append(point)
    classes = []
    for alike in shapes.values():
        problems = []
        for point in _extremes(alike):
            with point_errors(point.name, point.coordinates):
                problems.append(point.spec.build())
                cost(point.spec, problems[-1], simulation)
        problem = problems[0]
        uncovered = ""
        try:
            check_covered(problem, theory)
        except InputError as error:
            uncovered = f"{error.field} {error.value}; covered: {error.allowed}"
        by_n: dict[int, list[Point]] = {}
        for point in alike:
            by_n.setdefault(point.spec.n, []).append(point)
        for n, group in by_n.items():
            with point_errors(group[0].name, group[0].coordinates):
                group_cost = cost(group[0].spec, problem._replace(n=n), simulation)
            classes.append(ProblemClass(group, group_cost, uncovered))
    return classes


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


def _extremes(points: Sequence[Point]) -> list[Point]:
    """First point, and those with the least and largest value of every numeric coordinate."""
    extremes = {0}
    for path in points[0].coordinates:
        values = [point.coordinates[path] for point in points]
        with suppress(TypeError, ValueError):  # words
            numbers = np.array(values, float)
            extremes |= {int(numbers.argmin()), int(numbers.argmax())}
    return [points[place] for place in sorted(extremes)]


def check_covered(problem: Problem, theory: TheorySpec) -> None:
    """Check that the requested theory covers a problem, at no cost.

    First order is evaluated for one head at one query, which also shows whether float64 can hold
    the problem.

    Raises:
        Uncovered: theory does not cover the problem.
        InputError: the problem cannot be predicted at all.
    """
    task, heads, n, queries = problem
    if theory.order == "exact":
        check_exact(task, heads)
    if theory.order in ("first", "auto"):
        head = Heads(np.asarray(heads.frames)[:1], heads.rule, np.asarray(heads.bandwidth)[:1])
        try:
            predict(task, head, n, np.asarray(queries)[:1])
        except InputError:
            if theory.order != "auto":
                raise
            check_exact(task, heads)
            check_affordable(task, heads, queries)


def doubts(points: Sequence[Point], theory: TheorySpec) -> Counter[str]:
    """Reasons why covered points have no trustworthy theory, and the number of points of each.

    Theory of first order is looked at in up to :data:`LOOKED` points, evenly spaced, which stand
    for all; an empty reason counts the trustworthy ones.
    """
    if theory.order not in ("first", "auto") or not points:
        return Counter({"": len(points)})
    is_kernel = isinstance(points[0].spec.build().heads.rule, Kernel)
    looked = points[:: -(-len(points) // (LOOKED if is_kernel else FEW_LOOKED))]
    reasons = in_threads(partial(_doubt, theory), [point.spec.build() for point in looked])
    counts = Counter(reasons)
    for reason in counts:
        counts[reason] = round(counts[reason] * len(points) / len(looked))
    return counts


def _doubt(theory: TheorySpec, problem: Problem) -> str:
    """Reason why theory of a problem is not trustworthy; empty if it is."""
    task, heads, _, queries = problem
    try:
        terms = predict(*problem)
        if in_range(terms):
            return ""
        reason = f"first order is rough, n_eff or n_third below about {FEW_KEYS}"
    except InputError as error:
        reason = f"{error.field} {error.value}; covered: {error.allowed}"
    if theory.order == "auto":
        with suppress(InputError):
            check_exact(task, heads)
            check_affordable(task, heads, queries)
            return ""
    return reason


def cost(spec: ProblemSpec, problem: Problem, simulation: SimulationSpec) -> Cost:
    """Cost of simulating a problem, from its sizes; nothing is compiled or drawn.

    Args:
        spec: the problem.
        problem: its arrays.
        simulation: size and precision of the simulation.

    Raises:
        InputError: the problem does not fit into memory, takes more than :data:`MAX_OPERATIONS`, or
            cannot be simulated with these settings.
    """
    task, heads, n, points = problem
    check_compatible(*problem)
    if simulation.control_variate and n < 2:
        raise InputError("simulation.control_variate", True, "false for a single key (n >= 2)")
    queries = len(points)
    cores = host_devices()
    shape = Shape.from_problem(task, heads, n, queries, simulation.precision)
    plan = make_plan(shape, simulation.replicates_per_batch, cores)
    replicates = simulation.replicates_per_batch * simulation.batches
    operations = queries * heads.count + 5 * heads.dimension + shape.terms
    work = n * operations * replicates * shape.itemsize / 4
    if work > MAX_OPERATIONS:
        request = f"{n:,} keys x {queries} queries x {heads.count} heads"
        request += f" x {replicates:,} replicates"
        duration = _time(work / RATE / cores)
        allowed = f"at most {MAX_OPERATIONS:g} operations; this takes {work:.2g}, {duration}"
        raise InputError("n", request, f"{allowed} on {cores} cores")
    stored_queries = queries if simulation.keep_queries else 1
    results = 8 * COPIES * stored_queries * heads.count**2 * simulation.batches
    size = spec.footprint() + plan.bytes_per_device * cores + results
    check_fits(size)
    return Cost((shape, str(spec.heads.kernel), spec.design.kind), work, size)


def plan_lines(costs: Sequence[Cost], simulation: SimulationSpec) -> list[str]:
    """Lines of a plan: numbers of points and replicates, approximate time and memory.

    Args:
        costs: costs of the points.
        simulation: size of the simulation.
    """
    batches = simulation.batches
    size = simulation.replicates_per_batch
    cores = host_devices()
    shapes = len({c.shape for c in costs})
    fixed = COMPILATION * shapes + POINT * len(costs)
    seconds = sum(c.work for c in costs) / RATE / cores
    limit = simulation.max_batches or batches
    replicates = f"{batches * size:,} per point ({batches} batches of {size})"
    longest = ""
    if limit > batches and simulation.rel_mcse is not None:
        replicates += f", up to {limit * size:,} if precision requires"
        longest = f", up to {_time(fixed + seconds * limit / batches)}"
    worst = max(c.size for c in costs)
    return [
        f"points       {len(costs)}, at most {shapes} compiled shapes",
        f"replicates   {replicates}",
        f"time         about {_time(fixed + seconds)}{longest} on {cores} cores",
        f"memory       about {gibibytes(worst)} of {gibibytes(memory())}",
    ]


def _time(seconds: float) -> str:
    for size, unit in ((86400 * 365, "years"), (86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.2g} s"
