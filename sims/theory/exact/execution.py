"""Execution: stacks of integrals on all cores, by as few compiled programs as can be.

Compiling costs more than computing, so a program serves as many calls as it can: numbers of nodes
and of items are data, not shapes, ranks are padded, and sizes that are shapes
take few values. A program runs its items one after another on one core; parts of a stack run in
threads, so no number depends on how many there are.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Generic

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Wrapped
from jaxtyping import Array, Float, Int, PyTree

from sims.runtime import host_devices
from sims.theory.exact.laplace import CURVES, Setting, Single
from sims.theory.exact.pairs import Pair, Terms
from sims.theory.exact.rules import RANDOMISATIONS, Grids, Items, Rule

MAX_POINTS = 2048
"""Points of a grid in log s; a pair has this number squared."""
CAPACITY = 16
"""Items that a call takes at most."""
FEW = 64
"""Fewer items than this are not worth a program of their own."""


@cache
def _program(function: Callable[..., Single | Pair]) -> Wrapped:
    """Over a stack of CAPACITY items, of which the first ``used`` count: rows of results."""

    def batch(
        setting: Setting, nodes: PyTree, used: Int[Array, ""], stack: Items
    ) -> Float[Array, "items results"]:
        def one(index: Array) -> Array:
            result = function(setting, nodes, *jax.tree.map(lambda leaf: leaf[index], stack))
            return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(result)])

        def fill(index: Array, out: Array) -> Array:
            return jax.lax.dynamic_update_index_in_dim(out, one(index), index, 0)

        length = jax.eval_shape(one, jnp.zeros((), int)).size
        return jax.lax.fori_loop(0, used, fill, jnp.zeros((CAPACITY, length)))

    # A third faster to compile than with fusion emitters, and as fast to run.
    return jax.jit(batch, compiler_options={"xla_cpu_use_fusion_emitters": False})


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(host_devices(), thread_name_prefix="integrals")


@dataclass(frozen=True)
class Job(Generic[Terms]):
    """A rule over items: pytrees of equal shapes.

    Making one starts compiling what it needs.
    """

    rule: Rule[Terms]
    setting: Setting
    nodes: Grids
    items: Sequence[Items]

    def __post_init__(self) -> None:
        _workers().submit(self._rows, 0, 0)

    def _rows(self, start: int, count: int) -> np.ndarray:
        """Results of some items, (count, ·)."""
        items = list(self.items[start : start + count])
        used = len(items)
        items += [self.items[0]] * (CAPACITY - used)
        stack = jax.tree.map(lambda *leaves: np.stack(leaves, dtype=float), *items)
        rows = _program(self.rule.function)(self.setting, self.nodes, np.asarray(used), stack)
        return np.asarray(rows)[:used]

    def run(self) -> list[Terms]:
        """The results of the items, as numpy arrays."""
        size = min(CAPACITY, math.ceil(len(self.items) / host_devices()))
        starts = range(0, len(self.items), size)
        rows = np.concatenate(list(_workers().map(lambda i: self._rows(i, size), starts)))
        lead = (RANDOMISATIONS,) if self.rule.random else ()
        shapes = [
            lead + ((self.setting.size,) if name in CURVES else ())
            for name in self.rule.kind._fields
        ]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return [
            self.rule.kind(
                *(
                    block.reshape(shape)[()]
                    for block, shape in zip(np.split(row, ends), shapes, strict=True)
                )
            )
            for row in rows
        ]


def bucket(points: int) -> int:
    """Sizes of grids in log s, of which each compiles anew: 64, 96, 128, 192 and so on."""
    size = 64
    while size < points:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def merged(points: Sequence[int]) -> list[int]:
    """Buckets of these numbers; few items take the next larger one if it is at most double."""
    sizes = [bucket(number) for number in points]
    present = sorted(set(sizes))
    for size, larger in itertools.pairwise(present):
        if sizes.count(size) < FEW and larger <= 2 * size:
            sizes = [larger if s == size else s for s in sizes]
    return sizes
