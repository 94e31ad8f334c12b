"""Exact theory of α-entmax heads with distance scores: levels of refinement until accurate.

The integrals are those of :mod:`~.root`. They converge where keys enough are attended to: with few
of them the sum has atoms and edges, which frequencies below any cut do not resolve.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import numpy as np

from sims.errors import InputError
from sims.problem import Heads, Task
from sims.problem.design_laws import GaussianDesign
from sims.theory.exact.root import One, Root, Two, one_head, two_heads
from sims.theory.exact.solution import ERROR_FLOOR, Facts, Progress, Solution
from sims.theory.exact.tables import LEVELS, Level
from sims.theory.first_order.adaptive import Head, Seen, covered, single
from sims.weights.entmax import Entmax

LEAST_ATTENDED = 30.0
"""Expected keys within the radius below which no number is given."""
FINEST_PAIR = 4
"""How many levels are tried for pairs: the next takes minutes."""
Found = TypeVar("Found", One, Two)


class Scale(NamedTuple):
    """What the errors are measured by.

    Attributes:
        rtol: accuracy asked for.
        bias: of the limit m*, which is not in the integrals.
    """

    rtol: float
    bias: float

    def one(self, value: One, error: One) -> bool:
        """Whether a head is accurate enough."""
        variance = value.square - value.mean**2
        scale = float(np.hypot(self.bias + value.mean, max(variance, 0.0) ** 0.5))
        return (
            error.mean <= self.rtol * scale + ERROR_FLOOR
            and error.square <= self.rtol * variance + ERROR_FLOOR
            and error.noise <= self.rtol * value.noise
        )


def solve_adaptive(
    task: Task,
    heads: Heads,
    n: int,
    queries: np.ndarray,
    truth: np.ndarray,
    rtol: float,
    progress: Progress,
) -> tuple[Solution, Facts]:
    """All terms of α-entmax heads at all queries, and their radii and attended keys.

    Raises:
        InputError: too few keys are attended to, or two heads see dependent coordinates.
    """
    rule = covered(task, heads)
    assert isinstance(task.design, GaussianDesign)  # for the type checker, as the next line
    assert isinstance(rule, Entmax)
    power, sigma = float(rule.nu), np.asarray(task.design.covariance)
    target = jax.tree.map(np.asarray, task.target)
    frames, of_keys = np.asarray(heads.frames), np.asarray(heads.of_keys)
    gammas = (2 * np.asarray(heads.bandwidth, float) ** 2 * power) ** power / n
    seen = [Seen.of(sigma, frame) for frame in of_keys]
    joint = {
        (h, g): Seen.of(sigma, np.hstack([of_keys[h], of_keys[g]]))
        for h in range(heads.count)
        for g in range(h)
    }

    def root(h: int, x: np.ndarray) -> Root:
        head = Head(seen[h], frames[h].T @ x, power, target)
        return Root(head, single(head, float(gammas[h])), float(gammas[h]), n)

    roots = [[root(h, x) for h in range(heads.count)] for x in queries]
    _check_attended(roots)
    solution = Solution.blank(len(queries), heads.count)
    solution.methods.add("root of a random sum")
    names = ("radius", "radius_sd", "attended", "expected_attended")
    facts = {name: np.zeros((len(queries), heads.count)) for name in names}
    done, total = 0, len(queries) * (heads.count + len(joint))
    for q, own in enumerate(roots):
        means = []
        for h, at in enumerate(own):
            one = _put_head(solution, q, h, at, Scale(rtol, at.first.limit - float(truth[q])))
            facts["radius"][q, h] = at.first.square**0.5
            facts["radius_sd"][q, h] = max(one.root_square - one.root**2, 0.0) ** 0.5
            facts["attended"][q, h] = n * at.first.mass
            facts["expected_attended"][q, h] = one.attended
            means.append(one.mean)
            progress(done := done + 1, total)
        for (h, g), both in joint.items():
            _put_pair(solution, q, (h, g), (own[h], own[g]), both, means[h] * means[g], rtol)
            progress(done := done + 1, total)
    return solution, facts


def _check_attended(roots: list[list[Root]]) -> None:
    """Raise InputError where fewer keys are attended to than the integrals need."""
    keys, q, h = min(
        (root.n * root.first.mass, q, h)
        for q, own in enumerate(roots)
        for h, root in enumerate(own)
    )
    if keys < LEAST_ATTENDED:
        got = f"{keys:.3g} keys expected within the radius of head {h} at query {q}"
        allowed = f"at least {LEAST_ATTENDED:g} (order exact, adaptive radii); else simulate"
        raise InputError("n, heads.bandwidth", got, allowed)


def _put_head(solution: Solution, q: int, h: int, root: Root, scale: Scale) -> One:
    """Enter a head at a query."""
    value, error = _refined(lambda level: one_head(root, level), One, scale.one, len(LEVELS))
    variance, defect = value.square - value.mean**2, abs(value.total - 1)
    solution.mean[q, h] = root.first.limit + value.mean
    solution.mean_error[q, h] = error.mean + defect * max(variance, 0.0) ** 0.5
    solution.effective_keys[q, h] = root.n / root.first.overlap
    signal_error = error.square + 2 * abs(value.mean) * error.mean + defect * variance
    solution.put_numbers(
        (q, h, h),
        (variance, value.noise, defect),
        (signal_error, error.noise + defect * value.noise),
        scale.rtol,
        variance,
    )
    solution.converged[q, h, h] &= scale.one(value, error)
    return value


def _put_pair(
    solution: Solution,
    q: int,
    place: tuple[int, int],
    roots: tuple[Root, Root],
    both: Seen,
    means: float,
    rtol: float,
) -> None:
    """Enter a pair of heads at a query; ``means`` is the product of theirs."""
    h, g = place
    scale = float(np.sqrt(solution.signal[q, h, h] * solution.signal[q, g, g]))

    def done(value: Two, error: Two) -> bool:
        return error.product <= rtol * scale + ERROR_FLOOR and error.noise <= rtol * abs(
            value.noise
        )

    value, error = _refined(lambda level: two_heads(roots, both, level), Two, done, FINEST_PAIR)
    defect = abs(value.total - 1)
    errors = error.product + defect * scale, error.noise + defect * abs(value.noise)
    numbers = value.product - means, value.noise, defect
    for at in ((q, h, g), (q, g, h)):
        solution.put_numbers(at, numbers, errors, rtol, scale)


def _refined(
    at: Callable[[Level], Found],
    kind: type[Found],
    done: Callable[[Found, Found], bool],
    finest: int,
) -> tuple[Found, Found]:
    """The value at the first level that is done, and its error: the last two levels' difference."""
    value = at(LEVELS[0])
    for level in LEVELS[1:finest]:
        last, value = value, at(level)
        error = kind(*(abs(a - b) for a, b in zip(value, last, strict=True)))
        if done(value, error):
            break
    return value, error
