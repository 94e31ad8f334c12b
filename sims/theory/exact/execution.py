"""Execution: stacks of integrals on all cores, by as few compiled programs as can be.

Compiling costs more than computing, so a program serves as many calls as it can: numbers of nodes
and of items are data, not shapes, ranks are padded, and sizes that are shapes
take few values. A program runs its items one after another on one core; parts of a stack run in
threads, so no number depends on how many there are.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Wrapped
from jaxtyping import Array, Int, PyTree

from sims.base.runtime import host_devices
from sims.theory.exact.laplace import Setting, Single
from sims.theory.exact.pairs import Pair
from sims.theory.exact.rules import Grids, Items

MAX_POINTS = 2048
"""Points of a grid in log s; a pair has this number squared."""
CAPACITY = 16
"""Items that a call takes at most."""
FEW = 64
"""Number of items below which a separate program does not pay."""


@cache
def _program(function: Callable[..., Single | Pair]) -> Wrapped:
    """Program from a stack of CAPACITY items, the first ``used`` of which count, to results."""

    def batch(setting: Setting, nodes: PyTree, used: Int[Array, ""], stack: Items) -> PyTree:
        def evaluate(index: Array) -> Single | Pair:
            return function(setting, nodes, *jax.tree.map(lambda leaf: leaf[index], stack))

        def fill(index: Array, out: PyTree) -> PyTree:
            update = jax.lax.dynamic_update_index_in_dim
            return jax.tree.map(
                lambda stacked, result: update(stacked, result, index, 0), out, evaluate(index)
            )

        shapes = jax.eval_shape(evaluate, jnp.zeros((), int))
        empty = jax.tree.map(lambda leaf: jnp.zeros((CAPACITY, *leaf.shape)), shapes)
        return jax.lax.fori_loop(0, used, fill, empty)

    # A third faster to compile than with fusion emitters, and as fast to run.
    return jax.jit(batch, compiler_options={"xla_cpu_use_fusion_emitters": False})


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(host_devices(), thread_name_prefix="integrals")


class Job(NamedTuple):
    """A rule's function over items: pytrees of equal shapes."""

    function: Callable[..., Single | Pair]
    setting: Setting
    nodes: Grids | None
    items: Sequence[Items]

    def part(self, start: int, size: int) -> list[Any]:
        """Results of some items, as numpy arrays."""
        items = self.items[start : start + size]
        filled = [*items, *[items[0]] * (CAPACITY - len(items))]
        stack = jax.tree.map(lambda *leaves: np.stack(leaves, dtype=float), *filled)
        results = _program(self.function)(self.setting, self.nodes, np.asarray(len(items)), stack)
        results = jax.tree.map(np.asarray, results)
        return [jax.tree.map(operator.itemgetter(i), results) for i in range(len(items))]


def compute_jobs(jobs: Sequence[Job]) -> Iterator[Any]:
    """The results of all items, job after job."""
    parts = []
    for job in jobs:
        size = min(CAPACITY, math.ceil(len(job.items) / host_devices()))
        for start in range(0, len(job.items), size):
            parts.append((job, start, size))
    return itertools.chain.from_iterable(_workers().map(lambda part: Job.part(*part), parts))


def bucket(points: int) -> int:
    """Sizes of grids in log s, of which each compiles anew: 64, 96, 128, 192 and so on."""
    size = 64
    while size < points:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def merged(points: Sequence[int]) -> list[int]:
    """Buckets of these numbers; few items take the next larger one if it is at most double."""
    sizes = list(map(bucket, points))
    present = sorted(set(sizes))
    for size, larger in itertools.pairwise(present):
        if sizes.count(size) < FEW and larger <= 2 * size:
            sizes = [larger if s == size else s for s in sizes]
    return sizes
