"""Cutting the work: block sizes that keep the working set within a stated number of bytes."""

from typing import NamedTuple

import numpy as np

from sims.base.checks import check_count
from sims.base.errors import InputError
from sims.montecarlo.compiled import divisor
from sims.problem import Heads, Kernel, Task
from sims.simulation.draws import DRAW_BLOCK

MEMORY = 2**30
"""Bytes that the working set may take where nothing else is said."""
CACHE = 256 * 1024
"""Bytes of weights meant to stay in a CPU core's second-level cache."""
GROUP = 256 * 1024**2
"""Bytes of sums and results of the queries of one call on a CPU: of more, the time to fetch them
from memory outweighs that of drawing the keys once more."""
ROWS = 1024
"""Queries times replicates that XLA weighs together on an accelerator. Its search for the fastest
code takes 4 to 10 seconds for so many on an H200, a minute for twice as many, and minutes for eight
times (docs/performance.md)."""
KEYS = 16 * DRAW_BLOCK
"""Keys of one call of the CUDA sums."""
PARTS = 2**18
"""Largest number of threads that keep a GPU busy; each has its own sums in CUDA's memory."""
RULE_ARRAYS = 6
"""Arrays (H, n) that a weight rule may keep alive at a query: scores, their order, running sums."""


class Shape(NamedTuple):
    """Sizes of one problem."""

    queries: int
    heads: int
    dimension: int
    width: int
    terms: int
    n: int
    itemsize: int
    all_keys: bool = False
    """True if a weight rule needs all keys at once."""

    @classmethod
    def from_problem(
        cls, task: Task, heads: Heads, n: int, queries: int, precision: str
    ) -> "Shape":
        """The sizes of a problem."""
        itemsize = np.dtype(precision).itemsize
        sizes = (heads.count, heads.dimension, heads.width, task.target.terms, n, itemsize)
        return cls(queries, *sizes, all_keys=not isinstance(heads.rule, Kernel))


class Plan(NamedTuple):
    """How the work is cut; it changes numbers only by rounding."""

    group: int
    """Queries of one call of the compiled program, a multiple of ``query_block``."""
    key_block: int
    """Keys weighed together."""
    query_block: int
    """Queries weighed together."""
    at_once: int
    """Replicates computed side by side."""
    bytes_per_device: int


def working_set(
    shape: Shape, group: int, key_block: int, query_block: int, at_once: int, sums: str = "XLA"
) -> int:
    """Bytes one device needs at a time: draws, weights, running sums, and results in flight.

    Counts every array that must exist together, temporaries twice; the compiled program may
    reuse more than that. The datasets returned to the caller are not included.
    """
    h = shape.heads
    item = shape.itemsize
    once, per_replicate = _of_a_query(shape)
    rows = shape.n if shape.all_keys else min(shape.n, max(key_block, DRAW_BLOCK))
    # XLA keeps up to seven arrays of X's size alive while it draws X in a loop over blocks.
    draws = rows * (8 * shape.dimension + 8) * item
    keys = key_block * (shape.width * h + 2 * shape.terms + shape.dimension + 4) * item
    weights = 2 * query_block * h * key_block * item
    if shape.all_keys:
        weights = shape.n * (query_block * h * (RULE_ARRAYS * item + 16) + 32)
    elif sums == "CUDA":
        parts = at_once * group * -(-key_block // DRAW_BLOCK) + PARTS
        weights = parts * h * (h + 9) * item // at_once
    return at_once * (draws + keys + weights + group * per_replicate) + group * once


def _of_a_query(shape: Shape) -> tuple[int, int]:
    """Bytes a query takes: moments and results in flight; sums of one replicate."""
    h = shape.heads
    moments = 2 * h * (3 * h + 3) * 8
    in_flight = 2 * h * (5 * h + 3) * 8
    sums = 2 * h * (h + 4) * 8 + h * (h + 4) * shape.itemsize
    return moments + in_flight, sums + h * (h + 2) * 8


def make_plan(
    shape: Shape,
    replicates: int,
    devices: int,
    *,
    budget: int = MEMORY,
    platform: str = "cpu",
    sums: str = "XLA",
) -> Plan:
    """Choose blocks whose working set, summed over host devices, obeys the budget.

    Sizes start from what fits a cache on a CPU, or fills an accelerator, and are halved, fewest
    losses first, until the working set fits. The sums in C++ see to their cache themselves, and
    those in CUDA to their blocks: they get more keys at once.

    Raises:
        InputError: even the smallest blocks exceed the budget.
    """
    check_count("memory_budget", budget)
    group, keys, queries, at_once = _largest_blocks(shape, replicates, platform, sums)
    counted = devices if platform == "cpu" else 1
    while True:
        # Equal blocks waste the least on padding, and groups hold whole blocks.
        queries = -(-group // -(-group // queries))
        padded = -(-group // queries) * queries
        need = working_set(shape, padded, keys, queries, at_once, sums) * counted
        if need <= budget:
            return Plan(padded, keys, queries, at_once, need // counted)
        if keys > DRAW_BLOCK and not shape.all_keys:
            keys = keys // 2
        elif at_once > 1:
            at_once = divisor(replicates, at_once // 2)
        elif queries > 1:
            queries = queries // 2
        elif keys > 128 and not shape.all_keys:
            keys = max(128, keys // 2)
        elif group > 1:
            group = -(-group // 2)
        else:
            raise InputError("memory_budget", budget, f">= {need} bytes here")


def _largest_blocks(
    shape: Shape, replicates: int, platform: str, sums: str
) -> tuple[int, int, int, int]:
    """The group, keys, queries and replicates at once from which a plan starts."""
    cpu = platform == "cpu"
    keys = min(shape.n, 1024 if cpu and sums == "XLA" else DRAW_BLOCK)
    group = shape.queries
    if shape.all_keys:
        keys = shape.n
    if cpu:
        # A CPU's loop over replicates costs microseconds a turn: as long as 1000 keys take.
        at_once = divisor(replicates, max(1, 1024 // shape.n))
        # What a rule does between scores and weights takes as much again.
        weights = shape.heads * keys * shape.itemsize * (2 if shape.all_keys else 1)
        queries = max(1, CACHE // weights)
        parts = -(-group * sum(_of_a_query(shape)) // GROUP)
        group = -(-group // parts)
    elif shape.all_keys:
        at_once = divisor(replicates, 32)
        queries = 1
    elif sums == "CUDA":
        at_once = divisor(replicates, 32)
        queries = group
        keys = min(shape.n, KEYS)
    else:  # of as many rows, those of more queries and fewer replicates are faster
        at_once = divisor(replicates, min(32, max(8, ROWS // shape.queries)))
        queries = ROWS // at_once
    return group, keys, min(queries, shape.queries), at_once
