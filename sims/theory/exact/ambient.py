"""Exact theory on points of the keys' space R^d: for any target, and designs of any known law.

The integrals are those of :mod:`sims.theory.exact.laplace` in the coordinates ``ξ = X``, in which
the target is known (Var[m | ξ] = 0), as one coordinate more of every point. The points of a
randomised Sobol set take the law's place: a law of N points, for which every integral is exact.
Eight independent randomisations give the value, their mean, and its error. Accuracy is limited by
how many points a kernel reaches: narrow kernels in many dimensions do not converge, and are
reported so. An empirical design is a law of N points itself: there only the step in log s is
refined. See docs/theory.md, "Exact at every n", nodes.
"""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.base.errors import InputError
from sims.problem import EmpiricalDesign, Heads, Task
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.execution import MAX_POINTS, Job, bucket, computed
from sims.theory.exact.laplace import (
    TILE,
    Head,
    Nodes,
    Setting,
    Single,
    TargetValues,
    single,
)
from sims.theory.exact.pair_rules import SCATTERED, scattered_pair
from sims.theory.exact.pairs import Couple, Pair, Terms
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.refinement import compare
from sims.theory.exact.rules import RANDOMISATIONS
from sims.theory.exact.solution import ERROR_FLOOR, Place, Progress, Solution, close
from sims.theory.exact.truncation import check_never_zero, compiled_log, log_range

SIZES = (11, 13, 15, 17)
"""log2 of the number of points, by level."""
ROOMS = (13, 17)
"""log2 of the sizes of arrays that hold them: two levels share a program."""
TAIL = 1e-7
"""Share of any integral left outside the range of log s."""
STEP = 0.4
"""In log s; its error is 1e-8."""
UNSEEN = 3
"""P(K > 0) may be this over the number of points, none of which is in a kernel's reach."""
FINER = 0.25
"""The step that it is compared with where points have no error of their own."""


def points_of(task: Task, level: int) -> Nodes:
    """Sets of points of the design, with the target's value as one coordinate more of each.

    Randomised ones at that level, whose log weights have sum 1 in every set; or the one set of an
    empirical design's rows. Points behind those in use are no part of any sum.

    Raises:
        InputError: a value of the target is not finite.
    """
    design = task.design
    if isinstance(design, EmpiricalDesign):
        points = np.asarray(design.rows)[None]
        log_weight = np.full(points.shape[:2], -np.log(len(design.rows)))
        room = used = -(-len(design.rows) // TILE) * TILE
        if used > SCATTERED:
            room = used = -(-used // SCATTERED) * SCATTERED
    else:
        used = 2 ** SIZES[level]
        room = next(2**room for room in ROOMS if room >= SIZES[level])
        p = design.dimension + design.EXTRA_NORMALS
        sets = [
            design.from_normals(sobol_normal(p, SIZES[level], seed))
            for seed in range(RANDOMISATIONS)
        ]
        points, log_weight = (np.stack(part) for part in zip(*sets, strict=True))
    values = task.target.values(points)
    if not np.isfinite(values).all():
        allowed = "finite numbers wherever keys may be"
        raise InputError("target", "NaN or infinity at a point of the design", allowed)
    behind = (0, 0), (0, room - points.shape[1])
    return Nodes(
        np.pad(np.dstack([points, values]), (*behind, (0, 0)), mode="edge"),
        np.pad(log_weight, behind, constant_values=-np.inf),
        np.asarray(used),
    )


def ambient_single(setting: Setting, nodes: Nodes, head: Head) -> Single:
    """:func:`~sims.theory.exact.laplace.single` for each set of points."""

    def replicate(point_set: tuple[Array, Array]) -> Single:
        return single(setting, Nodes(*point_set, nodes.used), head, TargetValues())

    return jax.lax.map(replicate, (nodes.points, nodes.log_weight))


def ambient_pair(setting: Setting, nodes: Nodes, couple: Couple) -> Pair:
    """:func:`~sims.theory.exact.pair_rules.scattered_pair` for each set: ξ_h = ξ_g = X."""

    def replicate(item: tuple[tuple[Array, Array], tuple[Single, Single]]) -> Pair:
        (points, log_weight), curves = item
        joint_nodes = Nodes(jnp.concatenate([points, points], axis=1), log_weight, nodes.used)
        pair = couple._replace(singles=curves)
        correlation = jnp.ones(points.shape[1])
        return scattered_pair(setting, joint_nodes, pair, correlation)

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
    """Terms (σ² = 1) at every query, as :func:`sims.theory.exact.refinement.solve` gives them.

    Raises:
        InputError: the design has no density, the kernel vanishes without a ``support``, or the
            target is not finite.
    """
    solution = Solution.unknown(len(queries), heads.count)
    if rows := isinstance(task.design, EmpiricalDesign):
        solution.methods.add("sum over rows")
        nodes = points_of(task, 0)
        levels = ((nodes, step) for step in (STEP, FINER))
    else:
        solution.methods.add("ambient sobol")
        levels = ((points_of(task, level), STEP) for level in range(len(SIZES))[: max_level + 1])
    earlier: dict[Place, Any] = {}

    def compared(result: Terms, place: Place) -> tuple[Terms, Terms]:
        if rows:  # one set, whose axis the result loses; its error is by the step before
            result = jax.tree.map(lambda leaf: leaf[0], result)
        comparison = compare(result, not rows, earlier.get(place), TAIL)
        earlier[place] = result
        return comparison

    for nodes, step in levels:
        for q, x in enumerate(queries):
            if solution.converged[q].all():
                continue
            items, size, solution.effective_keys[q] = head_arrays(
                heads, n, x, truth[q], nodes, step
            )
            unseen = not rows and UNSEEN * n > rtol * len(nodes.points) * int(nodes.used)
            if size > MAX_POINTS or (unseen and not solution.effective_keys[q].all()):
                continue
            setting = Setting(heads.kernel, size, np.asarray(step), np.asarray(float(n)))
            singles = list(computed([Job(ambient_single, setting, nodes, [(h,) for h in items])]))
            for h, result in enumerate(singles):
                value, error = compared(result, (q, h, h))
                means = result.centre * result.reach
                spread = np.sqrt(max(value.signal, 0.0))
                mean = means.mean()
                if rows:
                    off = error.centre + np.abs(value.centre) * error.reach
                else:
                    off = 3 * means.std(ddof=1) / np.sqrt(len(means)) + 2 * TAIL * spread
                solution.mean[q, h], solution.mean_error[q, h] = mean, off
                solution.empty[q, h] = 1 - value.reach
                enough = off <= rtol * np.hypot(mean - truth[q], spread) + ERROR_FLOOR
                converged = close(value, error, rtol, float(value.signal)) and enough
                solution.put((q, h, h), value, error, converged)
            pairs = list(combinations(range(heads.count), 2))
            couples = [
                (Couple((items[h], items[g]), (singles[h], singles[g]), TargetValues()),)
                for h, g in pairs
            ]
            comparison = computed([Job(ambient_pair, setting, nodes, couples)] if pairs else [])
            for (h, g), result in zip(pairs, comparison, strict=True):
                value_of_pair, error_of_pair = compared(result, (q, h, g))
                scale = np.sqrt(max(solution.signal[q, h, h] * solution.signal[q, g, g], 0.0))
                converged = close(value_of_pair, error_of_pair, rtol, scale)
                solution.put((q, h, g), value_of_pair, error_of_pair, converged)
            progress(int(solution.converged.sum()), solution.converged.size)
    return solution


def head_arrays(
    heads: Heads, n: int, x: Float[np.ndarray, " d"], truth: float, nodes: Nodes, step: float
) -> tuple[list[Head], int, list[float]]:
    """Heads in the coordinates ξ, the size of a grid in log s that serves all, effective keys."""
    width = nodes.points.shape[-1]
    frames = np.asarray(heads.frames)
    bandwidth = np.asarray(heads.bandwidth)
    key_frames = np.pad(np.asarray(heads.of_keys), ((0, 0), (0, width - len(x)), (0, 0)))
    log_weight = nodes.log_weight[:, : int(nodes.used)]
    log_weight = (log_weight - np.log(len(log_weight))).ravel()
    centre = np.zeros(width)
    shape = np.eye(width)
    centre[len(x) :] = truth
    items = []
    sizes = []
    effective = []
    for h in range(heads.count):
        query = frames[h].T @ x
        keys = np.moveaxis(nodes.points @ key_frames[h], 2, 0)
        values = compiled_log(heads.kernel)(query[:, None, None], keys, bandwidth[h])
        log_kernel = np.asarray(values)[:, : int(nodes.used)].ravel()
        check_never_zero(heads.kernel, log_kernel)
        compact = heads.kernel.support is not None
        low, high, effective_keys = log_range(log_weight, log_kernel, n, TAIL, compact)
        items.append(Head(key_frames[h].T, query, centre, shape, float(bandwidth[h]), low, 0.0))
        # One more point, which u = ∞ takes for a compact kernel.
        sizes.append(int(np.ceil((high - low) / step)) + 2)
        effective.append(effective_keys)
    return items, bucket(max(sizes)), effective


def one_key(task: Task, law: GaussianLaw | None, queries: int, heads: int) -> Solution:
    """n = 1 and a kernel that never vanishes: f̂ = Y; by the most points where it has no ``law``."""
    off = np.zeros(2)
    if law is not None:
        mean, variance = law.mean_and_variance()
    else:
        nodes = points_of(task, -1)
        weight = np.exp(nodes.log_weight)
        values = nodes.points[..., -1]
        means = np.sum(weight * values, axis=1)
        variances = np.sum(weight * (values - means[:, None]) ** 2, axis=1)
        mean = float(means.mean())
        variance = float(variances.mean())
        off = 3 * np.std([means, variances], axis=1) / np.sqrt(max(len(means) - 1, 1))
    solution = Solution.unknown(queries, heads)
    solution.mean[:], solution.mean_error[:] = mean, off[0]
    solution.effective_keys[:] = 1.0
    solution.empty[:] = 0.0
    solution.signal[:], solution.signal_error[:] = variance, off[1]
    solution.noise[:] = 1.0
    solution.noise_error[:] = 0.0
    solution.defect[:] = 0.0
    solution.converged[:] = True
    solution.methods.add("closed form" if law is not None else "mean over points")
    return solution
