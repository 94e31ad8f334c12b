"""Exact theory on points of the keys' space R^d: for any target, and designs of any known law.

The integrals are those of :mod:`sims.theory.exact.laplace` in the coordinates ``ξ = X``, in which
the target is known (Var[m | ξ] = 0): a series by its waves, another function as one coordinate more
of every point. The points of a randomised Sobol set take the law's place: a law of N points, for
which every integral is exact. Eight independent randomisations give the value, their mean, and its
error. Accuracy is limited by how many points a kernel reaches: narrow kernels in many dimensions do
not converge, and are reported so. An empirical design is a law of N points itself: there only the
step in log s is refined. See docs/theory.md, "Exact at every n", nodes.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.errors import InputError
from sims.problem import EmpiricalDesign, Heads, Target, Task, TrigonometricSeries
from sims.problem.design_laws import Design
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.execution import MAX_POINTS, Job, bucket, computed
from sims.theory.exact.laplace import (
    TILE,
    Head,
    Known,
    Nodes,
    Regression,
    Setting,
    Single,
    single,
)
from sims.theory.exact.pair_rules import SCATTERED, scattered_pair
from sims.theory.exact.pairs import Couple, Pair, Terms
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.refinement import compare
from sims.theory.exact.rules import RANDOMISATIONS
from sims.theory.exact.solution import ERROR_FLOOR, Progress, Solution, close
from sims.theory.exact.truncation import check_never_zero, compiled_log, log_range

SIZES = (11, 13, 15, 17)
"""log2 of the number of points, by level."""
ROOMS = (13, 17)
"""log2 of the sizes of arrays that hold them: two levels share a program."""
TAIL = 1e-7
"""Share of any integral left outside the range of log s."""
STEP = 0.4
"""In log s; its error is 1e-8."""
FINER = 0.25
"""The step that it is compared with where points have no error of their own."""


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


def atoms(design: EmpiricalDesign) -> Nodes:
    """The rows of an empirical design, each 1/N of the law: one set, without an error."""
    rows = np.asarray(design.rows)
    block = TILE if len(rows) <= SCATTERED else SCATTERED
    behind = -len(rows) % block
    log_weight = np.full(len(rows), -np.log(len(rows)))
    return Nodes(
        np.pad(rows, ((0, behind), (0, 0)), mode="edge")[None],
        np.pad(log_weight, (0, behind), constant_values=-np.inf)[None],
        np.asarray(len(rows) + behind),
    )


def ambient_single(
    setting: Setting, nodes: Nodes, head: Head, regression: Regression | Known
) -> Single:
    """:func:`~sims.theory.exact.laplace.single` for each set of points."""

    def replicate(own: tuple[Array, Array]) -> Single:
        return single(setting, Nodes(*own, nodes.used), head, regression)

    return jax.lax.map(replicate, (nodes.points, nodes.log_weight))


def ambient_pair(setting: Setting, nodes: Nodes, couple: Couple) -> Pair:
    """:func:`~sims.theory.exact.pair_rules.scattered_pair` for each set: ξ_h = ξ_g = X."""

    def replicate(item: tuple[tuple[Array, Array], tuple[Single, Single]]) -> Pair:
        (points, log_weight), curves = item
        both = Nodes(jnp.concatenate([points, points], axis=1), log_weight, nodes.used)
        own, same = couple._replace(singles=curves), jnp.ones(points.shape[1])
        return scattered_pair(setting, both, own, same)

    return jax.lax.map(replicate, ((nodes.points, nodes.log_weight), couple.singles))


def solve_ambient(
    task: Task,
    heads: Heads,
    n: int,
    queries: Float[np.ndarray, "Q d"],
    truth: Float[np.ndarray, " Q"],
    rtol: float,
    max_level: int,
    progress: Progress,
) -> Solution:
    """All terms (σ² = 1) at every query, as :func:`sims.theory.exact.refinement.solve` gives them.

    Raises:
        InputError: the design has no density, the kernel vanishes without a ``support``, or the
            target is not finite.
    """
    solution = Solution.unknown(len(queries), heads.count)
    rows = isinstance(task.design, EmpiricalDesign)
    solution.methods.add("sum over rows" if rows else "ambient sobol")
    earlier: dict[tuple[int, ...], Any] = {}
    for at, step in levels(task, max_level):
        for q, x in enumerate(queries):
            if solution.converged[q].all():
                continue
            query = q, x, float(truth[q])
            put_query(solution, task, heads, n, query, at, step, rtol, earlier)
            progress(int(solution.converged.sum()), solution.converged.size)
    return solution


def levels(task: Task, most: int) -> Iterator[tuple[Nodes, float]]:
    """Points, and steps in log s."""
    design, target = task.design, task.target
    if isinstance(design, EmpiricalDesign):
        nodes = with_values(atoms(design), target)
        yield from ((nodes, step) for step in (STEP, FINER))
        return
    for size in SIZES[: most + 1]:
        room = next(room for room in ROOMS if room >= size)
        yield with_values(sample_points(design, size, room), target), STEP


def put_query(
    solution: Solution,
    task: Task,
    heads: Heads,
    n: int,
    query: tuple[int, Float[np.ndarray, " d"], float],
    at: Nodes,
    step: float,
    rtol: float,
    earlier: dict[tuple[int, ...], Any],
) -> None:
    """Enter a query into the solution: its number, x and m(x).

    ``earlier`` holds, of points without an error of their own, the numbers with the step before.
    """
    q, x, truth = query
    random = not isinstance(task.design, EmpiricalDesign)
    items, size, solution.effective_keys[q] = head_arrays(heads, n, x, truth, at, step)
    if size > MAX_POINTS:
        return
    regression = known(task.target)
    setting = Setting(heads.kernel, size, np.asarray(step), np.asarray(float(n)))

    def compared(result: Terms, place: tuple[int, ...]) -> tuple[Terms, Terms]:
        if not random:  # one set, whose axis the result loses
            result = jax.tree.map(lambda leaf: leaf[0], result)
        found = compare(result, random, earlier.get(place), TAIL)
        earlier[place] = result
        return found

    packed = [(item, regression) for item in items]
    singles = list(computed([Job(ambient_single, setting, at, packed)]))
    for h, one in enumerate(singles):
        value, error = compared(one, (q, h))
        means = np.atleast_1d(one.centre * one.reach)
        spread = np.sqrt(max(value.signal, 0.0))
        solution.mean[q, h] = means.mean()
        if random:
            off = 3 * means.std(ddof=1) / np.sqrt(len(means)) + 2 * TAIL * spread
        else:
            off = error.centre + np.abs(value.centre) * error.reach
        solution.mean_error[q, h], solution.empty[q, h] = off, 1 - value.reach
        scale = np.hypot(solution.mean[q, h] - truth, spread)
        enough = off <= rtol * scale + ERROR_FLOOR
        solution.put(
            (q, h, h), value, error, close(value, error, rtol, float(value.signal)) and enough
        )
    pairs = list(combinations(range(heads.count), 2))
    couples = [
        (Couple((items[h], items[g]), (singles[h], singles[g]), regression),) for h, g in pairs
    ]
    found = computed([Job(ambient_pair, setting, at, couples)] if pairs else [])
    for (h, g), result in zip(pairs, found, strict=True):
        both, both_error = compared(result, (q, h, g))
        scale = np.sqrt(max(solution.signal[q, h, h] * solution.signal[q, g, g], 0.0))
        solution.put((q, h, g), both, both_error, close(both, both_error, rtol, scale))


def head_arrays(
    heads: Heads, n: int, x: Float[np.ndarray, " d"], truth: float, at: Nodes, step: float
) -> tuple[list[Head], int, list[float]]:
    """Heads in the coordinates ξ, the size of a grid in log s that serves all, effective keys."""
    width = at.points.shape[-1]
    frames, bandwidth = np.asarray(heads.frames), np.asarray(heads.bandwidth)
    of_keys = np.pad(np.asarray(heads.of_keys), ((0, 0), (0, width - len(x)), (0, 0)))
    log_weight = at.log_weight[:, : int(at.used)]
    log_weight = (log_weight - np.log(len(log_weight))).ravel()
    centre, shape = np.zeros(width), np.eye(width)
    centre[len(x) :] = truth
    items, sizes, effective = [], [], []
    for h in range(heads.count):
        query, keys = frames[h].T @ x, np.moveaxis(at.points @ of_keys[h], 2, 0)
        values = compiled_log(heads.kernel)(query[:, None, None], keys, bandwidth[h])
        log_kernel = np.asarray(values)[:, : int(at.used)].ravel()
        check_never_zero(heads.kernel, log_kernel)
        compact = heads.kernel.support is not None
        low, high, keys_of = log_range(log_weight, log_kernel, n, TAIL, compact)
        items.append(Head(of_keys[h].T, query, centre, shape, float(bandwidth[h]), low, 0.0))
        # One more point, which u = ∞ takes for a compact kernel.
        sizes.append(int(np.ceil((high - low) / step)) + 2)
        effective.append(keys_of)
    return items, bucket(max(sizes)), effective


def known(target: Target) -> Regression | Known:
    """The target given X: of a series by its waves, else a coordinate of points."""
    if not isinstance(target, TrigonometricSeries):
        return Known()
    frequency, phase = np.asarray(target.frequency), np.asarray(target.phase)
    amplitude, nothing = np.asarray(target.amplitude), np.zeros((len(phase), len(phase)))
    return Regression(frequency, np.zeros_like(frequency), phase, amplitude, nothing, nothing)


def with_values(nodes: Nodes, target: Target) -> Nodes:
    """The points with the target's value as one coordinate more, unless it is a series.

    Raises:
        InputError: a value is not finite.
    """
    if isinstance(target, TrigonometricSeries):
        return nodes
    values = np.asarray(target(jnp.asarray(nodes.points)))
    if not np.isfinite(values).all():
        allowed = "finite numbers wherever keys may be"
        raise InputError("target", "NaN or infinity at a point of the design", allowed)
    return nodes._replace(points=np.concatenate([nodes.points, values[..., None]], axis=-1))


def one_key(task: Task, law: GaussianLaw | None, queries: int, heads: int) -> Solution:
    """n = 1 and a kernel that never vanishes: f̂ = Y; by the most points where it has no ``law``."""
    design, off = task.design, np.zeros(2)
    if law is not None:
        mean, variance = law.mean_and_variance()
    else:
        nodes = (
            atoms(design)
            if isinstance(design, EmpiricalDesign)
            else sample_points(design, SIZES[-1], SIZES[-1])
        )
        weight = np.exp(nodes.log_weight)
        values = np.asarray(task.target(jnp.asarray(nodes.points)))
        means = np.sum(weight * values, axis=1)
        variances = np.sum(weight * (values - means[:, None]) ** 2, axis=1)
        mean, variance = float(means.mean()), float(variances.mean())
        off = 3 * np.std([means, variances], axis=1) / np.sqrt(max(len(means) - 1, 1))
    solution = Solution.unknown(queries, heads)
    solution.mean[:], solution.mean_error[:] = mean, off[0]
    solution.effective_keys[:], solution.empty[:] = 1.0, 0.0
    solution.signal[:], solution.signal_error[:] = variance, off[1]
    solution.noise[:], solution.noise_error[:], solution.defect[:] = 1.0, 0.0, 0.0
    solution.converged[:] = True
    solution.methods.add("closed form" if law is not None else "mean over points")
    return solution
