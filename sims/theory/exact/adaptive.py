"""Exact theory of adaptive radii: levels of refinement until accurate.

The integrals are those of :mod:`~.root`. They converge where keys enough are attended to: with few
of them the sum has atoms and edges, which frequencies below any cut do not resolve.
"""

import operator
from collections.abc import Callable, Sequence

import numpy as np

from sims.base.errors import InputError
from sims.problem import Heads, Task
from sims.theory.exact.pairs import Pair
from sims.theory.exact.root import (
    Expectations,
    Root,
    one_head,
    two_heads,
)
from sims.theory.exact.solution import ERROR_FLOOR, Facts, Progress, Solution, close
from sims.theory.exact.tables import LEVELS, Level
from sims.theory.first_order.adaptive import ProjectedDesign, single, view_heads, views

LEAST_ATTENDED = 30.0
"""Expected keys within the radius below which no number is given."""
FINEST_PAIR = 4
"""How many levels are tried for pairs: the next takes minutes."""


def solve_adaptive(
    task: Task,
    heads: Heads,
    n: int,
    queries: np.ndarray,
    truth: np.ndarray,
    rtol: float,
    progress: Progress,
) -> tuple[Solution, Facts]:
    """Terms of α-entmax heads at all queries, and facts of radii.

    Raises:
        InputError: too few keys are attended to, or two heads see dependent coordinates.
    """
    solution = Solution(len(queries), heads.count)
    solution.empty[:] = 0.0
    solution.methods.add("root of a random sum")
    rows = roots_of(task, heads, n, queries)
    joint = views(task, heads, 2)
    facts = {}
    for name in ("radius", "radius_sd", "attended", "expected_attended"):
        facts[name] = np.zeros((len(queries), heads.count))
    finished = 0
    total = len(queries) * (heads.count + len(joint))
    for q, row in enumerate(rows):
        means = []
        for h, root in enumerate(row):
            expectations = _put_head(solution, q, h, root, float(truth[q]), rtol)
            facts["radius"][q, h] = root.first.square**0.5
            facts["radius_sd"][q, h] = (
                max(expectations.root_square - expectations.root**2, 0.0) ** 0.5
            )
            facts["attended"][q, h] = n * root.first.mass
            facts["expected_attended"][q, h] = expectations.attended
            means.append(expectations.mean)
            progress(finished := finished + 1, total)
        for (h, g), joint_design in joint.items():
            _put_pair(
                solution, (q, h, g), (row[h], row[g]), joint_design, means[h] * means[g], rtol
            )
            progress(finished := finished + 1, total)
    return solution, facts


def roots_of(task: Task, heads: Heads, n: int, queries: np.ndarray) -> list[list[Root]]:
    """The α-entmax heads at every query.

    Raises:
        InputError: fewer keys are attended to than the integrals need.
    """
    rows = []
    fewest = (np.inf, 0, 0)
    for q, row in enumerate(view_heads(task, heads, n, queries)):
        rows.append([Root(head, single(head), n) for head in row])
        for h, root in enumerate(rows[q]):
            fewest = min(fewest, (n * root.first.mass, q, h))
    keys, q, h = fewest
    if keys < LEAST_ATTENDED:
        request = f"{keys:.3g} keys expected within the radius of head {h} at query {q}"
        allowed = f"at least {LEAST_ATTENDED:g} (order exact, adaptive radii); else simulate"
        raise InputError("n, heads.bandwidth", request, allowed)
    return rows


def _put_head(
    solution: Solution, q: int, h: int, root: Root, truth: float, rtol: float
) -> Expectations:
    """Enter a head at a query."""
    limit = root.first.limit

    def judge(value: Expectations, error: Expectations) -> tuple[Pair, Pair, bool]:
        sd = max(value.variance, 0.0) ** 0.5
        mean_is_close = (
            error.mean <= rtol * float(np.hypot(limit + value.mean - truth, sd)) + ERROR_FLOOR
        )
        terms, errors = value.terms(error, value.mean**2, value.variance)
        return terms, errors, close(terms, errors, rtol, value.variance) and mean_is_close

    value, error, entry = _refine(lambda level: one_head(root, level), LEVELS, judge)
    solution.mean[q, h] = limit + value.mean
    solution.mean_error[q, h] = error.mean + value.defect * max(value.variance, 0.0) ** 0.5
    solution.put((q, h, h), *entry)
    return value


def _put_pair(
    solution: Solution,
    place: tuple[int, int, int],
    roots: tuple[Root, Root],
    joint_design: ProjectedDesign,
    means: float,
    rtol: float,
) -> None:
    """Enter a pair of heads at a query; ``means`` is the product of theirs."""
    q, h, g = place
    scale = float(np.sqrt(solution.signal[q, h, h] * solution.signal[q, g, g]))

    def judge(value: Expectations, error: Expectations) -> tuple[Pair, Pair, bool]:
        terms, errors = value.terms(error, means, scale)
        return terms, errors, close(terms, errors, rtol, scale)

    levels = LEVELS[:FINEST_PAIR]
    *_, entry = _refine(lambda level: two_heads(roots, joint_design, level), levels, judge)
    solution.put(place, *entry)


def _refine(
    expectations_at: Callable[[Level], Expectations],
    levels: Sequence[Level],
    judge: Callable[[Expectations, Expectations], tuple[Pair, Pair, bool]],
) -> tuple[Expectations, Expectations, tuple[Pair, Pair, bool]]:
    """The value at the first level that is good enough, its error, and whether it is; its terms.

    The error is the last two levels' difference.
    """
    value = expectations_at(levels[0])
    for level in levels[1:]:
        coarser = value
        value = expectations_at(level)
        error = Expectations(*map(abs, map(operator.sub, value, coarser)))
        entry = judge(value, error)
        if entry[2]:
            break
    return value, error, entry
