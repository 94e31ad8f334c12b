"""Rules: which nodes a kind of integral takes at each level, and how its items are packed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, PyTree

from sims.problem.kernels import Kernel
from sims.theory.exact.conditioning import GaussianLaw
from sims.theory.exact.items import HeadItem, PairItem, head_arrays, pad, padded
from sims.theory.exact.laplace import (
    LEAST_RANK,
    Head,
    Nodes,
    Proposal,
    Regression,
    Single,
    grid_single,
    sobol_single,
)
from sims.theory.exact.pair_rules import (
    Conditional,
    Mehler,
    hermite_pair,
    product_pair,
    sobol_pair,
)
from sims.theory.exact.pairs import Couple, Pair
from sims.theory.exact.quadrature import ball_rule, hermite_grid, sobol_normal

RANDOMISATIONS = 8
"""Independent randomisations of a Sobol set, whose spread is the error."""
SINGLE_SIZES = {1: (48, 2), 2: (20, 16), 3: (14, 12), 4: (10, 8)}
PAIR_SIZES = {1: (32, 2), 2: (10, 8), 3: (8, 8)}
"""Radial nodes and points on a great circle at level 0, by the rank k of a head."""
HERMITE_SIZES = {0: 1, 1: 14, 2: 8}
"""Gauss–Hermite points a direction at level 0, by the number of free directions; 6 above."""
GROWTH = 1.4
"""Nodes per direction grow by this factor from level to level."""
MAX_PAIR_NODES = 12_000_000
"""Joint nodes of one pair; above, a rule is out of reach."""
MAX_RESPONSES = 20_000_000
"""Entries of a (log s × nodes) array; above, a rule is out of reach."""
LEAST_SOBOL, MOST_SOBOL = 11, 19
"""log2 of the points of a Sobol set at level 0, and at most; it grows by 2 a level."""
LEAST_POINTS = 1024
"""Grids are padded to 1024·8^j nodes, so that levels share their programs."""

Items = tuple[PyTree, ...]
"""An item's arrays, as the rule's function takes them."""
Grids = Nodes | tuple[Nodes, Nodes] | Float[np.ndarray, "R N p"]
"""A grid, a pair of grids, or sets of normal points."""


class Need(NamedTuple):
    """Requirements that determine nodes in addition to their level.

    Attributes:
        ranks: numbers of coordinates that the heads see.
        size: size of the grid in log s.
        grading: grading of radii, as in :func:`~sims.theory.exact.quadrature.ball_rule`.
        frozen: number of directions in which the second head sees exactly what the first sees.
    """

    ranks: tuple[int, ...]
    size: int
    grading: int
    frozen: int = 0


@dataclass(frozen=True)
class Rule:
    """Rule that computes a kind of integral, level by level.

    Attributes:
        name: shown in the result's attributes: ``polar``, ``product`` (of polar grids),
            ``hermite`` (polar times Gauss–Hermite), ``sobol`` (randomised quasi-Monte Carlo).
        function: ``(setting, nodes, *arrays of an item) -> terms``, traced by JAX; of
            :mod:`sims.theory.exact.laplace` or :mod:`sims.theory.exact.pair_rules`.
        random: whether the result has a leading axis of independent randomisations.
        nodes: ``(need, level) -> Grids``, or None where this level is out of reach.
        pack: ``(item, kernel, law) -> arrays`` of a head, ``(item, kernel, law, curves) ->
            arrays`` of a pair.
    """

    name: str
    function: Callable[..., Single | Pair]
    random: bool
    nodes: Callable[..., Grids | None]
    pack: Callable[..., Items]


def step_of(level: int, width: int) -> float:
    """Step in log s. The trapezoid rule's error is about 1e-6 at 0.5, 1e-8 at 0.4, 1e-12 at 0.3.

    Heads of width 1 need few nodes, so they can afford the finest at once.
    """
    return 0.3 if width == 1 or level > 3 else 0.4 if level else 0.5


def _grown(size: int, level: int) -> int:
    return 2 * round(size * GROWTH**level / 2)


def _padded(points: Float[np.ndarray, "N k"], log_weight: Float[np.ndarray, " N"]) -> Nodes:
    """Nodes padded with weight 0 up to 1024·8^j, and the number of those that count."""
    size = LEAST_POINTS
    used, k = points.shape
    while size < used:
        size *= 8
    return Nodes(
        np.pad(points, ((0, size - used), (0, max(LEAST_RANK - k, 0)))),
        np.pad(log_weight, (0, size - used), constant_values=-np.inf),
        np.asarray(used),
    )


def _polar(
    sizes: dict[int, tuple[int, int]], k: int, level: int, grading: int
) -> tuple[Float[np.ndarray, "N k"], Float[np.ndarray, " N"]]:
    """The polar grid for rank k at that level: points and log weights."""
    radial, order = sizes[k]
    # Graded radii resolve the edge of a support: twice the radii at the least level.
    radius, direction, weight = ball_rule(
        k, _grown(radial if grading == 1 else 2 * radial, level), _grown(order, level), grading
    )
    return radius[:, None] * direction, np.log(weight)


@lru_cache(maxsize=64)
def _single_nodes(need: Need, level: int) -> Nodes | None:
    grid = _polar(SINGLE_SIZES, need.ranks[0], level, need.grading)
    return _padded(*grid) if len(grid[1]) * need.size <= MAX_RESPONSES else None


@lru_cache(maxsize=64)
def _product_nodes(need: Need, level: int) -> tuple[Nodes, Nodes] | None:
    first = _polar(PAIR_SIZES, need.ranks[0], level, need.grading)
    second = _polar(PAIR_SIZES, need.ranks[1], level, need.grading)
    if len(first[1]) * len(second[1]) > MAX_PAIR_NODES:
        return None
    return _padded(*first), _padded(*second)


@lru_cache(maxsize=64)
def _hermite_nodes(need: Need, level: int) -> tuple[Nodes, Nodes] | None:
    grid = _polar(PAIR_SIZES, need.ranks[0], level, need.grading)
    free = need.ranks[1] - need.frozen
    points, weights = hermite_grid(free, _grown(HERMITE_SIZES.get(free, 6), level))
    # Frozen directions come first, at v = 0.
    points = np.pad(points, ((0, 0), (need.frozen, 0)))
    if len(grid[1]) * len(points) * need.size > 4 * MAX_RESPONSES:
        return None
    # For integrals against dv, the density of z taken out.
    log_weight = np.log(weights) + 0.5 * np.sum(points**2, axis=1)
    return _padded(*grid), _padded(points, log_weight)


def _sobol_nodes(need: Need, level: int) -> Float[np.ndarray, "R N p"] | None:
    log2_size = LEAST_SOBOL + 2 * level
    return _sobol_sets(sum(need.ranks), log2_size) if log2_size <= MOST_SOBOL else None


@lru_cache(maxsize=16)
def _sobol_sets(p: int, log2_size: int) -> Float[np.ndarray, "R N p"]:
    return np.stack([sobol_normal(p, log2_size, seed) for seed in range(RANDOMISATIONS)])


def _grid_head(item: HeadItem, kernel: Kernel, law: GaussianLaw) -> tuple[Head, Regression]:
    head = head_arrays(kernel, item.head, item.extent, LEAST_RANK)
    return head, padded(law.condition_on_one(item.head))


def _sobol_head(
    item: HeadItem, kernel: Kernel, law: GaussianLaw
) -> tuple[Head, Regression, Proposal]:
    head = head_arrays(kernel, item.head, item.extent, 0)
    return head, law.condition_on_one(item.head), item.proposal()


def _product_couple(
    item: PairItem, kernel: Kernel, law: GaussianLaw, curves: tuple[Single, Single]
) -> tuple[Couple, Mehler]:
    regression = padded(law.condition_on_both(item.projection))
    return Couple(item.arrays(kernel, LEAST_RANK), curves, regression), item.mehler()


def _hermite_couple(
    item: PairItem, kernel: Kernel, law: GaussianLaw, curves: tuple[Single, Single]
) -> tuple[Couple, np.ndarray, Conditional]:
    couple = Couple(
        item.arrays(kernel, LEAST_RANK), curves, padded(law.condition_on_rest(item.projection))
    )
    return couple, pad(item.projection.correlation, LEAST_RANK), item.conditional()


def _sobol_couple(
    item: PairItem, kernel: Kernel, law: GaussianLaw, curves: tuple[Single, Single]
) -> tuple[Couple, np.ndarray, Proposal]:
    couple = Couple(item.arrays(kernel, 0), curves, law.condition_on_rest(item.projection))
    return couple, item.projection.correlation, item.proposal()


SINGLE_GRID = Rule("polar", grid_single, False, _single_nodes, _grid_head)
SINGLE_SOBOL = Rule("sobol", sobol_single, True, _sobol_nodes, _sobol_head)
PRODUCT = Rule("product", product_pair, False, _product_nodes, _product_couple)
HERMITE = Rule("hermite", hermite_pair, False, _hermite_nodes, _hermite_couple)
PAIR_SOBOL = Rule("sobol", sobol_pair, True, _sobol_nodes, _sobol_couple)


def rule_for_single(rank: int) -> Rule:
    """A grid up to four dimensions."""
    return SINGLE_GRID if rank in SINGLE_SIZES else SINGLE_SOBOL


def rules_for_pair(kernel: Kernel, item: PairItem) -> list[Rule]:
    """The rule for a pair, and the one to fall back on where its nodes are out of reach.

    The product grid has to resolve the conditional law's widths √(1−ρ_j²); where they are small,
    integrating over it by Gauss–Hermite is cheaper, if head g's kernel has no kink away from head
    h's centre (concentric: the kinks coincide). Quasi-Monte Carlo above six dimensions.
    """
    widths = np.sqrt(np.maximum(1 - item.projection.correlation**2, 0.0))
    width = float(widths[0]) if widths.size else 1.0
    largest = max(item.ranks)
    if largest > 3 or (largest == 3 and width < 0.35):
        return [PAIR_SOBOL]
    if not kernel.smooth:
        resolved = width > {1: 0.02}.get(largest, 0.35)
        return [HERMITE] if item.concentric else [PRODUCT, PAIR_SOBOL] if resolved else [PAIR_SOBOL]
    # One narrow direction costs the product grid less than two.
    wide = {1: width > 0.1, 2: width > 0.2 and np.prod(widths) > 0.35**2}.get(largest, True)
    return [PRODUCT if wide else HERMITE, PAIR_SOBOL]
