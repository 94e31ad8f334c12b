"""Replicates traced by JAX: one batch per device at a time, sharded over the devices."""

import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, PyTree

from sims.base.errors import InputError
from sims.montecarlo.decompositions import waits_for_threads
from sims.montecarlo.draws import Draw
from sims.montecarlo.sampler import ReplicateSampler, Rounds

Replicate = Callable[[Array, PyTree, PyTree], PyTree]
"""``(random key, shared, batch) -> outputs`` of one replicate."""

AT_ONCE = 32
"""Replicates computed in parallel on an accelerator: enough small ones to fill it."""


@dataclass(frozen=True)
class Fold:
    """Reduction of a batch's replicates that is neither their mean nor a stack.

    Attributes:
        init: ``(shared) -> carry`` before the first replicate.
        add: ``(carry, replicate's value, count) -> carry``; count, a float64, is 1 for the first.
        finish: ``(carry, R) -> {name: array}``, unbiased estimates.
    """

    init: Callable[[PyTree], PyTree]
    add: Callable[[PyTree, PyTree, Array], PyTree]
    finish: Callable[[PyTree, int], dict[str, Array]]


Reduce = Literal["mean", "stack"] | Fold
"""Reduction of replicates to a batch: their mean, all of them, or a :class:`Fold`."""


@dataclass(frozen=True)
class Program:
    """Function of one batch; with the shapes of its arrays it selects a compiled program."""

    replicate: Replicate
    reduce: Reduce
    rows: bool
    at_once: int

    def __call__(self, shared: PyTree, batch: PyTree, keys: Array) -> dict[str, Array]:
        """Outputs of one batch, from the random keys (R,) of its replicates."""

        def outputs_of(item: tuple[Array, PyTree]) -> PyTree:
            key, row = item
            return self.replicate(key, shared, row if self.rows else batch)

        items = (keys, batch if self.rows else None)
        if isinstance(self.reduce, Fold):
            return self._folded(self.reduce, outputs_of, shared, items)
        size = None if self.at_once == 1 else self.at_once
        values = lax.map(outputs_of, items, batch_size=size)
        if not isinstance(values, dict):
            raise InputError("replicate", type(values).__name__, "a function that returns a dict")
        if self.reduce == "stack":
            return values
        return {name: value.mean(0) for name, value in values.items()}

    def _folded(
        self, fold: Fold, outputs_of: Callable[..., PyTree], shared: PyTree, items: PyTree
    ) -> dict[str, Array]:
        def add(carry: PyTree, item: tuple[Array, PyTree]) -> tuple[PyTree, None]:
            index, value = item
            return fold.add(carry, value, (index + 1).astype(jnp.float64)), None

        def step(carry: PyTree, block: tuple[Array, PyTree]) -> tuple[PyTree, None]:
            # One after another keeps the work in a CPU's cache; accelerators want many at once.
            indices, items = block
            if self.at_once == 1:
                first = jax.tree.map(lambda leaf: leaf[0], items)
                return add(carry, (indices[0], outputs_of(first)))
            return lax.scan(add, carry, (indices, jax.vmap(outputs_of)(items)))

        count = len(items[0])
        blocks = jax.tree.map(
            lambda leaf: leaf.reshape(-1, self.at_once, *leaf.shape[1:]),
            (jnp.arange(count), items),
        )
        carry, _ = lax.scan(step, fold.init(shared), blocks)
        return fold.finish(carry, count)


@partial(
    jax.jit,
    static_argnames=("program", "mesh"),
    compiler_options={"xla_cpu_prefer_vector_width": 512},  # XLA takes half of AVX-512 otherwise
)
def run_batches(
    program: Program, shared: PyTree, batch: PyTree, keys: Array, *, mesh: Mesh
) -> dict[str, Array]:
    """Outputs of one batch per device.

    Args:
        program: program of one batch; static.
        shared: arrays that all batches share; traced, the same on every device.
        batch: inputs of each batch, leaves (B, …).
        keys: random keys (B, R), as many batches as the mesh has devices.
        mesh: one axis named ``batch``.

    Returns:
        The program's outputs, with a leading batch axis.
    """

    def local(shared: PyTree, batch: PyTree, keys: Array) -> PyTree:
        device_batch = jax.tree.map(lambda leaf: leaf[0], batch)
        return jax.tree.map(lambda value: value[None], program(shared, device_batch, keys[0]))

    split = PartitionSpec("batch")
    sharded = jax.shard_map(
        local, mesh=mesh, in_specs=(PartitionSpec(), split, split), out_specs=split, check_vma=False
    )
    return sharded(shared, batch, keys)


@dataclass(frozen=True, eq=False)
class Replicates(ReplicateSampler):
    """A sampler whose replicate is traced by JAX, so that batches spread over devices.

    Each function is compiled once per shape: pass changing numbers as ``constants``, and bind sizes
    with ``functools.partial``, whose arguments are compared by value.

    Attributes:
        replicate: ``(random key, shared, batch) -> {name: array}``, one replicate.
        constants: ``shared``: arrays, traced and not compiled in.
        per_batch: as in :class:`~sims.montecarlo.sampler.ReplicateSampler`, like ``rows``.
        reduce: reduction of replicates to a batch: "mean", "stack" (keep them, in a dimension
            ``replicate``), or a :class:`Fold`.
        dims: names of the dimensions of each output, except batch and replicate; none if absent.
        coords: coordinates of those dimensions.
        at_once: replicates computed in parallel, reduced to a divisor of R for a :class:`Fold`;
            None is 1 on a CPU and 32 elsewhere. It changes numbers only by rounding.

    Raises:
        InputError: the attributes do not fit together.
    """

    replicate: Replicate
    _: KW_ONLY
    reduce: Reduce = "mean"
    at_once: int | None = None

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Rounds over the devices.

        On a CPU all batches run on one device if :mod:`sims.montecarlo.decompositions` requires it.
        """
        on_cpu = devices[0].platform == "cpu"
        at_once = self.at_once or (1 if on_cpu else AT_ONCE)
        if isinstance(self.reduce, Fold):
            at_once = divisor(draws.replicates, at_once)
        program = Program(by_value(self.replicate), self.reduce, self.rows, at_once)

        @functools.lru_cache(maxsize=1)  # those that are traced are the first that are used
        def arguments(first: int, width: int) -> tuple[Program, PyTree, PyTree, Array]:
            numbers = range(first, first + width)
            host_batches = map(self.of_batch, map(draws.draw, numbers))
            batch = jax.tree.map(lambda *leaves: np.stack(leaves), *host_batches)
            return program, self.constants, batch, draws.keys(np.array(numbers, np.uint32))

        mesh = Mesh(np.array(devices), ("batch",))
        attrs = {}
        if on_cpu and mesh.size > 1:
            traced = run_batches.trace(*arguments(0, mesh.size), mesh=mesh)
            if waits_for_threads(traced.jaxpr.jaxpr):
                mesh = Mesh(np.array(devices[:1]), ("batch",))
                attrs = {"device_count": 1}

        def begin(first: int) -> Callable[[], dict[str, np.ndarray]]:
            values = run_batches(*arguments(first, mesh.size), mesh=mesh)
            return lambda: jax.tree.map(np.asarray, values)

        return Rounds(begin, mesh.size, attrs)


def divisor(number: int, limit: int) -> int:
    """Largest divisor of ``number`` not above ``limit``."""
    return max(k for k in range(1, max(1, min(number, limit)) + 1) if number % k == 0)


def by_value(function: Replicate) -> Replicate:
    """Function that shares its compiled program with others of the same bound arguments."""
    if isinstance(function, functools.partial):
        keywords = tuple(sorted(function.keywords.items()))
        with contextlib.suppress(TypeError):  # arguments without a hash
            return _bound(function.func, function.args, keywords)
    return function


@functools.cache
def _bound(
    function: Callable[..., PyTree],
    arguments: tuple[Hashable, ...],
    keywords: tuple[tuple[str, Hashable], ...],
) -> Replicate:
    return partial(function, *arguments, **dict(keywords))
