"""Refinement: the integrals of all heads and pairs, level by level, until accurate enough."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from sims.problem import Heads
from sims.theory.arrays import Numbers
from sims.theory.exact import rules
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.execution import MAX_POINTS, Job, compute_jobs, merged
from sims.theory.exact.items import HeadItem, PairItem, program_kernel
from sims.theory.exact.laplace import Setting, Single
from sims.theory.exact.pairs import Pair, Terms
from sims.theory.exact.solution import ERROR_FLOOR, Place, Progress, Solution, close
from sims.theory.exact.truncation import GRADING, pilot

TAILS = {1: 1e-11, 2: 1e-9}
"""Share of an integral left outside its range, by head dimension; 1e-7 above. Refinement does not
see it, so it is part of every error."""
DEFECTS = {1: 1e-8, 2: 1e-5}
"""Defect that must be reached besides rtol, by head dimension; 1e-3 above."""
SINGLE_SHARE = 0.1
"""Single heads are cheap and enter every pair, so they are computed to this share of rtol."""
CURVE_STEP = 0.4
"""Step in log s by which grids are sized, at least: coarse levels then share their programs."""
TINY = float(np.finfo(float).tiny)
"""Lower bound of a denominator."""

Item = TypeVar("Item", HeadItem, PairItem)
Groups = dict[tuple[rules.Rule, rules.Need], list[tuple[Item, rules.Items]]]
"""Items that are computed alike, each with its arrays."""


def solve(
    law: GaussianLaw,
    heads: Heads,
    n: int,
    queries: Float[np.ndarray, "Q d"],
    truth: Float[np.ndarray, " Q"],
    rtol: float,
    max_level: int,
    progress: Progress,
) -> Solution:
    """Terms (σ² = 1) at every query, refined until ``rtol`` or ``max_level`` is reached.

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
    solution = Solution.unknown(len(queries), heads.count)
    refinement = Refinement(law, heads, n, truth, rtol, max_level, progress, solution)
    singles = {}
    pairs = []
    bandwidth = np.asarray(heads.bandwidth)
    for q, x in enumerate(queries):
        for h in range(heads.count):
            projection = law.project(heads, h, x)
            extent = pilot(heads.kernel, projection, n, refinement.tail)
            singles[q, h] = HeadItem((q, h, h), projection, extent)
            solution.effective_keys[q, h] = extent.effective_keys
        for h, g in combinations(range(heads.count), 2):
            # The narrower head first, within whose support the other has no edge.
            narrow, wide = sorted((h, g), key=bandwidth.__getitem__)
            first = singles[q, narrow]
            second = singles[q, wide]
            pairs.append(PairItem((q, h, g), first, second, law.pair(first.head, second.head)))
    refinement.singles(list(singles.values()))
    refinement.pairs(pairs)
    return solution


@dataclass
class Refinement:
    """Levels of nodes, run over what has not converged, of a problem as :func:`solve` has it."""

    law: GaussianLaw
    heads: Heads
    n: int
    truth: Float[np.ndarray, " Q"]
    rtol: float
    max_level: int
    progress: Progress
    solution: Solution

    def __post_init__(self) -> None:
        self.kernel = self.heads.kernel
        self.compact = self.kernel.support is not None
        self.grading = GRADING if self.compact else 1
        self.tail = TAILS.get(self.heads.width, 1e-7)
        self.defect = DEFECTS.get(self.heads.width, 1e-3)
        self.size = float(np.abs(self.law.amplitude).sum())
        """A bound of |m|."""

    def levels(self, items: Sequence[Item]) -> Iterator[tuple[int, float, list[tuple[Item, int]]]]:
        """Level, step in log s, and what is not done, with the sizes of grids in log s."""
        converged = self.solution.converged
        for level in range(self.max_level + 1):
            step = rules.step_of(level, self.heads.width)
            yield level, step, grids([i for i in items if not converged[i.place]], step)
            self.progress(int(converged.sum()), converged.size)

    def close(self, value: Terms, error: Terms, rtol: float, scale: float) -> bool:
        """True if signal, noise and defect are accurate enough."""
        floor = ERROR_FLOOR * self.size**2
        return close(value, error, rtol, scale, floor) and bool(value.defect <= self.defect)

    def singles(self, items: Sequence[HeadItem]) -> None:
        """Refine heads: mean relative to √(β² + S), signal and noise to themselves."""
        rtol = SINGLE_SHARE * self.rtol
        solution = self.solution
        for level, step, sized in self.levels(items):
            for item, result, random in self._run_singles(sized, step, level):
                value, error = compare(result, random, item.value, self.tail)
                item.value = value
                item.level = level
                q, h, _ = item.place
                mean = value.centre * value.reach
                mean_error = error.centre * value.reach
                if value.reach < 1:  # 1 is exact: a kernel that never vanishes
                    mean_error += error.reach * np.abs(value.centre)
                scale = np.sqrt((mean - self.truth[q]) ** 2 + max(value.signal, 0.0))
                enough = mean_error <= rtol * scale + ERROR_FLOOR * self.size
                solution.mean[q, h], solution.mean_error[q, h] = mean, mean_error
                solution.empty[q, h] = 1 - value.reach
                converged = enough and self.close(value, error, rtol, float(value.signal))
                solution.put(item.place, value, error, converged)

    def pairs(self, items: Sequence[PairItem]) -> None:
        """Refine pairs: signal relative to √(S_hh S_gg), noise to itself."""
        for level, step, sized in self.levels(items):
            curves = self._curves(sized, step, level)
            groups: Groups[PairItem] = defaultdict(list)
            for item, size in sized:
                need = rules.Need(item.ranks, size, self.grading, item.frozen)
                rule = self._rule_for_pair(item, need, level)
                first, second = item.heads
                if rule and first.place in curves and second.place in curves:
                    pair_curves = (
                        self._cut(*curves[first.place], size, rule.random),
                        self._cut(*curves[second.place], size, rule.random),
                    )
                    packed = rule.pack(item, self.kernel, self.law, pair_curves)
                    groups[rule, need].append((item, packed))
            for item, result, random in self._run(groups, step, level):
                self._update_pair(item, result, random)

    def _rule_for_pair(self, item: PairItem, need: rules.Need, level: int) -> rules.Rule | None:
        """The first rule that has nodes at this level."""
        for rule in rules.rules_for_pair(self.kernel, item):
            if rule.nodes(need, level) is not None:
                return rule
        return None

    def _run(
        self, groups: Groups[Item], step: float, level: int
    ) -> Iterator[tuple[Item, Any, bool]]:
        """Items with their results, and whether these are randomised."""
        kernel = program_kernel(self.kernel)
        n = np.asarray(float(self.n))
        jobs = []
        order = []
        for (rule, need), members in groups.items():
            self.solution.methods.add(rule.name)
            setting = Setting(kernel, need.size, np.asarray(step), n)
            nodes = rule.nodes(need, level)
            items, packed = zip(*members, strict=True)
            jobs.append(Job(rule.function, setting, nodes, packed))
            order += [(item, rule.random) for item in items]
        for (item, random), result in zip(order, compute_jobs(jobs), strict=True):
            yield item, result, random

    def _update_pair(self, item: PairItem, result: Pair, random: bool) -> None:
        value, error = compare(result, random, item.value, self.tail)
        q, h, g = item.place
        signal = self.solution.signal
        # Zero, up to the sign of its rounding, for a constant target.
        scale = np.sqrt(max(signal[q, h, h] * signal[q, g, g], TINY))
        # Randomised points take over where a grid is exhausted: only if they do better.
        if random and item.value is not None and item.error is not None:
            before = largest_share(item.error, item.value, scale)
            if largest_share(error, value, scale) > before:
                return
        item.value, item.error = value, error
        converged = self.close(value, error, self.rtol, scale)
        self.solution.put(item.place, value, error, converged)

    def _curves(
        self, sized: Sequence[tuple[PairItem, int]], step: float, level: int
    ) -> dict[Place, tuple[Single, bool]]:
        """The heads' curves that these pairs need, on this level's grid in log s.

        From nodes as fine as the heads' own accuracy took: their error is far below the pair's.
        """
        heads: dict[Place, HeadItem] = {}
        largest: dict[Place, int] = defaultdict(int)
        for item, size in sized:
            for head in item.heads:
                heads[head.place] = head
                largest[head.place] = max(largest[head.place], size)
        groups: dict[int, list[tuple[HeadItem, int]]] = defaultdict(list)
        for head in heads.values():
            # A grid's accuracy was reached at head.level and no other; random points of a level
            # beyond the pair's own would cost more than the pair.
            random = rules.rule_for_single(head.head.rank).random
            fineness = min(head.level, level + 1) if random else head.level
            groups[fineness].append((head, largest[head.place]))
        curves = {}
        for fineness, members in groups.items():
            for head, result, random in self._run_singles(members, step, fineness):
                curves[head.place] = result, random
        return curves

    def _run_singles(
        self, sized: Sequence[tuple[HeadItem, int]], step: float, level: int
    ) -> Iterator[tuple[HeadItem, Single, bool]]:
        groups: Groups[HeadItem] = defaultdict(list)
        for item, size in sized:
            need = rules.Need((item.head.rank,), size, self.grading)
            rule = rules.rule_for_single(item.head.rank)
            if need.size <= MAX_POINTS and rule.nodes(need, level) is not None:
                groups[rule, need].append((item, rule.pack(item, self.kernel, self.law)))
        return self._run(groups, step, level)

    def _cut(self, curve: Single, random: bool, size: int, spread: bool) -> Single:
        """A head's curves on the first ``size`` points, with a copy a randomisation to ``spread``.

        A compact kernel's last point is u = ∞ and stays.
        """
        index = np.arange(size)
        if self.compact:
            index[-1] = -1

        def shorten(leaf: Numbers) -> Numbers:
            shorter = leaf[..., index] if leaf.ndim == 1 + random else leaf
            if spread and not random:
                return np.broadcast_to(shorter, (rules.RANDOMISATIONS, *np.shape(shorter)))
            return shorter

        return Single(*map(shorten, curve))


def largest_share(error: Terms, value: Terms, scale: float) -> float:
    """The larger of the errors of signal, relative to a scale, and of noise, to itself."""
    return max(float(error.signal) / scale, float(error.noise) / max(float(value.noise), TINY))


def grids(items: Sequence[Item], step: float) -> list[tuple[Item, int]]:
    """Items with the sizes of their grids in log s; few sizes, so that they share programs."""
    sizes = merged([item.points(min(step, CURVE_STEP)) for item in items])
    return list(zip(items, sizes, strict=True))


def distance(value: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """``|value − earlier|`` of numbers; 0 of curves, whose grids differ between levels."""
    return np.abs(value - earlier) if np.ndim(value) == 0 else np.zeros_like(value)


def compare(
    result: Terms, random: bool, previous: Terms | None, tail: float
) -> tuple[Terms, Terms]:
    """Value and error: three standard errors over randomisations, or against the level before."""
    value = result
    if random:
        value = jax.tree.map(lambda leaf: np.mean(leaf, axis=0), result)
        root = np.sqrt(rules.RANDOMISATIONS)
        spread = jax.tree.map(lambda leaf: 3 * np.std(leaf, axis=0, ddof=1) / root, result)
    elif previous is None:
        spread = jax.tree.map(lambda leaf: np.full_like(leaf, np.inf), result)
    else:
        spread = jax.tree.map(distance, result, previous)
    # What refinement does not see: the tails left out, and what the check m ≡ 1 reveals.
    unseen = 2 * tail + value.defect
    error = jax.tree.map(lambda e, leaf: e + unseen * np.abs(leaf), spread, value)
    if isinstance(value, Single):
        # A ratio of two integrals: tails shift it by the target's spread among the keys attended
        # to, about √(signal/noise), and not at all where the target is constant.
        ratio = np.sqrt(np.maximum(value.signal, 0.0) / np.maximum(value.noise, TINY))
        error = error._replace(centre=error.centre + unseen * (ratio - np.abs(value.centre)))
    return value, error
