"""Exact theory on points of the keys' space R^d: for any target, and designs of any known law.

The integrals are those of :mod:`sims.theory.exact.laplace` in the coordinates ``ξ = X``, in which
the target is known (Var[m | ξ] = 0), as one coordinate more of every point. The points of a
randomised Sobol set take the law's place: a law of N points, for which every integral is exact.
Eight independent randomisations give the value, their mean, and its error. Accuracy is limited by
how many points a kernel reaches: narrow kernels in many dimensions do not converge, and are
reported so. An empirical design is a law of N points itself: there only the step in log s is
refined. See docs/theory.md, "Exact at every n", nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.base.errors import InputError
from sims.problem import EmpiricalDesign, Heads, Task
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.execution import MAX_POINTS, Job, bucket, compute_jobs
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
        room = 2 ** min(room for room in ROOMS if room >= SIZES[level])
        p = design.dimension + design.EXTRA_NORMALS
        sets = []
        for seed in range(RANDOMISATIONS):
            sets.append(design.from_normals(sobol_normal(p, SIZES[level], seed)))
        points, log_weight = map(np.stack, zip(*sets, strict=True))
    values = task.target.values(points)
    if not np.isfinite(values).all():
        allowed = "finite numbers wherever the design has mass"
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
    refinement = PointRefinement(task, heads, n, truth, rtol)
    for nodes, step in refinement.levels(max_level):
        for q, x in enumerate(queries):
            if not refinement.solution.converged[q].all():
                refinement.solve_query(q, x, nodes, step)
                converged = refinement.solution.converged
                progress(int(converged.sum()), converged.size)
    return refinement.solution


@dataclass
class PointRefinement:
    """Terms of heads and pairs, level by level, of a problem as :func:`solve_ambient` has it."""

    task: Task
    heads: Heads
    n: int
    truth: Float[np.ndarray, " Q"]
    rtol: float

    def __post_init__(self) -> None:
        self.rows = isinstance(self.task.design, EmpiricalDesign)
        """True if points are an empirical design's rows, of which there is one set."""
        self.solution = Solution.unknown(len(self.truth), self.heads.count)
        self.solution.methods.add("sum over rows" if self.rows else "ambient sobol")
        self.earlier: dict[Place, Any] = {}

    def levels(self, max_level: int) -> Iterator[tuple[Nodes, float]]:
        """Points and steps in log s, of one level after another."""
        if self.rows:
            nodes = points_of(self.task, 0)
            yield nodes, STEP
            yield nodes, FINER
        else:
            for level in range(len(SIZES))[: max_level + 1]:
                yield points_of(self.task, level), STEP

    def compare_levels(self, result: Terms, place: Place) -> tuple[Terms, Terms]:
        """Value and error of a result."""
        if self.rows:  # one set, whose axis the result loses; its error is by the step before
            result = jax.tree.map(lambda leaf: leaf[0], result)
        comparison = compare(result, not self.rows, self.earlier.get(place), TAIL)
        self.earlier[place] = result
        return comparison

    def solve_query(self, q: int, x: Float[np.ndarray, " d"], nodes: Nodes, step: float) -> None:
        """Enter all heads and pairs at a query, unless the points are too few for them."""
        items, size, effective_keys = head_arrays(self.heads, self.n, x, self.truth[q], nodes, step)
        self.solution.effective_keys[q] = effective_keys
        used = len(nodes.points) * int(nodes.used)
        unseen = not self.rows and UNSEEN * self.n > self.rtol * used
        if size > MAX_POINTS or (unseen and not np.all(effective_keys)):
            return
        setting = Setting(self.heads.kernel, size, np.asarray(step), np.asarray(float(self.n)))
        heads = Job(ambient_single, setting, nodes, [(item,) for item in items])
        singles = list(compute_jobs([heads]))
        for h, result in enumerate(singles):
            self.put_head(q, h, result)
        if len(items) == 1:
            return
        pairs = list(combinations(range(len(items)), 2))
        couples = []
        for h, g in pairs:
            couple = Couple((items[h], items[g]), (singles[h], singles[g]), TargetValues())
            couples.append((couple,))
        signal = self.solution.signal[q]
        results = compute_jobs([Job(ambient_pair, setting, nodes, couples)])
        for (h, g), result in zip(pairs, results, strict=True):
            value, error = self.compare_levels(result, (q, h, g))
            scale = np.sqrt(max(signal[h, h] * signal[g, g], 0.0))
            converged = close(value, error, self.rtol, scale)
            self.solution.put((q, h, g), value, error, converged)

    def put_head(self, q: int, h: int, result: Single) -> None:
        """Enter a head at a query."""
        value, error = self.compare_levels(result, (q, h, h))
        means = result.centre * result.reach
        spread = np.sqrt(max(value.signal, 0.0))
        mean = means.mean()
        if self.rows:
            off = error.centre + np.abs(value.centre) * error.reach
        else:
            off = 3 * means.std(ddof=1) / np.sqrt(len(means)) + 2 * TAIL * spread
        self.solution.mean[q, h], self.solution.mean_error[q, h] = mean, off
        self.solution.empty[q, h] = 1 - value.reach
        enough = off <= self.rtol * np.hypot(mean - self.truth[q], spread) + ERROR_FLOOR
        converged = close(value, error, self.rtol, float(value.signal)) and enough
        self.solution.put((q, h, h), value, error, converged)


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
