"""Stacks of integrals on all cores: the methods, their node rules by level, and the runner.

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
from functools import cache, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sims.problem.kernels import Kernel
from sims.runtime import host_devices
from sims.theory import exact_integrals as integrals
from sims.theory import exact_pairs as pairs
from sims.theory import exact_scattered as scattered
from sims.theory.exact_integrals import LEAST_RANK, Single
from sims.theory.exact_pairs import Pair
from sims.theory.quadrature import ball_rule, sobol_normal

RANDOMISATIONS = 8
SINGLE_SIZES = {1: (48, 2), 2: (20, 16), 3: (14, 12), 4: (10, 8)}
PAIR_SIZES = {1: (32, 2), 2: (10, 8), 3: (8, 8)}
"""Radial nodes and points on a great circle at level 0, by the rank k of a head."""
GROWTH = 1.4
"""Nodes per direction grow by this factor from level to level."""
MAX_PAIR_NODES = 12_000_000
"""Joint nodes of one pair (three float64 arrays of this size a device)."""
MAX_RESPONSES = 20_000_000
"""Entries of a (log s × nodes) array; above, a rule is out of reach."""


def step_of(level: int, width: int) -> float:
    """Step in log s. The trapezoid rule's error is about 1e-6 at 0.5, 1e-8 at 0.4, 1e-12 at 0.3.

    Heads of width 1 need few nodes, so they can afford the finest at once.
    """
    return 0.3 if width == 1 or level > 3 else 0.4 if level else 0.5


def _grown(size: int, level: int) -> int:
    return 2 * round(size * GROWTH**level / 2)


def polar(
    sizes: dict[int, tuple[int, int]], k: int, level: int, grading: int = 1
) -> tuple[np.ndarray, ...]:
    """The polar grid for rank k at that level."""
    radial, order = sizes[k]
    # Graded radii resolve the edge of a support: twice the radii at the least level.
    return ball_rule(
        k, _grown(radial if grading == 1 else 2 * radial, level), _grown(order, level), grading
    )


@lru_cache(maxsize=16)
def hermite_grid(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Hermite nodes (count^k, k) and weights for N(0, I_k)."""
    if not k:
        return np.zeros((1, 0)), np.ones(1)
    node, weight = np.polynomial.hermite_e.hermegauss(count)
    grid = np.stack(np.meshgrid(*[node] * k, indexing="ij"), axis=-1).reshape(-1, k)
    product = np.prod(np.stack(np.meshgrid(*[weight] * k, indexing="ij"), axis=-1), axis=-1)
    return grid, product.ravel() / (2 * np.pi) ** (k / 2)


@lru_cache(maxsize=16)
def sobol_set(p: int, log2_size: int) -> np.ndarray:
    """Independent randomisations (R, 2^m, p) of a Sobol set."""
    return np.stack([sobol_normal(p, log2_size, seed) for seed in range(RANDOMISATIONS)])


MAX_COUNT = 2048
"""Points of a grid in log s; a pair has this number squared."""


@dataclass(frozen=True)
class Method:
    """How a kind of integral is computed.

    Attributes:
        name: shown in the result's attributes: ``polar``, ``product`` (of polar grids),
            ``hermite`` (polar times Gauss–Hermite), ``sobol`` (randomised quasi-Monte Carlo).
        function: of :mod:`sims.theory.exact_integrals` or :mod:`sims.theory.exact_pairs`.
        rule: ``(ranks, level, count, grading, frozen) -> arrays``, or None where this level is out
            of reach; grading as in :func:`~sims.theory.quadrature.ball_rule`, ``frozen`` the number
            of directions in which the second head sees exactly what the first sees.
        random: whether the result has a leading axis of independent randomisations.
        kind: ``Single`` or ``Pair``, what it gives.
    """

    name: str
    function: Callable[..., Any]
    rule: Callable[..., Any]
    random: bool
    kind: Any


def _padded(points: np.ndarray, log_weight: np.ndarray) -> tuple[Any, ...]:
    """With nodes of weight 0 up to 1024·8^j, and the number of those that count."""
    size, (used, k) = 1024, points.shape
    while size < used:
        size *= 8
    return (
        np.pad(points, ((0, size - used), (0, max(LEAST_RANK - k, 0)))),
        np.pad(log_weight, (0, size - used), constant_values=-np.inf),
        np.asarray(used),
    )


def _padded_polar(rule: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    radius, direction, weight = rule
    return _padded(radius[:, None] * direction, np.log(weight))


@lru_cache(maxsize=64)
def _single_rule(
    ranks: tuple[int, ...], level: int, count: int, grading: int, frozen: int = 0
) -> Any:
    rule = polar(SINGLE_SIZES, ranks[0], level, grading)
    return _padded_polar(rule) if len(rule[0]) * count <= MAX_RESPONSES else None


@lru_cache(maxsize=64)
def _product_rule(
    ranks: tuple[int, ...], level: int, count: int, grading: int, frozen: int = 0
) -> Any:
    rules = tuple(polar(PAIR_SIZES, k, level, grading) for k in ranks)
    if len(rules[0][0]) * len(rules[1][0]) > MAX_PAIR_NODES:
        return None
    return tuple(_padded_polar(rule) for rule in rules)


@lru_cache(maxsize=64)
def _hermite_rule(
    ranks: tuple[int, ...], level: int, count: int, grading: int, frozen: int = 0
) -> Any:
    rule = polar(PAIR_SIZES, ranks[0], level, grading)
    free = ranks[1] - frozen
    points, weights = hermite_grid(free, _grown({0: 1, 1: 14, 2: 8}.get(free, 6), level))
    # Frozen directions come first, at v = 0.
    points = np.pad(points, ((0, 0), (frozen, 0)))
    if len(rule[0]) * len(points) * count > 4 * MAX_RESPONSES:
        return None
    # For integrals against dv, the density of z taken out.
    return _padded_polar(rule), _padded(points, np.log(weights) + 0.5 * np.sum(points**2, axis=1))


def _sobol_rule(
    ranks: tuple[int, ...], level: int, count: int, grading: int, frozen: int = 0
) -> Any:
    size = 11 + 2 * level
    return sobol_set(sum(ranks), size) if size <= 19 else None


SINGLE_GRID = Method("polar", integrals.grid_single, _single_rule, False, Single)
SINGLE_SOBOL = Method("sobol", integrals.sobol_single, _sobol_rule, True, Single)
PRODUCT = Method("product", pairs.product_pair, _product_rule, False, Pair)
HERMITE = Method("hermite", scattered.hermite_pair, _hermite_rule, False, Pair)
PAIR_SOBOL = Method("sobol", scattered.sobol_pair, _sobol_rule, True, Pair)


def method_for_single(rank: int) -> Method:
    """A grid up to four dimensions."""
    return SINGLE_GRID if rank in SINGLE_SIZES else SINGLE_SOBOL


def methods_for_pair(
    kernel: Kernel, ranks: tuple[int, int], correlation: np.ndarray, concentric: bool
) -> list[Method]:
    """The method for a pair, and the one to fall back on where its rule is out of reach.

    The product grid has to resolve the conditional law's widths √(1−ρ_j²); where they are small,
    integrating over it by Gauss–Hermite is cheaper, if head g's kernel has no kink away from head
    h's centre (concentric: the kinks coincide). Quasi-Monte Carlo above six dimensions.
    """
    widths = np.sqrt(np.maximum(1 - correlation**2, 0.0))
    width = float(np.sqrt(np.maximum(1 - correlation[0] ** 2, 0.0))) if correlation.size else 1.0
    largest = max(ranks)
    if largest > 3 or (largest == 3 and width < 0.35):
        return [PAIR_SOBOL]
    if not kernel.smooth:
        resolved = width > {1: 0.02}.get(largest, 0.35)
        return [HERMITE] if concentric else [PRODUCT, PAIR_SOBOL] if resolved else [PAIR_SOBOL]
    # One narrow direction costs the product grid less than two.
    wide = {1: width > 0.1, 2: width > 0.2 and np.prod(widths) > 0.35**2}.get(largest, True)
    return [PRODUCT if wide else HERMITE, PAIR_SOBOL]


CURVES = frozenset({"hit", "weight", "weighted"})
"""Fields of a result that have an entry for each point of the grid in log s."""
CAPACITY = 16
"""Items that a call takes at most."""


@cache
def _jitted(
    function: Callable[..., Any],
    kernel: Kernel,
    count: int,
    tree: Any,
    shapes: tuple[tuple[int, ...], ...],
    length: int,
) -> Any:
    """Over packed items (CAPACITY, ·), of which the first ``used`` count."""

    def batch(step: Any, n: Any, phase: Any, rule: Any, used: Any, packed: Any) -> Any:
        def one(index: Any, out: Any) -> Any:
            item = _unpack(packed[index], tree, shapes)
            result = function(kernel, count, step, n, phase, rule, *item)
            row = jnp.concatenate([leaf.ravel() for leaf in result])
            return jax.lax.dynamic_update_index_in_dim(out, row, index, 0)

        return jax.lax.fori_loop(0, used, one, jnp.zeros((CAPACITY, length)))

    return jax.jit(batch)


def _unpack(row: Any, tree: Any, shapes: tuple[tuple[int, ...], ...]) -> Any:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    leaves = [
        row[end - math.prod(shape) : end].reshape(shape)
        for end, shape in zip(ends.tolist(), shapes, strict=True)
    ]
    return jax.tree.unflatten(tree, leaves)


_programs: dict[Any, Future[Any]] = {}
_guard = threading.Lock()
_compilers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="compile")


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(host_devices(), thread_name_prefix="integrals")


def _program(function: Any, arguments: tuple[Any, ...]) -> Future[Any]:
    """Compiled ahead, beside what runs meanwhile; each function and shape once."""
    abstract = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), arguments)
    key = function, jax.tree.structure(abstract), tuple(jax.tree.leaves(abstract))
    with _guard:
        if key not in _programs:
            _programs[key] = _compilers.submit(lambda: _compile(function.lower(*abstract)))
        return _programs[key]


def _compile(lowered: Any) -> Any:
    # A third faster to compile, as fast to run; not all versions have the choice.
    try:
        return lowered.compile(compiler_options={"xla_cpu_use_fusion_emitters": False})
    except jax.errors.JaxRuntimeError:
        return lowered.compile()


@dataclass(frozen=True)
class Job:
    """A method over items: pytrees of equal shapes, all of them ``method.function``'s own.

    Making one starts compiling what it needs.
    """

    method: Method
    kernel: Kernel
    count: int
    step: float
    n: int
    phase: np.ndarray
    rule: Any
    items: Sequence[Any]

    def __post_init__(self) -> None:
        _program(*self._call([])[:2])

    def _call(self, items: Sequence[Any]) -> tuple[Any, tuple[Any, ...], list[Any]]:
        """Function, arguments for these items, and the shapes of a result's parts."""
        leaves, tree = jax.tree.flatten(self.items[0])
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        lead = (RANDOMISATIONS,) if self.method.random else ()
        fields = self.method.kind._fields
        parts = [lead + ((self.count,) if name in CURVES else ()) for name in fields]
        length = sum(math.prod(part) for part in parts)
        with _guard:  # or two threads would make, and compile, two of them
            function = _jitted(self.method.function, self.kernel, self.count, tree, shapes, length)
        packed = np.zeros((CAPACITY, sum(math.prod(shape) for shape in shapes)))
        for index, item in enumerate(items):
            packed[index] = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(item)])
        scalars = np.asarray(self.step), np.asarray(float(self.n))
        return function, (*scalars, self.phase, self.rule, np.asarray(len(items)), packed), parts

    def run(self) -> Any:
        """The results stacked, as numpy arrays."""
        size = min(CAPACITY, math.ceil(len(self.items) / host_devices()))
        function, arguments, parts = self._call([])
        program = _program(function, arguments).result()

        def part_from(start: int) -> Any:
            items = self.items[start : start + size]
            return np.asarray(program(*self._call(items)[1]))[: len(items)]

        rows = np.concatenate(list(_workers().map(part_from, range(0, len(self.items), size))))
        ends = np.cumsum([math.prod(part) for part in parts])[:-1]
        return self.method.kind(
            *(
                block.reshape(len(rows), *part)
                for block, part in zip(np.split(rows, ends, axis=1), parts, strict=True)
            )
        )


def bucket(count: int) -> int:
    """Sizes of grids in log s, of which each compiles anew: 64, 96, 128, 192 and so on."""
    size = 64
    while size < count:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


FEW = 64
"""Fewer items than this are not worth a program of their own."""


def merged(counts: Sequence[int]) -> list[int]:
    """Buckets of these counts; few items take the next larger one where it is not above double."""
    sizes = [bucket(count) for count in counts]
    present = sorted(set(sizes))
    for size, larger in itertools.pairwise(present):
        if sizes.count(size) < FEW and larger <= 2 * size:
            sizes = [larger if s == size else s for s in sizes]
    return sizes
