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
from sims.theory.exact_integrals import Single
from sims.theory.exact_items import Identity, One, Two, program_kernel
from sims.theory.exact_law import GaussianLaw, pair
from sims.theory.exact_pairs import Pair
from sims.theory.exact_range import GRADING, pilot

TAILS = {1: 1e-11, 2: 1e-9}
"""Share of an integral left outside its range, by head dimension; 1e-7 above. Refinement does not
see it, so it is part of every error."""
DEFECTS = {1: 1e-8, 2: 1e-5}
"""Defect that must be reached besides rtol, by head dimension; 1e-3 above."""
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
    empty: np.ndarray
    signal: np.ndarray
    signal_error: np.ndarray
    noise: np.ndarray
    noise_error: np.ndarray
    defect: np.ndarray
    converged: np.ndarray
    methods: set[str] = field(default_factory=set)

    @classmethod
    def blank(cls, queries: int, heads: int) -> "Solution":
        single, double = (queries, heads), (queries, heads, heads)
        zeros = [np.zeros(single) for _ in range(4)] + [np.zeros(double) for _ in range(5)]
        arrays: Any = [*zeros, np.ones(double, bool)]
        return cls(*arrays)

    def put_single(self, q: int, h: int, one: One) -> None:
        self.effective_keys[q, h] = one.extent.effective_keys
        known = one.value is not None
        self.mean[q, h] = one.value.centre * one.value.reach if known else np.nan
        self.mean_error[q, h] = one.mean_error if known else np.inf
        self.empty[q, h] = 1 - one.value.reach if known else np.nan
        self._put(q, h, h, one)

    def put_pair(self, q: int, h: int, g: int, two: Two) -> None:
        self._put(q, h, g, two)
        self._put(q, g, h, two)

    def put_values(
        self, q: int, h: int, g: int, value: Any, error: Any, rtol: float, scale: float
    ) -> None:
        """A value with its error, converged where that is below rtol (signal: of ``scale``)."""
        self.signal[q, h, g], self.signal_error[q, h, g] = value.signal, error.signal
        self.noise[q, h, g], self.noise_error[q, h, g] = value.noise, error.noise
        self.defect[q, h, g] = value.defect
        self.converged[q, h, g] = bool(
            error.signal <= rtol * scale + ERROR_FLOOR and error.noise <= rtol * value.noise
        )

    def put_unknown(self, q: int) -> None:
        """No value at this query: its range of log s is out of reach."""
        for values in (self.mean, self.empty, self.signal, self.noise, self.defect):
            values[q] = np.nan
        for errors in (self.mean_error, self.signal_error, self.noise_error):
            errors[q] = np.inf

    def _put(self, q: int, h: int, g: int, item: One | Two) -> None:
        value, error = item.value, item.error
        if value is None:
            # Its grid in log s is out of reach (tiny bandwidth, few keys): no number, and said so.
            value, error = Pair(*[np.nan] * 3), Pair(*[np.inf] * 3)  # type: ignore[arg-type]
        self.signal[q, h, g], self.signal_error[q, h, g] = value.signal, error.signal
        self.noise[q, h, g], self.noise_error[q, h, g] = value.noise, error.noise
        self.defect[q, h, g], self.converged[q, h, g] = value.defect, item.done


def solve(
    law: GaussianLaw,
    heads: Heads,
    n: int,
    queries: np.ndarray,
    truth: np.ndarray,
    rtol: float,
    exchangeable: bool,
    max_level: int,
) -> Solution:
    """All terms (σ² = 1) at every query, refined until ``rtol`` or ``max_level`` is reached."""
    out = Solution.blank(len(queries), heads.count)
    if n == 1 and heads.kernel.support is None:
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
    bandwidth = np.asarray(heads.bandwidth)
    for q in range(len(queries)):
        for h, g in combinations(used, 2):
            if identity.pair(q, h, g) not in twos:
                # The narrower head first, within whose support the other has no edge.
                a, b = sorted((h, g), key=lambda i: bandwidth[i])
                twos[identity.pair(q, h, g)] = Two(
                    ones[identity.single(q, a)],
                    ones[identity.single(q, b)],
                    pair(law, views[q, a], views[q, b]),
                )
    refinement = Refinement(heads.kernel, heads.width, tail, n, law, max_level, out.methods)
    refinement.prepare(list(twos.values()))
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
    tail: float
    n: int
    law: GaussianLaw
    max_level: int
    methods: set[str]

    @property
    def defect(self) -> float:
        return DEFECTS.get(self.width, 1e-3)

    @property
    def compact(self) -> bool:
        return self.kernel.support is not None

    @property
    def grading(self) -> int:
        """Of the radii: those of a compact kernel crowd at its edge."""
        return GRADING if self.compact else 1

    @property
    def size(self) -> float:
        """A bound of |m|."""
        return float(np.abs(self.law.amplitude).sum())

    def singles(self, ones: Sequence[One], rtol: float) -> None:
        """Refine heads: mean relative to √(β² + S), signal and noise to themselves."""
        for level in range(self.max_level + 1):
            step, active = batch.step_of(level, self.width), [one for one in ones if not one.done]
            sizes = batch.merged([one.count(min(step, 0.4)) for one in active])
            counts = {id(one): size for one, size in zip(active, sizes, strict=True)}
            if not active:
                break
            for one, result, random in self._run_singles(active, counts, step, level):
                one.value, one.error = compare(result, random, one.value, self.tail)
                one.level, floor = level, ERROR_FLOOR * self.size
                scale = np.sqrt(
                    (one.value.centre * one.value.reach - one.truth) ** 2
                    + max(one.value.signal, 0.0)
                )
                one.done = bool(
                    one.mean_error <= rtol * scale + floor
                    and one.error.signal <= rtol * one.value.signal + floor * self.size
                    and one.error.noise <= rtol * one.value.noise
                    and one.value.defect <= self.defect
                )

    def pairs(self, twos: Sequence[Two], rtol: float) -> None:
        """Refine pairs: signal relative to √(S_hh S_gg), noise to itself."""
        for level in range(self.max_level + 1):
            step, active = batch.step_of(level, self.width), [two for two in twos if not two.done]
            if not active:
                break
            sizes = batch.merged([two.count(min(step, 0.4)) for two in active])
            curves = self._curves(active, sizes, step, level)
            groups = defaultdict(list)
            for two, count in zip(active, sizes, strict=True):
                if id(two.first) in curves and id(two.second) in curves:
                    method = self._method(two, level, count)
                    if method is not None:
                        groups[method, two.ranks, two.frozen, count].append(two)
            jobs = []
            for (method, ranks, frozen, count), members in groups.items():
                self.methods.add(method.name)
                items = [
                    two.arrays(
                        self.kernel,
                        (
                            _cut(*curves[id(two.first)], count, method.random, self.compact),
                            _cut(*curves[id(two.second)], count, method.random, self.compact),
                        ),
                        method.name,
                        self.law,
                    )
                    for two in members
                ]
                rule = method.rule(ranks, level, count, self.grading, frozen)
                jobs.append((self._job(method, count, step, rule, items), members))
            for job, members in jobs:
                result = job.run()
                for index, two in enumerate(members):
                    self._update_pair(
                        two, Pair(*(leaf[index] for leaf in result)), job.method.random, rtol
                    )

    def prepare(self, twos: Sequence[Two]) -> None:
        """Start compiling what pairs need first, beside the heads' own integrals."""
        step, seen = batch.step_of(0, self.width), set()
        sizes = batch.merged([two.count(0.4 if step > 0.4 else step) for two in twos])
        for two, count in zip(twos, sizes, strict=True):
            method = self._method(two, 0, count)
            if method is None or (method, two.ranks, count) in seen:
                continue
            seen.add((method, two.ranks, count))
            numbers: Any = [np.zeros(count if f in batch.CURVES else ()) for f in Single._fields]
            blank = _cut(Single(*numbers), False, count, method.random, self.compact)
            items = [two.arrays(self.kernel, (blank, blank), method.name, self.law)]
            rule = method.rule(two.ranks, 0, count, self.grading, two.frozen)
            self._job(method, count, step, rule, items)

    def _method(self, two: Two, level: int, count: int) -> batch.Method | None:
        """The first whose rule is in reach."""
        for method in batch.methods_for_pair(
            self.kernel, two.ranks, two.view.correlation, two.concentric
        ):
            if method.rule(two.ranks, level, count, self.grading, two.frozen) is not None:
                return method
        return None

    def _job(
        self, method: batch.Method, count: int, step: float, rule: Any, items: Sequence[Any]
    ) -> batch.Job:
        kernel = program_kernel(self.kernel)
        return batch.Job(method, kernel, count, step, self.n, self.law.phase, rule, items)

    def _update_pair(self, two: Two, result: Pair, random: bool, rtol: float) -> None:
        value, error = compare(result, random, two.value, self.tail)
        first, second = two.first.value, two.second.value
        tiny = np.finfo(float).tiny
        # Zero, up to the sign of its rounding, for a constant target.
        scale = np.sqrt(max(first.signal * second.signal, tiny))
        # Randomised points take over where a grid is exhausted: only if they do better.
        if (
            random
            and two.error is not None
            and (
                max(error.signal / scale, error.noise / max(value.noise, tiny))
                > max(two.error.signal / scale, two.error.noise / max(two.value.noise, tiny))
            )
        ):
            return
        two.value, two.error = value, error
        two.done = bool(
            error.signal <= rtol * scale + ERROR_FLOOR * self.size**2
            and error.noise <= rtol * value.noise
            and value.defect <= self.defect
        )

    def _curves(
        self, twos: Sequence[Two], sizes: Sequence[int], step: float, level: int
    ) -> dict[int, tuple[Single, bool]]:
        """The heads' curves that these pairs need, on this level's grid in log s.

        From nodes as fine as the heads' own accuracy took: their error is far below the pair's.
        """
        ones: dict[int, One] = {}
        counts: dict[int, int] = defaultdict(int)
        for two, size in zip(twos, sizes, strict=True):
            for one in (two.first, two.second):
                ones[id(one)] = one
                counts[id(one)] = max(counts[id(one)], size)
        groups = defaultdict(list)
        for one in ones.values():
            # A grid's accuracy was reached at one.level and no other; random points of a level
            # beyond the pair's own would cost more than the pair.
            random = batch.method_for_single(one.head.rank).random
            groups[min(one.level, level + 1) if random else one.level].append(one)
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
        jobs = []
        for (rank, count), members in groups.items():
            method = batch.method_for_single(rank)
            rule = (
                method.rule((rank,), level, count, self.grading)
                if count <= batch.MAX_COUNT
                else None
            )
            if rule is not None:
                self.methods.add(method.name)
                items = [one.arrays(self.kernel, method.random, self.law) for one in members]
                jobs.append((self._job(method, count, step, rule, items), members))
        for job, members in jobs:
            result = job.run()
            for index, one in enumerate(members):
                yield one, Single(*[leaf[index] for leaf in result]), job.method.random


def _cut(curve: Single, random: bool, count: int, spread: bool, compact: bool) -> Single:
    """A head's curves on the first ``count`` points; one copy for each randomisation if asked.

    A compact kernel's last point is u = ∞ and stays.
    """
    index = np.arange(count)
    if compact:
        index[-1] = -1
    cut = Single(*(leaf[..., index] if leaf.ndim == 1 + random else leaf for leaf in curve))
    if spread and not random:
        cut = Single(*[_repeat(leaf) for leaf in cut])
    return cut


def _repeat(leaf: Any) -> Any:
    return np.broadcast_to(leaf, (batch.RANDOMISATIONS, *np.shape(leaf)))


def compare(result: Any, random: bool, previous: Any, tail: float) -> tuple[Any, Any]:
    """Value and error: three standard errors over randomisations, or against the level before."""
    kind = type(result)
    if random:
        size = len(result[0])
        value = kind(*(leaf.mean(axis=0) for leaf in result))
        spread = (3 * leaf.std(axis=0, ddof=1) / np.sqrt(size) for leaf in result)
    elif previous is None:
        value, spread = result, (np.full_like(leaf, np.inf) for leaf in result)
    else:
        # Curves live on grids that differ between levels; only numbers are compared.
        value, spread = (
            result,
            (
                np.abs(new - old) if np.ndim(new) == 0 else np.zeros_like(new)
                for new, old in zip(result, previous, strict=True)
            ),
        )
    # What refinement does not see: the tails left out, and what the check m ≡ 1 reveals.
    unseen = 2 * tail + value.defect
    error = kind(*(e + unseen * np.abs(leaf) for e, leaf in zip(spread, value, strict=True)))
    if isinstance(value, Single):
        # A ratio of two integrals: tails shift it by the target's spread among the keys attended
        # to, about √(signal/noise), and not at all where the target is constant.
        spread_of_keys = np.sqrt(
            np.maximum(value.signal, 0.0) / np.maximum(value.noise, np.finfo(float).tiny)
        )
        error = error._replace(
            centre=error.centre + unseen * (spread_of_keys - np.abs(value.centre))
        )
    return value, error
