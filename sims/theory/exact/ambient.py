"""Exact theory for designs without a projected law: quasi-Monte Carlo over the keys' space R^d.

The integrals are those of :mod:`sims.theory.exact.laplace` in the coordinates ``ξ = X``, in which
the target is known (Var[m | ξ] = 0). The points of a randomised Sobol set take the law's place: a
law of N points, for which every integral is exact. Eight independent randomisations give the
value, their mean, and its error. Accuracy is limited by how many points a kernel reaches: narrow
kernels in many dimensions do not converge, and are reported so. See docs/theory.md, "Exact at every
n", nodes.
"""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.problem import Heads, Task
from sims.problem.design_laws import Design
from sims.theory.exact.execution import MAX_POINTS, Job, bucket
from sims.theory.exact.laplace import Head, Nodes, Regression, Setting, Single, point_single
from sims.theory.exact.pair_rules import scattered_pair
from sims.theory.exact.pairs import Couple, Pair
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.refinement import compare
from sims.theory.exact.rules import RANDOMISATIONS, Rule
from sims.theory.exact.solution import ERROR_FLOOR, Solution
from sims.theory.exact.truncation import check_never_zero, compiled_log, log_range

SIZES = (11, 13, 15, 17)
"""log2 of the number of points, by level."""
ROOMS = (13, 17)
"""log2 of the sizes of arrays that hold them: two levels share a program."""
TAIL = 1e-7
"""Share of any integral left outside the range of log s."""
STEP = 0.4
"""In log s; its error is 1e-8."""


def sample_points(design: Design, log2_size: int, room: int) -> Nodes:
    """Randomised sets of points of the design, each with log weights of sum 1.

    Args:
        design: the law of X.
        log2_size: log2 of the number of points N.
        room: log2 of the array's size; points behind the first N are no part of any sum.
    """
    p = design.dimension + design.EXTRA_NORMALS
    sets = [design.from_normals(sobol_normal(p, log2_size, seed)) for seed in range(RANDOMISATIONS)]
    points, log_weight = (np.stack(part) for part in zip(*sets, strict=True))
    behind = (0, 0), (0, 2**room - 2**log2_size)
    return Nodes(
        np.pad(points, (*behind, (0, 0))), np.pad(log_weight, behind), np.asarray(2**log2_size)
    )


def ambient_single(setting: Setting, nodes: Nodes, head: Head, regression: Regression) -> Single:
    """:func:`~sims.theory.exact.laplace.point_single` for each set of points."""

    def replicate(own: tuple[Array, Array]) -> Single:
        return point_single(setting, Nodes(own[0], own[1], nodes.used), head, regression)

    return jax.lax.map(replicate, (nodes.points, nodes.log_weight))


def ambient_pair(setting: Setting, nodes: Nodes, couple: Couple) -> Pair:
    """:func:`~sims.theory.exact.pair_rules.scattered_pair` for each set: ξ_h = ξ_g = X."""

    def replicate(item: tuple[tuple[Array, Array], tuple[Single, Single]]) -> Pair:
        (points, log_weight), curves = item
        own, same = couple._replace(singles=curves), jnp.ones(points.shape[1])
        return scattered_pair(setting, own, same, points, points, log_weight, nodes.used)

    return jax.lax.map(replicate, ((nodes.points, nodes.log_weight), couple.singles))


SINGLE = Rule("ambient sobol", ambient_single, True, Single)
PAIR = Rule("ambient sobol", ambient_pair, True, Pair)


def solve_ambient(
    task: Task,
    heads: Heads,
    n: int,
    queries: Float[np.ndarray, "Q d"],
    truth: Float[np.ndarray, " Q"],
    rtol: float,
    max_level: int,
) -> Solution:
    """All terms (σ² = 1) at every query, as :func:`sims.theory.exact.refinement.solve` gives them.

    Raises:
        InputError: the design has no density, or the kernel vanishes without a ``support``.
    """
    solution = Solution.blank(len(queries), heads.count)
    solution.methods.add(SINGLE.name)
    solution.converged[:] = False
    for size in SIZES[: max_level + 1]:
        nodes = sample_points(task.design, size, next(room for room in ROOMS if room >= size))
        for q, x in enumerate(queries):
            if not solution.converged[q].all():
                _solve_query(solution, task, heads, n, q, x, float(truth[q]), nodes, rtol)
        if solution.converged.all():
            break
    return solution


def _solve_query(
    solution: Solution,
    task: Task,
    heads: Heads,
    n: int,
    q: int,
    x: Float[np.ndarray, " d"],
    truth: float,
    nodes: Nodes,
    rtol: float,
) -> None:
    """Enter query number q, at x, into the solution."""
    items, size = _head_arrays(solution, heads, n, q, x, nodes)
    if n == 1 and heads.kernel.support is None:
        _one_key(solution, task, q, nodes, rtol, truth)
        return
    if size > MAX_POINTS:
        solution.put_unknown(q)
        return
    # Given X the target is known.
    frequency, phase = np.asarray(task.target.frequency), np.asarray(task.target.phase)
    amplitude, nothing = np.asarray(task.target.amplitude), np.zeros((len(phase), len(phase)))
    regression = Regression(frequency, np.zeros_like(frequency), amplitude, nothing, nothing)
    setting = Setting(heads.kernel, size, np.asarray(STEP), np.asarray(float(n)), phase)
    singles = Job(SINGLE, setting, nodes, [(item, regression) for item in items]).run()
    values = []
    for h, one in enumerate(singles):
        value, error = compare(one, True, None, TAIL)
        means = one.centre * one.reach
        tails = 2 * TAIL * np.sqrt(max(value.signal, 0.0))
        solution.mean[q, h] = means.mean()
        solution.mean_error[q, h] = 3 * means.std(ddof=1) / np.sqrt(len(means)) + tails
        solution.empty[q, h] = 1 - value.reach
        scale = np.sqrt((solution.mean[q, h] - truth) ** 2 + max(value.signal, 0.0))
        solution.put_values(q, h, h, value, error, rtol, float(value.signal))
        solution.converged[q, h, h] &= solution.mean_error[q, h] <= rtol * scale + ERROR_FLOOR
        values.append(value)
    pairs = list(combinations(range(heads.count), 2))
    if not pairs:
        return
    couples = [
        (Couple((items[h], items[g]), (singles[h], singles[g]), regression),) for h, g in pairs
    ]
    for (h, g), result in zip(pairs, Job(PAIR, setting, nodes, couples).run(), strict=True):
        both, both_error = compare(result, True, None, TAIL)
        scale = float(np.sqrt(max(values[h].signal * values[g].signal, 0.0)))
        for a, b in ((h, g), (g, h)):
            solution.put_values(q, a, b, both, both_error, rtol, scale)


def _head_arrays(
    solution: Solution,
    heads: Heads,
    n: int,
    q: int,
    x: Float[np.ndarray, " d"],
    nodes: Nodes,
) -> tuple[list[Head], int]:
    """Heads in the coordinates ξ = X, and the size of a grid in log s that serves all of them."""
    frames, of_keys = np.asarray(heads.frames), np.asarray(heads.of_keys)
    bandwidth, d = np.asarray(heads.bandwidth), len(x)
    log_weight = nodes.log_weight[:, : int(nodes.used)]
    log_weight = (log_weight - np.log(len(log_weight))).ravel()
    items, sizes = [], []
    for h in range(heads.count):
        query, keys = frames[h].T @ x, np.moveaxis(nodes.points @ of_keys[h], 2, 0)
        values = compiled_log(heads.kernel)(query[:, None, None], keys, bandwidth[h])
        log_kernel = np.asarray(values)[:, : int(nodes.used)].ravel()
        check_never_zero(heads.kernel, log_kernel)
        compact = heads.kernel.support is not None
        low, high, solution.effective_keys[q, h] = log_range(
            log_weight, log_kernel, n, TAIL, compact
        )
        centre, shape = np.zeros(d), np.eye(d)
        items.append(Head(of_keys[h].T, query, centre, shape, float(bandwidth[h]), low, 0.0))
        # One more point, which u = ∞ takes for a compact kernel.
        sizes.append(int(np.ceil((high - low) / STEP)) + 2)
    return items, bucket(max(sizes))


def _one_key(
    solution: Solution, task: Task, q: int, nodes: Nodes, rtol: float, truth: float
) -> None:
    """Enter query q for n = 1 and a kernel that never vanishes: f̂ = Y."""
    used = int(nodes.used)
    values = np.asarray(task.target(jnp.asarray(nodes.points[:, :used])))
    weight = np.exp(nodes.log_weight[:, :used])
    means = np.sum(weight * values, axis=1)
    variances = np.sum(weight * (values - means[:, None]) ** 2, axis=1)
    (mean, mean_error), (variance, variance_error) = (
        (part.mean(), 3 * part.std(ddof=1) / np.sqrt(len(part))) for part in (means, variances)
    )
    solution.mean[q], solution.mean_error[q] = mean, mean_error
    solution.signal[q], solution.signal_error[q] = variance, variance_error
    solution.noise[q], solution.effective_keys[q] = 1.0, 1.0
    scale = np.sqrt((mean - truth) ** 2 + variance)
    solution.converged[q] = bool(
        mean_error <= rtol * scale + ERROR_FLOOR and variance_error <= rtol * variance + ERROR_FLOOR
    )
