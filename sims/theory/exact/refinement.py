"""Product quadrature: the integrals of all heads and pairs on grids, finer until accurate.

Heads see few dimensions of Gaussian keys (:mod:`~.conditioning`): each has polar nodes around its
kernel's centre, a pair the product of both heads' nodes. The error of a number is its distance from
the level before, plus the tails left out and the defect.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from sims.base.runtime import in_threads
from sims.problem import Heads
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.laplace import Head, Nodes, Setting, Single, single
from sims.theory.exact.pairs import Couple, Pair, Terms, product_pair
from sims.theory.exact.quadrature import ball_rule
from sims.theory.exact.solution import ERROR_FLOOR, TINY, Place, Progress, Solution, close
from sims.theory.exact.truncation import GRADING, pilot

TAILS = {1: 1e-11, 2: 1e-9}
"""Share of an integral left outside its range, by head dimension; 1e-7 above. Refinement does not
see it, so it is part of every error."""
STEP = 0.3
"""In log s: an error of 1e-12."""
MOST_POINTS = 1024
"""Points of a grid in log s up to which quadrature is tried; a pair has this number squared."""
SINGLE_SHARE = 0.1
"""Single heads are cheap and enter every pair, so they are computed to this share of rtol."""
SINGLE_SIZES = {1: (48, 2), 2: (20, 16), 3: (14, 12)}
PAIR_SIZES = {1: (32, 2), 2: (10, 8), 3: (8, 8)}
"""Radial nodes and points on a great circle at level 0, by the rank k of a head."""
GROWTH = 1.4
"""Nodes per direction grow by this factor from level to level."""
NARROWEST = {1: 0.05}
"""Least width ``√(1 − ρ²)`` of the law of one head given the other that grids resolve, by the
rank; 0.3 above 1."""
MOST_SINGLE, MOST_JOINT = 200_000, 12_000_000
"""Nodes of a head, and joint nodes of a pair; above, a level is out of reach."""
LEAST_NODES = 1024
"""Grids are padded to 1024·8^j nodes, so that levels share their programs."""


class Item(NamedTuple):
    """A head or a pair at a query: ranks of its heads, and its arrays."""

    place: Place
    ranks: tuple[int, ...]
    arrays: Any


def solve(
    law: GaussianLaw,
    heads: Heads,
    n: int,
    queries: Float[np.ndarray, "Q d"],
    truth: Float[np.ndarray, " Q"],
    rtol: float,
    max_level: int,
    progress: Progress,
) -> Solution | None:
    """Terms (σ² = 1) at every query, refined until ``rtol`` or ``max_level`` is reached.

    None where grids do not reach: heads of more than three dimensions, nearly aligned ones, or
    kernels that need a very long grid in log s, or are so narrow that nodes miss them.

    Args:
        law: description of keys and target.
        heads: their frames, kernel and bandwidths.
        n: number of keys.
        queries: x.
        truth: m(x).
        rtol: accuracy, see :func:`sims.theory.exact.exact_terms`.
        max_level: the last level of nodes.
        progress: function called with the numbers of finished and of all heads and pairs.
    """
    tail = TAILS.get(heads.width, 1e-7)
    placed: dict[Place, Head] = {}
    for q, h in np.ndindex(len(queries), heads.count):
        placed[q, h, h] = law.project(heads, h, queries[q])
    if max(head.rank for head in placed.values()) > max(SINGLE_SIZES):
        return None
    extents = {place: pilot(heads.kernel, head, n, tail) for place, head in placed.items()}
    points = max((extent.high - extent.low) / STEP for extent in extents.values())
    if points > MOST_POINTS:
        return None
    for place, extent in extents.items():
        head = placed[place]
        placed[place] = head._replace(shape=extent.radius * head.shape, low=extent.low)
    bandwidth = np.asarray(heads.bandwidth)
    couples: dict[Place, Couple] = {}
    for q, pair in product(range(len(queries)), combinations(range(heads.count), 2)):
        # The narrower head first, within whose support the other has no edge.
        h, g = sorted(pair, key=bandwidth.__getitem__)
        couple = law.pair(placed[q, h, h], placed[q, g, g])
        narrowest = NARROWEST.get(max(head.rank for head in couple.heads), 0.3)
        if (1 - couple.correlation**2 <= narrowest**2).any():
            return None
        couples[q, h, g] = couple
    solution = Solution(len(queries), heads.count)
    solution.methods.add("product quadrature")
    # Few sizes, so that problems share programs.
    padded = 64 * int(np.ceil((points + 1) / 64))
    setting = Setting(heads.kernel, padded, np.asarray(STEP), np.asarray(float(n)))
    size = float(np.abs(law.amplitude).sum())
    refinement = Refinement(setting, truth, rtol, tail, size, max_level, progress, solution)
    singles = []
    for place, head in placed.items():
        given = law.condition(head.loading, head.loading[:, :0], np.zeros(0))
        singles.append(Item(place, (head.rank,), (head, given)))
    curves = refinement.singles(singles)
    pairs = []
    for (q, h, g), couple in couples.items():
        first, second = couple.heads
        given = law.condition(first.loading, second.loading, couple.correlation)
        arrays = couple, (curves[q, h, h], curves[q, g, g]), given
        pairs.append(Item((q, h, g), (first.rank, second.rank), arrays))
    refinement.pairs(pairs)
    sums = solution.mean[:, :, None] + solution.signal + solution.noise
    return solution if np.isfinite(sums).all() else None


@cache
def grid(sizes: tuple[int, int], rank: int, level: int, grading: int) -> Nodes:
    """The polar grid at that level, padded with nodes of weight 0."""
    # Graded radii resolve the edge of a support: twice the radii at the least level.
    radial, order = (2 * round(size * GROWTH**level / 2) for size in sizes)
    radius, direction, weight = ball_rule(
        rank, radial if grading == 1 else 2 * radial, order, grading
    )
    size = LEAST_NODES
    used = len(weight)
    while size < used:
        size *= 8
    points = np.pad(radius[:, None] * direction, ((0, size - used), (0, 0)))
    log_weight = np.pad(np.log(weight), (0, size - used), constant_values=-np.inf)
    return Nodes(points, log_weight, np.asarray(used))


@dataclass
class Refinement:
    """Levels of nodes, run over what has not converged, of a problem as :func:`solve` has it."""

    setting: Setting
    truth: Float[np.ndarray, " Q"]
    rtol: float
    tail: float
    size: float
    """A bound of |m|."""
    max_level: int
    progress: Progress
    solution: Solution

    def refine(
        self,
        function: Callable[..., Terms],
        items: Sequence[Item],
        sizes: Mapping[int, tuple[int, int]],
        most: int,
        accept: Callable[[Place, Any, Any], None],
    ) -> dict[Place, Any]:
        """The last value of every item; ``accept`` enters values and errors, level by level.

        Nodes have ``sizes`` at level 0; levels with more than ``most`` of them are left out.
        """
        values: dict[Place, Any] = {}
        grading = GRADING if self.setting.compact else 1
        converged = self.solution.converged

        def evaluate(item: Item, nodes: Any) -> Terms:
            found = function(self.setting, nodes, *item.arrays)
            return jax.tree.map(np.asarray, found)

        for level in range(self.max_level + 1):
            calls = []
            for item in items:
                nodes = tuple(grid(sizes[rank], rank, level, grading) for rank in item.ranks)
                used = math.prod(int(part.used) for part in nodes)
                if used <= most and not converged[item.place]:
                    calls.append((item, nodes))
            results = in_threads(lambda call: evaluate(*call), calls)
            for (item, _), value in zip(calls, results, strict=True):
                accept(item.place, *self.compare(value, values.get(item.place)))
                values[item.place] = value
            self.progress(int(converged.sum()), converged.size)
        return values

    def compare(self, value: Terms, previous: Terms | None) -> tuple[Terms, Terms]:
        """Value and error, against the level before."""
        # What refinement does not see: the tails left out, and what the check m ≡ 1 reveals.
        unseen = 2 * self.tail + value.defect

        def off(leaf: np.ndarray, before: np.ndarray) -> np.ndarray:
            return np.abs(leaf - before) + unseen * np.abs(leaf)

        if previous is None:
            return value, jax.tree.map(lambda leaf: np.full_like(leaf, np.inf), value)
        error = jax.tree.map(off, value, previous)
        if isinstance(value, Single):
            # A ratio of two integrals: tails shift it by the target's spread among the keys
            # attended to, about √(signal/noise), and not at all where the target is constant.
            ratio = np.sqrt(max(value.signal, 0.0) / max(value.noise, TINY))
            error = error._replace(centre=error.centre + unseen * (ratio - abs(value.centre)))
        return value, error

    def singles(self, items: Sequence[Item]) -> dict[Place, Single]:
        """Refine heads: mean relative to √(β² + S), signal and noise to themselves."""
        rtol = SINGLE_SHARE * self.rtol
        solution = self.solution

        def accept(place: Place, value: Single, error: Single) -> None:
            q, h, _ = place
            mean = value.centre * value.reach
            mean_error = error.centre * value.reach
            if value.reach < 1:  # 1 is exact: a kernel that never vanishes
                mean_error += error.reach * np.abs(value.centre)
            scale = np.sqrt((mean - self.truth[q]) ** 2 + max(value.signal, 0.0))
            enough = mean_error <= rtol * scale + ERROR_FLOOR * self.size
            solution.mean[q, h], solution.mean_error[q, h] = mean, mean_error
            solution.empty[q, h] = 1 - value.reach
            scale = float(value.signal)
            converged = enough and close(value, error, rtol, scale, ERROR_FLOOR * self.size**2)
            solution.put(place, value, error, converged)

        return self.refine(single, items, SINGLE_SIZES, MOST_SINGLE, accept)

    def pairs(self, items: Sequence[Item]) -> None:
        """Refine pairs: signal relative to √(S_hh S_gg), noise to itself."""
        signal = self.solution.signal

        def accept(place: Place, value: Pair, error: Pair) -> None:
            q, h, g = place
            # Zero, up to the sign of its rounding, for a constant target.
            scale = np.sqrt(max(signal[q, h, h] * signal[q, g, g], TINY))
            converged = close(value, error, self.rtol, scale, ERROR_FLOOR * self.size**2)
            self.solution.put(place, value, error, converged)

        self.refine(product_pair, items, PAIR_SIZES, MOST_JOINT, accept)
