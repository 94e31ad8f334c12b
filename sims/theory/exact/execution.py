"""Execution: stacks of integrals on all cores, by as few compiled programs as can be.

Compiling costs more than computing, so a program serves as many calls as it can: numbers of nodes
and of items are data, not shapes, ranks are padded, and sizes that are shapes
take few values. A program runs its items one after another on one core; parts of a stack run in
threads, so no number depends on how many there are.
"""

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Generic

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled, Lowered, Wrapped
from jaxtyping import Array, Float, Int, PyTree, PyTreeDef

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
COMPILERS = 4
"""Programs compiled at once; a problem needs no more kinds of rule at a level."""

Shapes = tuple[tuple[int, ...], ...]


@cache
def _jitted(
    function: Callable[..., Single | Pair], tree: PyTreeDef, shapes: Shapes, length: int
) -> Wrapped:
    """Over packed items (CAPACITY, ·), of which the first ``used`` count."""

    def batch(
        setting: Setting,
        nodes: PyTree,
        used: Int[Array, ""],
        packed: Float[Array, "items numbers"],
    ) -> Float[Array, "items results"]:
        def one(index: Array, out: Array) -> Array:
            result = function(setting, nodes, *_unpack(packed[index], tree, shapes))
            row = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(result)])
            return jax.lax.dynamic_update_index_in_dim(out, row, index, 0)

        return jax.lax.fori_loop(0, used, one, jnp.zeros((CAPACITY, length)))

    return jax.jit(batch)


def _unpack(row: Float[Array, " numbers"], tree: PyTreeDef, shapes: Shapes) -> Items:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    leaves = [
        row[end - math.prod(shape) : end].reshape(shape)
        for end, shape in zip(ends.tolist(), shapes, strict=True)
    ]
    return jax.tree.unflatten(tree, leaves)


_programs: dict[tuple[Wrapped, PyTreeDef, Items], Future[Compiled]] = {}
_guard = threading.Lock()
_compilers = ThreadPoolExecutor(max_workers=COMPILERS, thread_name_prefix="compile")


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(host_devices(), thread_name_prefix="integrals")


def _program(function: Wrapped, arguments: Items) -> Future[Compiled]:
    """Compiled ahead, beside what runs meanwhile; each function and shape once."""
    abstract = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), arguments)
    key = function, jax.tree.structure(abstract), tuple(jax.tree.leaves(abstract))
    with _guard:
        if key not in _programs:
            _programs[key] = _compilers.submit(lambda: _compile(function.lower(*abstract)))
        return _programs[key]


def _compile(lowered: Lowered) -> Compiled:
    # A third faster to compile, as fast to run; not all versions have the choice.
    try:
        return lowered.compile(compiler_options={"xla_cpu_use_fusion_emitters": False})
    except jax.errors.JaxRuntimeError:
        return lowered.compile()


@dataclass(frozen=True)
class Job(Generic[Terms]):
    """A rule over items: pytrees of equal shapes, packed by the rule.

    Making one starts compiling what it needs.
    """

    rule: Rule[Terms]
    setting: Setting
    nodes: Grids
    items: Sequence[Items]

    def __post_init__(self) -> None:
        _program(*self._call([])[:2])

    def _call(self, items: Sequence[Items]) -> tuple[Wrapped, Items, list[tuple[int, ...]]]:
        """Function, arguments for these items, and the shapes of a result's parts."""
        leaves, tree = jax.tree.flatten(self.items[0])
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        lead = (RANDOMISATIONS,) if self.rule.random else ()
        parts = [
            lead + ((self.setting.size,) if name in CURVES else ())
            for name in self.rule.kind._fields
        ]
        length = sum(math.prod(part) for part in parts)
        with _guard:  # or two threads would make, and compile, two of them
            function = _jitted(self.rule.function, tree, shapes, length)
        packed = np.zeros((CAPACITY, sum(math.prod(shape) for shape in shapes)))
        for index, item in enumerate(items):
            packed[index] = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(item)])
        return function, (self.setting, self.nodes, np.asarray(len(items)), packed), parts

    def run(self) -> list[Terms]:
        """The results of the items, as numpy arrays."""
        size = min(CAPACITY, math.ceil(len(self.items) / host_devices()))
        function, arguments, parts = self._call([])
        program = _program(function, arguments).result()

        def part_from(start: int) -> np.ndarray:
            items = self.items[start : start + size]
            return np.asarray(program(*self._call(items)[1]))[: len(items)]

        rows = np.concatenate(list(_workers().map(part_from, range(0, len(self.items), size))))
        ends = np.cumsum([math.prod(part) for part in parts])[:-1]
        return [
            self.rule.kind(
                *(
                    block.reshape(part)[()]
                    for block, part in zip(np.split(row, ends), parts, strict=True)
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
