"""Stacks of integrals on all devices: the methods, their node rules by level, and the runner."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from sims.problem.kernels import Kernel
from sims.theory import exact_integrals as integrals
from sims.theory import exact_pairs as pairs
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
        rule: ``(ranks, level, count, grading) -> arrays``, or None where this level is out of
            reach; grading as in :func:`~sims.theory.quadrature.ball_rule`.
        random: whether the result has a leading axis of independent randomisations.
    """

    name: str
    function: Callable[..., Any]
    rule: Callable[[tuple[int, ...], int, int, int], Any]
    random: bool


def _single_rule(ranks: tuple[int, ...], level: int, count: int, grading: int) -> Any:
    rule = polar(SINGLE_SIZES, ranks[0], level, grading)
    if len(rule[0]) * count > MAX_RESPONSES:
        return None
    return _padded(rule) if ranks[0] <= 2 else rule


def _padded(rule: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """With nodes of weight 0 up to a power of 4: compiling a size anew costs more than they do."""
    size = 256
    while size < len(rule[0]):
        size *= 4
    radius, direction, weight = rule
    extra = size - len(radius)
    return (
        np.pad(radius, (0, extra), constant_values=0.5),
        np.pad(direction, ((0, extra), (0, 0)), mode="edge"),
        np.pad(weight, (0, extra)),
    )


def _product_rule(ranks: tuple[int, ...], level: int, count: int, grading: int) -> Any:
    rules = tuple(polar(PAIR_SIZES, k, level, grading) for k in ranks)
    return rules if len(rules[0][0]) * len(rules[1][0]) <= MAX_PAIR_NODES else None


def _hermite_rule(ranks: tuple[int, ...], level: int, count: int, grading: int) -> Any:
    rule = polar(PAIR_SIZES, ranks[0], level, grading)
    points = hermite_grid(ranks[1], _grown({1: 14, 2: 8}.get(ranks[1], 6), level))
    return (rule, points) if len(rule[0]) * len(points[0]) * count <= 4 * MAX_RESPONSES else None


def _sobol_rule(ranks: tuple[int, ...], level: int, count: int, grading: int) -> Any:
    size = 11 + 2 * level
    return sobol_set(sum(ranks), size) if size <= 19 else None


SINGLE_GRID = Method("polar", integrals.grid_single, _single_rule, False)
SINGLE_SOBOL = Method("sobol", integrals.sobol_single, _sobol_rule, True)
PRODUCT = Method("product", pairs.product_pair, _product_rule, False)
HERMITE = Method("hermite", pairs.hermite_pair, _hermite_rule, False)
PAIR_SOBOL = Method("sobol", pairs.sobol_pair, _sobol_rule, True)


def method_for_single(rank: int) -> Method:
    """A grid up to four dimensions."""
    return SINGLE_GRID if rank in SINGLE_SIZES else SINGLE_SOBOL


SMOOTH = frozenset({"gaussian", "softmax", "student"})
"""Kernels without a kink anywhere: the one head's grid may then ignore where the other's is."""


def methods_for_pair(
    kernel: Kernel, ranks: tuple[int, int], correlation: np.ndarray, concentric: bool
) -> list[Method]:
    """The method for a pair, and the one to fall back on where its rule is out of reach.

    The product grid has to resolve the conditional law's width √(1−ρ²); where that is small,
    integrating over it by Gauss–Hermite is cheaper, if head g's kernel has no kink away from head
    h's centre (concentric: the kinks coincide). Quasi-Monte Carlo above six dimensions.
    """
    width = float(np.sqrt(np.maximum(1 - correlation[0] ** 2, 0.0))) if correlation.size else 1.0
    largest = max(ranks)
    if largest > 3 or (largest == 3 and width < 0.35):
        return [PAIR_SOBOL]
    if kernel.name not in SMOOTH:
        resolved = width > {1: 0.02}.get(largest, 0.35)
        return [HERMITE] if concentric else [PRODUCT, PAIR_SOBOL] if resolved else [PAIR_SOBOL]
    return [PRODUCT if width > {1: 0.1}.get(largest, 0.35) else HERMITE, PAIR_SOBOL]


@cache
def _compiled(function: Callable[..., Any], kernel: Kernel, count: int) -> Any:
    mesh = Mesh(np.array(jax.devices()), ("items",))
    shared, split = PartitionSpec(), PartitionSpec("items")

    def batch(step: Any, n: Any, target: Any, rule: Any, items: Any) -> Any:
        return jax.lax.map(lambda i: function(kernel, count, step, n, target, rule, *i), items)

    return jax.jit(
        jax.shard_map(
            batch,
            mesh=mesh,
            in_specs=(shared, shared, shared, shared, split),
            out_specs=split,
            check_vma=False,
        ),
    )


def run(
    method: Method,
    kernel: Kernel,
    count: int,
    step: float,
    n: int,
    target: Any,
    rule: Any,
    items: Sequence[Any],
) -> Any:
    """Run a method over items (pytrees of equal shapes); the results stacked, as numpy arrays.

    Items go out in equal chunks, a multiple of the devices, so that few shapes are compiled.
    """
    devices = len(jax.devices())
    each = 8 if method is SINGLE_GRID else -(-len(items) // devices)
    chunk = devices * min(8, 1 << max(0, (each - 1).bit_length()))
    function = _compiled(method.function, kernel, count)
    shared = (jnp.asarray(step), jnp.asarray(float(n)), target, rule)
    results = []
    for start in range(0, len(items), chunk):
        part = list(items[start : start + chunk])
        used = len(part)
        part += [part[-1]] * (chunk - used)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *part)
        out = function(*shared, stacked)
        results.append(jax.tree.map(lambda leaf, used=used: np.asarray(leaf)[:used], out))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *results)


def bucket(count: int) -> int:
    """Grid sizes in log s are rounded up to few values, since each compiles anew."""
    size = 32
    while size < count:
        size += max(16, 16 * (size // 64))
    return size


def coarse_bucket(count: int) -> int:
    """The same for single heads, whose cost is small beside their pairs': powers of 2."""
    return max(64, 1 << (count - 1).bit_length())
