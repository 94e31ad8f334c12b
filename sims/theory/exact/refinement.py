"""Refinement: the integrals of all heads and pairs, level by level, until accurate enough."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from sims.problem import Heads
from sims.problem.kernels import Kernel
from sims.theory.exact import rules
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.execution import MAX_POINTS, Job, computed, merged
from sims.theory.exact.items import HeadItem, PairItem, program_kernel
from sims.theory.exact.laplace import Setting, Single
from sims.theory.exact.pairs import Pair, Terms
from sims.theory.exact.solution import ERROR_FLOOR, Progress, Solution
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
"""What a denominator is at least."""

Item = TypeVar("Item", HeadItem, PairItem)


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
    """All terms (σ² = 1) at every query, refined until ``rtol`` or ``max_level`` is reached.

    Args:
        law: of keys and target.
        heads: their frames, kernel and bandwidths.
        n: number of keys.
        queries: x.
        truth: m(x).
        rtol: accuracy, see :func:`sims.theory.exact.exact_terms`.
        max_level: the last level of nodes.
        progress: told of heads and pairs that are done.
    """
    solution = Solution.unknown(len(queries), heads.count)
    tail = TAILS.get(heads.width, 1e-7)
    singles = {}
    for q, h in np.ndindex(len(queries), heads.count):
        projection = law.project(heads, h, queries[q])
        extent = pilot(heads.kernel, projection, n, tail)
        singles[q, h] = HeadItem(projection, extent, float(truth[q]))
    pairs = {}
    bandwidth = np.asarray(heads.bandwidth)
    for q in range(len(queries)):
        for h, g in combinations(range(heads.count), 2):
            # The narrower head first, within whose support the other has no edge.
            one, other = (singles[q, i] for i in sorted((h, g), key=lambda i: bandwidth[i]))
            pairs[q, h, g] = PairItem(one, other, law.pair(one.head, other.head))
    refinement = Refinement(heads.kernel, heads.width, tail, n, law, max_level, solution.methods)
    every: list[HeadItem | PairItem] = [*singles.values(), *pairs.values()]

    def tell() -> None:
        progress(sum(item.done for item in every), len(every))

    refinement.singles(list(singles.values()), SINGLE_SHARE * rtol, tell)
    refinement.pairs(list(pairs.values()), rtol, tell)
    progress(len(every), len(every))
    for (q, h), item in singles.items():
        solution.effective_keys[q, h] = item.extent.effective_keys
        if item.value is not None and item.error is not None:
            solution.mean[q, h], solution.mean_error[q, h] = item.mean, item.mean_error
            solution.empty[q, h] = 1 - item.value.reach
            solution.put((q, h, h), item.value, item.error, item.done)
    for place, pair in pairs.items():
        if pair.value is not None and pair.error is not None:
            solution.put(place, pair.value, pair.error, pair.done)
    return solution


@dataclass
class Refinement:
    """Levels of nodes, run over what has not converged.

    Attributes:
        kernel: K, of all heads.
        width: d_k.
        tail: share of any integral outside its range.
        n: number of keys.
        law: of keys and target.
        max_level: the last level.
        methods: names of the rules used, added to.
    """

    kernel: Kernel
    width: int
    tail: float
    n: int
    law: GaussianLaw
    max_level: int
    methods: set[str]

    @property
    def defect(self) -> float:
        """The largest defect that counts as converged."""
        return DEFECTS.get(self.width, 1e-3)

    @property
    def compact(self) -> bool:
        """Whether the kernel vanishes outside a ball."""
        return self.kernel.support is not None

    @property
    def grading(self) -> int:
        """Of the radii: those of a compact kernel crowd at its edge."""
        return GRADING if self.compact else 1

    @property
    def size(self) -> float:
        """A bound of |m|."""
        return float(np.abs(self.law.amplitude).sum())

    def singles(self, items: Sequence[HeadItem], rtol: float, tell: Callable[[], None]) -> None:
        """Refine heads: mean relative to √(β² + S), signal and noise to themselves."""
        for level in range(self.max_level + 1):
            step, active = rules.step_of(level, self.width), [i for i in items if not i.done]
            sizes = {id(item): size for item, size in grids(active, step)}
            for item, result, random in self._run_singles(active, sizes, step, level):
                value, error = compare(result, random, item.value, self.tail)
                item.value, item.error, item.level = value, error, level
                floor = ERROR_FLOOR * self.size
                scale = np.sqrt((item.mean - item.truth) ** 2 + max(value.signal, 0.0))
                item.done = bool(
                    item.mean_error <= rtol * scale + floor
                    and error.signal <= rtol * value.signal + floor * self.size
                    and error.noise <= rtol * value.noise
                    and value.defect <= self.defect
                )
            tell()

    def pairs(self, items: Sequence[PairItem], rtol: float, tell: Callable[[], None]) -> None:
        """Refine pairs: signal relative to √(S_hh S_gg), noise to itself."""
        for level in range(self.max_level + 1):
            step, active = rules.step_of(level, self.width), [i for i in items if not i.done]
            sized = grids(active, step)
            curves = self._curves(sized, step, level)
            groups = defaultdict(list)
            for item, size in sized:
                if all(id(head) in curves for head in item.heads):
                    rule = self._rule(item, level, size)
                    if rule is not None:
                        groups[rule, item.ranks, item.frozen, size].append(item)
            jobs: list[Job] = []
            order: list[tuple[PairItem, bool]] = []
            for (rule, ranks, frozen, size), members in groups.items():
                self.methods.add(rule.name)
                nodes = rule.nodes(ranks, level, size, self.grading, frozen)
                arrays = []
                for item in members:
                    own = [self._cut(*curves[id(head)], size, rule.random) for head in item.heads]
                    arrays.append(rule.pack(item, self.kernel, self.law, tuple(own)))
                jobs.append(Job(rule.function, self._setting(size, step), nodes, arrays))
                order += [(item, rule.random) for item in members]
            for (item, random), result in zip(order, computed(jobs), strict=True):
                self._update_pair(item, result, random, rtol)
            tell()

    def _rule(self, item: PairItem, level: int, size: int) -> rules.Rule | None:
        """The first whose nodes are in reach."""
        for rule in rules.rules_for_pair(
            self.kernel, item.ranks, item.projection.correlation, item.concentric
        ):
            if rule.nodes(item.ranks, level, size, self.grading, item.frozen) is not None:
                return rule
        return None

    def _setting(self, size: int, step: float) -> Setting:
        kernel, n = program_kernel(self.kernel), np.asarray(float(self.n))
        return Setting(kernel, size, np.asarray(step), n)

    def _update_pair(self, item: PairItem, result: Pair, random: bool, rtol: float) -> None:
        value, error = compare(result, random, item.value, self.tail)
        # Zero, up to the sign of its rounding, for a constant target.
        scale = np.sqrt(max(item.first.signal * item.second.signal, TINY))
        # Randomised points take over where a grid is exhausted: only if they do better.
        if random and item.value is not None and item.error is not None:
            before, after = (
                max(float(e.signal) / scale, float(e.noise) / max(float(v.noise), TINY))
                for e, v in ((item.error, item.value), (error, value))
            )
            if after > before:
                return
        item.value, item.error = value, error
        item.done = bool(
            error.signal <= rtol * scale + ERROR_FLOOR * self.size**2
            and error.noise <= rtol * value.noise
            and value.defect <= self.defect
        )

    def _curves(
        self, sized: Sequence[tuple[PairItem, int]], step: float, level: int
    ) -> dict[int, tuple[Single, bool]]:
        """The heads' curves that these pairs need, on this level's grid in log s.

        From nodes as fine as the heads' own accuracy took: their error is far below the pair's.
        """
        heads: dict[int, HeadItem] = {}
        largest: dict[int, int] = defaultdict(int)
        for item, size in sized:
            for head in item.heads:
                heads[id(head)] = head
                largest[id(head)] = max(largest[id(head)], size)
        groups = defaultdict(list)
        for head in heads.values():
            # A grid's accuracy was reached at head.level and no other; random points of a level
            # beyond the pair's own would cost more than the pair.
            random = rules.rule_for_single(head.head.rank).random
            groups[min(head.level, level + 1) if random else head.level].append(head)
        return {
            id(head): (result, random)
            for own, members in groups.items()
            for head, result, random in self._run_singles(members, largest, step, own)
        }

    def _run_singles(
        self, items: Sequence[HeadItem], sizes: dict[int, int], step: float, level: int
    ) -> Iterator[tuple[HeadItem, Single, bool]]:
        groups = defaultdict(list)
        for item in items:
            groups[item.head.rank, sizes[id(item)]].append(item)
        jobs: list[Job] = []
        order: list[tuple[HeadItem, bool]] = []
        for (rank, size), members in groups.items():
            rule = rules.rule_for_single(rank)
            nodes = rule.nodes((rank,), level, size, self.grading) if size <= MAX_POINTS else None
            if nodes is not None:
                self.methods.add(rule.name)
                arrays = [rule.pack(item, self.kernel, self.law) for item in members]
                jobs.append(Job(rule.function, self._setting(size, step), nodes, arrays))
                order += [(item, rule.random) for item in members]
        for (item, random), result in zip(order, computed(jobs), strict=True):
            yield item, result, random

    def _cut(self, curve: Single, random: bool, size: int, spread: bool) -> Single:
        """A head's curves on the first ``size`` points, with a copy a randomisation to ``spread``.

        A compact kernel's last point is u = ∞ and stays.
        """
        index = np.arange(size)
        if self.compact:
            index[-1] = -1
        cut = Single(*(leaf[..., index] if leaf.ndim == 1 + random else leaf for leaf in curve))
        if spread and not random:
            lead = rules.RANDOMISATIONS
            cut = Single(*(np.broadcast_to(leaf, (lead, *np.shape(leaf))) for leaf in cut))
        return cut


def grids(items: Sequence[Item], step: float) -> list[tuple[Item, int]]:
    """Items with the sizes of their grids in log s; few sizes, so that they share programs."""
    sizes = merged([item.points(min(step, CURVE_STEP)) for item in items])
    return list(zip(items, sizes, strict=True))


def compare(
    result: Terms, random: bool, previous: Terms | None, tail: float
) -> tuple[Terms, Terms]:
    """Value and error: three standard errors over randomisations, or against the level before."""
    kind = type(result)
    if random:
        value = kind(*(np.mean(leaf, axis=0) for leaf in result))
        root = np.sqrt(rules.RANDOMISATIONS)
        spread = [3 * np.std(leaf, axis=0, ddof=1) / root for leaf in result]
    elif previous is None:
        value, spread = result, [np.full_like(leaf, np.inf) for leaf in result]
    else:
        # Curves live on grids that differ between levels; only numbers are compared.
        value = result
        spread = [
            np.abs(new - old) if np.ndim(new) == 0 else np.zeros_like(new)
            for new, old in zip(result, previous, strict=True)
        ]
    # What refinement does not see: the tails left out, and what the check m ≡ 1 reveals.
    unseen = 2 * tail + value.defect
    error = kind(*(e + unseen * np.abs(leaf) for e, leaf in zip(spread, value, strict=True)))
    if isinstance(value, Single):
        # A ratio of two integrals: tails shift it by the target's spread among the keys attended
        # to, about √(signal/noise), and not at all where the target is constant.
        ratio = np.sqrt(np.maximum(value.signal, 0.0) / np.maximum(value.noise, TINY))
        error = error._replace(centre=error.centre + unseen * (ratio - np.abs(value.centre)))
    return value, error
