"""Refinement: the integrals of all heads and pairs, level by level, until accurate enough."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from sims.problem import Heads
from sims.problem.kernels import Kernel
from sims.theory import exact_batch as batch
from sims.theory.exact_integrals import Pair, Single, Target
from sims.theory.exact_items import Identity, One, Two
from sims.theory.exact_law import GaussianLaw, pair
from sims.theory.exact_range import pilot

TAILS = {1: 1e-11, 2: 1e-9}
"""Share of an integral left outside its range, by head dimension; 1e-7 above."""
ERROR_FLOOR = 1e-13
"""Rounding, relative to the target's scale: no refinement gets below it."""
SINGLE_SHARE = 0.1
"""Single heads are cheap and enter every pair, so they are computed to this share of rtol."""


@dataclass
class Solution:
    """Terms for σ² = 1, and how good they are; shapes (Q, H) and (Q, H, H)."""

    mean: np.ndarray
    mean_error: np.ndarray
    effective_keys: np.ndarray
    signal: np.ndarray
    signal_error: np.ndarray
    noise: np.ndarray
    noise_error: np.ndarray
    defect: np.ndarray
    converged: np.ndarray
    methods: set[str] = field(default_factory=set)

    @classmethod
    def empty(cls, queries: int, heads: int) -> "Solution":
        single, double = (queries, heads), (queries, heads, heads)
        return cls(
            *(np.zeros(single) for _ in range(3)), *(np.zeros(double) for _ in range(5)), np.ones(double, bool)
        )

    def put_single(self, q: int, h: int, one: One) -> None:
        self.effective_keys[q, h] = one.extent.effective_keys
        self.mean[q, h], self.mean_error[q, h] = one.value.centre, one.error.centre
        self._put(q, h, h, one)

    def put_pair(self, q: int, h: int, g: int, two: Two) -> None:
        self._put(q, h, g, two)
        self._put(q, g, h, two)

    def _put(self, q: int, h: int, g: int, item: One | Two) -> None:
        value, error = item.value, item.error
        self.signal[q, h, g], self.signal_error[q, h, g] = value.signal, error.signal
        self.noise[q, h, g], self.noise_error[q, h, g] = value.noise, error.noise
        self.defect[q, h, g], self.converged[q, h, g] = value.defect, item.done


def solve(
    law: GaussianLaw, heads: Heads, n: int, queries: np.ndarray, truth: np.ndarray, rtol: float,
    exchangeable: bool, max_level: int,
) -> Solution:
    """All terms (σ² = 1) at every query, refined until ``rtol`` or ``max_level`` is reached."""
    out = Solution.empty(len(queries), heads.count)
    if n == 1:
        # f̂ = Y whatever the kernel: the only weight is 1.
        mean, variance = law.mean_and_variance()
        out.mean[:], out.signal[:], out.noise[:], out.effective_keys[:] = mean, variance, 1.0, 1.0
        out.methods.add("closed form")
        return out
    tail = TAILS.get(heads.width, 1e-7)
    used = range(min(2, heads.count)) if exchangeable else range(heads.count)
    identity = Identity(law, heads, queries)
    views = {(q, h): law.project(heads, h, x) for q, x in enumerate(queries) for h in used}
    ones: dict[bytes, One] = {}
    for (q, h), head in views.items():
        if identity.single(q, h) not in ones:
            extent = pilot(heads.kernel, head, n, tail)
            ones[identity.single(q, h)] = One(head, extent, float(truth[q]))
    twos: dict[bytes, Two] = {}
    for q in range(len(queries)):
        for h, g in combinations(used, 2):
            if identity.pair(q, h, g) not in twos:
                twos[identity.pair(q, h, g)] = Two(
                    ones[identity.single(q, h)], ones[identity.single(q, g)],
                    pair(law, views[q, h], views[q, g]),
                )
    target = Target(law.amplitude, law.phase, law.total)
    refinement = Refinement(heads.kernel, heads.width, n, target, max_level, out.methods)
    refinement.singles(list(ones.values()), SINGLE_SHARE * rtol)
    refinement.pairs(list(twos.values()), rtol)
    for q in range(len(queries)):
        for h in range(heads.count):
            out.put_single(q, h, ones[identity.single(q, 0 if exchangeable else h)])
        for h, g in combinations(range(heads.count), 2):
            out.put_pair(q, h, g, twos[identity.pair(q, *((0, 1) if exchangeable else (h, g)))])
    return out


@dataclass
class Refinement:
    """Runs levels of nodes over what has not converged."""

    kernel: Kernel
    width: int
    n: int
    target: Target
    max_level: int
    methods: set[str]

    def singles(self, ones: Sequence[One], rtol: float) -> None:
        """Refine heads: mean relative to √(β² + S), signal and noise to themselves."""
        for level in range(self.max_level + 1):
            step, active = batch.step_of(level, self.width), [one for one in ones if not one.done]
            counts = {id(one): batch.bucket(one.count(min(step, 0.4))) for one in active}
            if not active:
                break
            for one, result, random in self._run_singles(active, counts, step, level):
                one.value, one.error = _compare(result, random, one.value)
                one.level, floor = level, ERROR_FLOOR * (abs(one.value.centre) + abs(one.truth))
                scale = np.sqrt((one.value.centre - one.truth) ** 2 + one.value.signal)
                one.done = bool(
                    one.error.centre <= rtol * scale + floor
                    and one.error.signal <= rtol * one.value.signal + floor**2
                    and one.error.noise <= rtol * one.value.noise
                )

    def pairs(self, twos: Sequence[Two], rtol: float) -> None:
        """Refine pairs: signal relative to √(S_hh S_gg), noise to itself."""
        for level in range(self.max_level + 1):
            step, active = batch.step_of(level, self.width), [two for two in twos if not two.done]
            curves = self._curves(active, step, level)
            groups = defaultdict(list)
            for two in active:
                if id(two.first) in curves and id(two.second) in curves:
                    method = batch.method_for_pair(two.ranks, two.view.correlation)
                    groups[method, two.ranks, batch.bucket(two.count(min(step, 0.4)))].append(two)
            for (method, ranks, count), members in groups.items():
                rule = method.rule(ranks, level, count)
                if rule is None:
                    continue
                self.methods.add(method.name)
                items = [
                    two.arrays(
                        tuple(
                            _cut(*curves[id(one)], count, method.random) for one in (two.first, two.second)
                        ),
                        method.name,
                    )
                    for two in members
                ]
                result = batch.run(
                    method, self.kernel, count, step, self.n, self.target, rule, items
                )
                for index, two in enumerate(members):
                    part = Pair(*(leaf[index] for leaf in result))
                    two.value, two.error = _compare(part, method.random, two.value)
                    first, second = two.first.value, two.second.value
                    floor = ERROR_FLOOR**2 * (first.centre**2 + second.centre**2)
                    two.done = bool(
                        two.error.signal <= rtol * np.sqrt(first.signal * second.signal) + floor
                        and two.error.noise <= rtol * two.value.noise
                    )

    def _curves(
        self, twos: Sequence[Two], step: float, level: int
    ) -> dict[int, tuple[Single, bool]]:
        """The heads' curves that these pairs need, on this level's grid in log s.

        From nodes as fine as the heads' own accuracy took, so that pairs add only their own error.
        """
        ones: dict[int, One] = {}
        counts: dict[int, int] = defaultdict(int)
        for two in twos:
            for one in (two.first, two.second):
                ones[id(one)] = one
                counts[id(one)] = max(counts[id(one)], batch.bucket(two.count(min(step, 0.4))))
        groups = defaultdict(list)
        for one in ones.values():
            groups[max(one.level, level)].append(one)
        return {
            id(one): (result, random)
            for nodes, members in groups.items()
            for one, result, random in self._run_singles(members, counts, step, nodes)
        }

    def _run_singles(
        self, ones: Sequence[One], counts: dict[int, int], step: float, level: int
    ) -> Iterator[tuple[One, Single, bool]]:
        groups = defaultdict(list)
        for one in ones:
            groups[one.head.rank, counts[id(one)]].append(one)
        for (rank, count), members in groups.items():
            method = batch.method_for_single(rank)
            rule = method.rule((rank,), level, count)
            if rule is None:
                continue
            self.methods.add(method.name)
            items = [one.arrays(method.random) for one in members]
            result = batch.run(method, self.kernel, count, step, self.n, self.target, rule, items)
            for index, one in enumerate(members):
                yield one, Single(*(leaf[index] for leaf in result)), method.random


def _cut(curve: Single, random: bool, count: int, spread: bool) -> Single:
    """A head's curves on the first ``count`` points; one copy for each randomisation if asked."""
    cut = Single(*(leaf[..., :count] if leaf.ndim == 1 + random else leaf for leaf in curve))
    if spread and not random:
        size = batch.RANDOMISATIONS
        cut = Single(*(np.broadcast_to(leaf, (size, *np.shape(leaf))) for leaf in cut))
    return cut


def _compare(result: Any, random: bool, previous: Any) -> tuple[Any, Any]:
    """Value and error: three standard errors over randomisations, or against the level before."""
    kind = type(result)
    if random:
        size = len(result[0])
        return (
            kind(*(leaf.mean(axis=0) for leaf in result)),
            kind(*(3 * leaf.std(axis=0, ddof=1) / np.sqrt(size) for leaf in result)),
        )
    if previous is None:
        return result, kind(*(np.full_like(leaf, np.inf) for leaf in result))
    # Curves live on grids that differ between levels; only numbers are compared.
    return result, kind(
        *(
            np.abs(new - old) if np.ndim(new) == 0 else np.zeros_like(new)
            for new, old in zip(result, previous, strict=True)
        )
    )
