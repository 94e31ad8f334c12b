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
from dataclasses import dataclass, field
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.errors import InputError
from sims.problem import EmpiricalDesign, Heads, Target, Task, TrigonometricSeries
from sims.problem.design_laws import Design
from sims.theory.exact.execution import MAX_POINTS, Job, bucket
from sims.theory.exact.laplace import (
    TILE,
    Head,
    Known,
    Nodes,
    Regression,
    Setting,
    Single,
    point_single,
)
from sims.theory.exact.pair_rules import SCATTERED, scattered_pair
from sims.theory.exact.pairs import Couple, Pair, Terms
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.refinement import compare
from sims.theory.exact.rules import RANDOMISATIONS, Rule
from sims.theory.exact.solution import ERROR_FLOOR, Progress, Solution
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


def atom_single(
    setting: Setting, nodes: Nodes, head: Head, regression: Regression | Known
) -> Single:
    """:func:`~sims.theory.exact.laplace.point_single` for the one set there is."""
    own = Nodes(nodes.points[0], nodes.log_weight[0], nodes.used)
    return point_single(setting, own, head, regression)


def atom_pair(setting: Setting, nodes: Nodes, couple: Couple) -> Pair:
    """:func:`~sims.theory.exact.pair_rules.scattered_pair` for the one set there is."""
    points, same = nodes.points[0], jnp.ones(nodes.points.shape[2])
    return scattered_pair(setting, couple, same, points, points, nodes.log_weight[0], nodes.used)


SINGLE = Rule("ambient sobol", ambient_single, True, Single)
PAIR = Rule("ambient sobol", ambient_pair, True, Pair)
ATOM_SINGLE = Rule("sum over rows", atom_single, False, Single)
ATOM_PAIR = Rule("sum over rows", atom_pair, False, Pair)


@dataclass
class Ambient:
    """One problem on its points, level by level.

    Attributes:
        task: design, target, noise.
        heads: with a kernel.
        n: number of keys.
        rtol: accuracy, see :func:`sims.theory.exact.exact_terms`.
        solution: what is filled in.
        earlier: of points without an error of their own, the numbers with the step before.
    """

    task: Task
    heads: Heads
    n: int
    rtol: float
    solution: Solution
    earlier: dict[tuple[int, ...], Single | Pair] = field(default_factory=dict)

    @property
    def random(self) -> bool:
        """Whether points are drawn, and have an error by their spread."""
        return not isinstance(self.task.design, EmpiricalDesign)

    def levels(self, most: int) -> Iterator[tuple[Nodes, float]]:
        """Points, and steps in log s."""
        design, target = self.task.design, self.task.target
        if isinstance(design, EmpiricalDesign):
            nodes = with_values(atoms(design), target)
            yield from ((nodes, step) for step in (STEP, FINER))
            return
        for size in SIZES[: most + 1]:
            room = next(room for room in ROOMS if room >= size)
            yield with_values(sample_points(design, size, room), target), STEP

    def query(
        self, q: int, x: Float[np.ndarray, " d"], truth: float, at: Nodes, step: float
    ) -> None:
        """Enter query number q, at x, into the solution."""
        solution, heads, n = self.solution, self.heads, self.n
        items, size = self._head_arrays(q, x, truth, at, step)
        if n == 1 and heads.kernel.support is None:
            _one_key(solution, self.task, q, at, self.rtol, truth)
            return
        if size > MAX_POINTS:
            solution.put_unknown(q)
            return
        regression, phase = known(self.task.target)
        setting = Setting(heads.kernel, size, np.asarray(step), np.asarray(float(n)), phase)
        rule, pair_rule = (SINGLE, PAIR) if self.random else (ATOM_SINGLE, ATOM_PAIR)
        singles = Job(rule, setting, at, [(item, regression) for item in items]).run()
        values = []
        for h, one in enumerate(singles):
            value, error = self._compared(one, (q, h))
            means = np.atleast_1d(one.centre * one.reach)
            tails = 2 * TAIL * np.sqrt(max(value.signal, 0.0))
            solution.mean[q, h] = means.mean()
            if self.random:
                solution.mean_error[q, h] = 3 * means.std(ddof=1) / np.sqrt(len(means)) + tails
            else:
                solution.mean_error[q, h] = error.centre + np.abs(value.centre) * error.reach
            solution.empty[q, h] = 1 - value.reach
            scale = np.sqrt((solution.mean[q, h] - truth) ** 2 + max(value.signal, 0.0))
            solution.put_values(q, h, h, value, error, self.rtol, float(value.signal))
            enough = solution.mean_error[q, h] <= self.rtol * scale + ERROR_FLOOR
            solution.converged[q, h, h] &= enough
            values.append(value)
        pairs = list(combinations(range(heads.count), 2))
        if not pairs:
            return
        couples = [
            (Couple((items[h], items[g]), (singles[h], singles[g]), regression),) for h, g in pairs
        ]
        found = Job(pair_rule, setting, at, couples).run()
        for (h, g), result in zip(pairs, found, strict=True):
            both, both_error = self._compared(result, (q, h, g))
            scale = float(np.sqrt(max(values[h].signal * values[g].signal, 0.0)))
            for a, b in ((h, g), (g, h)):
                solution.put_values(q, a, b, both, both_error, self.rtol, scale)

    def _compared(self, result: Terms, place: tuple[int, ...]) -> tuple[Terms, Terms]:
        """Value and error, by the spread of random points or against the step before."""
        before = self.earlier.get(place)
        if not self.random:
            self.earlier[place] = result
        return compare(result, self.random, before, TAIL)  # type: ignore[arg-type]

    def _head_arrays(
        self, q: int, x: Float[np.ndarray, " d"], truth: float, at: Nodes, step: float
    ) -> tuple[list[Head], int]:
        """Heads in the coordinates ξ, and the size of a grid in log s that serves all of them."""
        heads, n = self.heads, self.n
        width = at.points.shape[-1]
        extra = width - len(x)
        frames, bandwidth = np.asarray(heads.frames), np.asarray(heads.bandwidth)
        of_keys = np.pad(np.asarray(heads.of_keys), ((0, 0), (0, extra), (0, 0)))
        log_weight = at.log_weight[:, : int(at.used)]
        log_weight = (log_weight - np.log(len(log_weight))).ravel()
        centre, shape = np.zeros(width), np.eye(width)
        centre[len(x) :] = truth
        items, sizes = [], []
        for h in range(heads.count):
            query, keys = frames[h].T @ x, np.moveaxis(at.points @ of_keys[h], 2, 0)
            values = compiled_log(heads.kernel)(query[:, None, None], keys, bandwidth[h])
            log_kernel = np.asarray(values)[:, : int(at.used)].ravel()
            check_never_zero(heads.kernel, log_kernel)
            compact = heads.kernel.support is not None
            low, high, self.solution.effective_keys[q, h] = log_range(
                log_weight, log_kernel, n, TAIL, compact
            )
            items.append(Head(of_keys[h].T, query, centre, shape, float(bandwidth[h]), low, 0.0))
            # One more point, which u = ∞ takes for a compact kernel.
            sizes.append(int(np.ceil((high - low) / step)) + 2)
        return items, bucket(max(sizes))


def known(target: Target) -> tuple[Regression | Known, Float[np.ndarray, " J"]]:
    """The target given X, and its phases: of a series by its waves, else a coordinate of points."""
    if not isinstance(target, TrigonometricSeries):
        return Known(), np.zeros(0)
    frequency, phase = np.asarray(target.frequency), np.asarray(target.phase)
    amplitude, nothing = np.asarray(target.amplitude), np.zeros((len(phase), len(phase)))
    return Regression(frequency, np.zeros_like(frequency), amplitude, nothing, nothing), phase


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
    solution = Solution.blank(len(queries), heads.count)
    ambient = Ambient(task, heads, n, rtol, solution)
    solution.methods.add((SINGLE if ambient.random else ATOM_SINGLE).name)
    solution.converged[:] = False
    for at, step in ambient.levels(max_level):
        for q, x in enumerate(queries):
            if not solution.converged[q].all():
                ambient.query(q, x, float(truth[q]), at, step)
                progress(int(solution.converged.sum()), solution.converged.size)
        if solution.converged.all():
            break
    return solution


def _one_key(
    solution: Solution, task: Task, q: int, nodes: Nodes, rtol: float, truth: float
) -> None:
    """Enter query q for n = 1 and a kernel that never vanishes: f̂ = Y."""
    used = int(nodes.used)
    values = np.asarray(task.target(jnp.asarray(nodes.points[:, :used, : task.dimension])))
    weight = np.exp(nodes.log_weight[:, :used])
    means = np.sum(weight * values, axis=1)
    variances = np.sum(weight * (values - means[:, None]) ** 2, axis=1)
    (mean, mean_error), (variance, variance_error) = (
        (part.mean(), 3 * part.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else 0.0)
        for part in (means, variances)
    )
    solution.mean[q], solution.mean_error[q] = mean, mean_error
    solution.signal[q], solution.signal_error[q] = variance, variance_error
    solution.noise[q], solution.effective_keys[q] = 1.0, 1.0
    scale = np.sqrt((mean - truth) ** 2 + variance)
    solution.converged[q] = bool(
        mean_error <= rtol * scale + ERROR_FLOOR and variance_error <= rtol * variance + ERROR_FLOOR
    )
