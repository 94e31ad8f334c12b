"""Exact theory of adaptive radii: levels of refinement until accurate.

The integrals of α-entmax are those of :mod:`~.root`, of the nearest keys those of :mod:`~.nearest`.
The former converge where keys enough are attended to: with few of them the sum has atoms and edges,
which frequencies below any cut do not resolve.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from sims.errors import InputError
from sims.problem import Heads, Task
from sims.theory.exact.nearest import FINENESS, Nearest, averaged, nearest
from sims.theory.exact.pairs import Pair
from sims.theory.exact.root import One, Root, Two, one_head, two_heads
from sims.theory.exact.solution import ERROR_FLOOR, Facts, Progress, Solution, close
from sims.theory.exact.tables import LEVELS
from sims.theory.first_order.adaptive import Seen, covered, looking, views
from sims.weights.sparse import TopK

LEAST_ATTENDED = 30.0
"""Expected keys within the radius below which no number is given."""
FINEST_PAIR = 4
"""How many levels are tried for pairs: the next takes minutes."""
Found = TypeVar("Found", One, Two)
Level = TypeVar("Level")


def solve_adaptive(
    task: Task,
    heads: Heads,
    n: int,
    queries: np.ndarray,
    truth: np.ndarray,
    rtol: float,
    progress: Progress,
) -> tuple[Solution, Facts]:
    """All terms of α-entmax heads, or of one top-k head, at all queries, and facts of radii.

    Raises:
        InputError: too few keys are attended to, or two heads see dependent coordinates; more than
            one top-k head.
    """
    solution = Solution.unknown(len(queries), heads.count)
    solution.empty[:] = 0.0
    rows: Sequence[Sequence[Any]]
    joint: dict[tuple[int, ...], Seen] = {}
    if isinstance(covered(task, heads), TopK):
        solution.methods.add("radius of the k nearest")
        rows = nearest(task, heads, n, queries)
    else:
        solution.methods.add("root of a random sum")
        rows = [[Root.of(head, n) for head in row] for row in looking(task, heads, n, queries)]
        joint = views(task, heads, 2)
        _check_attended(rows)
    names = ("radius", "radius_sd", "attended", "expected_attended")
    facts = {name: np.zeros((len(queries), heads.count)) for name in names}
    done, total = 0, len(queries) * (heads.count + len(joint))
    for q, row in enumerate(rows):
        means = []
        for h, at in enumerate(row):
            one = _put_head(solution, q, h, at, float(truth[q]), rtol)
            facts["radius"][q, h] = at.first.square**0.5
            facts["radius_sd"][q, h] = max(one.root_square - one.root**2, 0.0) ** 0.5
            facts["attended"][q, h] = n * at.first.mass
            facts["expected_attended"][q, h] = one.attended
            means.append(one.mean)
            progress(done := done + 1, total)
        for (h, g), both in joint.items():
            _put_pair(solution, (q, h, g), (row[h], row[g]), both, means[h] * means[g], rtol)
            progress(done := done + 1, total)
    return solution, facts


def _check_attended(rows: Sequence[Sequence[Root]]) -> None:
    """Raise InputError where fewer keys are attended to than the integrals need."""
    keys, q, h = min(
        (at.n * at.first.mass, q, h) for q, row in enumerate(rows) for h, at in enumerate(row)
    )
    if keys < LEAST_ATTENDED:
        got = f"{keys:.3g} keys expected within the radius of head {h} at query {q}"
        allowed = f"at least {LEAST_ATTENDED:g} (order exact, adaptive radii); else simulate"
        raise InputError("n, heads.bandwidth", got, allowed)


def _put_head(
    solution: Solution, q: int, h: int, at: Root | Nearest, truth: float, rtol: float
) -> One:
    """Enter a head at a query."""
    limit = at.first.limit

    def judged(value: One, error: One) -> tuple[Pair, Pair, bool]:
        sd = max(value.variance, 0.0) ** 0.5
        enough = error.mean <= rtol * float(np.hypot(limit + value.mean - truth, sd)) + ERROR_FLOOR
        own, off = value.terms(error)
        return own, off, close(own, off, rtol, value.variance) and enough

    if isinstance(at, Root):
        value, error, found = _refined(lambda level: one_head(at, level), LEVELS, judged)
    else:
        value, error, found = _refined(lambda level: averaged(at, level), FINENESS, judged)
    solution.mean[q, h] = limit + value.mean
    solution.mean_error[q, h] = error.mean + value.defect * max(value.variance, 0.0) ** 0.5
    solution.effective_keys[q, h] = at.n / at.first.overlap
    solution.put((q, h, h), *found)
    return value


def _put_pair(
    solution: Solution,
    place: tuple[int, int, int],
    roots: tuple[Root, Root],
    both: Seen,
    means: float,
    rtol: float,
) -> None:
    """Enter a pair of heads at a query; ``means`` is the product of theirs."""
    q, h, g = place
    scale = float(np.sqrt(solution.signal[q, h, h] * solution.signal[q, g, g]))

    def judged(value: Two, error: Two) -> tuple[Pair, Pair, bool]:
        own, off = value.terms(error, means, scale)
        return own, off, close(own, off, rtol, scale)

    levels = LEVELS[:FINEST_PAIR]
    *_, found = _refined(lambda level: two_heads(roots, both, level), levels, judged)
    solution.put(place, *found)


def _refined(
    at: Callable[[Level], Found],
    levels: Sequence[Level],
    judged: Callable[[Found, Found], tuple[Pair, Pair, bool]],
) -> tuple[Found, Found, tuple[Pair, Pair, bool]]:
    """The value at the first level that is good enough, its error, and whether it is; its terms.

    The error is the last two levels' difference.
    """
    value = at(levels[0])
    for level in levels[1:]:
        last, value = value, at(level)
        error = type(value)(*(abs(a - b) for a, b in zip(value, last, strict=True)))
        found = judged(value, error)
        if found[2]:
            break
    return value, error, found
