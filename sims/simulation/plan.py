"""Cutting the work: block sizes that keep the working set within a stated number of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax

from sims.checks import check_count
from sims.errors import InputError
from sims.montecarlo.compiled import divisor
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.replicate import Blocks
from sims.simulation.sums import KernelSums

CACHE = 256 * 1024
"""Bytes of weights meant to stay in a CPU core's second-level cache."""
GROUP = 256 * 1024**2
"""Bytes of sums and results of the queries of one call on a CPU: of more, the time to fetch them
from memory outweighs that of drawing the keys once more."""
ROWS = 1024
"""Queries times replicates that XLA weighs together on an accelerator. Its search for the fastest
code takes 4 to 10 seconds for so many on an H200, a minute for twice as many, and minutes for eight
times (docs/gpu.md)."""
RULE_ARRAYS = 6
"""Arrays (H, n) that a weight rule may keep alive at a query: scores, their order, running sums."""


@dataclass(frozen=True)
class Tuning:
    """How the engine works; changes numbers only by rounding. None lets the engine choose.

    Attributes:
        devices: JAX devices to spread batches over; None takes all.
        memory_budget: bytes that the working set may take (of one device, if it is no CPU).
            The result itself is not counted.
        replicates_at_once: replicates computed side by side, lowered to a divisor of R.
        key_block: keys weighed together; a weight rule takes all.
        query_block: queries weighed together.
        query_group: queries in one call of the compiled program; more groups draw X again.
        kernel_sums: computes the sums over a block of keys (:data:`~.sums.KernelSums`); a plain
            function, since its identity selects a compilation. None is C++ on a CPU where it is
            compiled and knows the kernel or weight rule, else XLA.

    Raises:
        InputError: a size is no integer ≥ 1.
    """

    devices: Sequence[jax.Device] | None = None
    memory_budget: int = 2**30
    replicates_at_once: int | None = None
    key_block: int | None = None
    query_block: int | None = None
    query_group: int | None = None
    kernel_sums: KernelSums | None = None

    def __post_init__(self) -> None:
        check_count("memory_budget", self.memory_budget)
        for name in ("replicates_at_once", "key_block", "query_block", "query_group"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))


@dataclass(frozen=True)
class Shape:
    """Sizes of one problem."""

    queries: int
    heads: int
    dimension: int
    width: int
    terms: int
    n: int
    itemsize: int
    whole: bool = False
    """Whether a weight rule needs all keys at once."""


@dataclass(frozen=True)
class Plan:
    """Queries of one call of the compiled program, and the blocks within it."""

    group: int
    blocks: Blocks
    at_once: int
    bytes_per_device: int


def working_set(shape: Shape, group: int, blocks: Blocks, at_once: int) -> int:
    """Bytes one device needs at a time: draws, weights, running sums, and results in flight.

    Counts every array that must exist together, temporaries twice; the compiled program may
    reuse more than that. The datasets returned to the caller are not included.
    """
    h, item = shape.heads, shape.itemsize
    once, each = _of_a_query(shape)
    rows = shape.n if shape.whole else min(shape.n, DRAW_BLOCK)
    # XLA keeps up to seven arrays of X's size alive while it draws X in a loop over blocks.
    draws = rows * (8 * shape.dimension + 8) * item
    keys = blocks.keys * (shape.width * h + 2 * shape.terms + shape.dimension + 4) * item
    weights = 2 * blocks.queries * h * blocks.keys * item
    if shape.whole:
        weights = shape.n * (blocks.queries * h * (RULE_ARRAYS * item + 16) + 32)
    return at_once * (draws + keys + weights + group * each) + group * once


def _of_a_query(shape: Shape) -> tuple[int, int]:
    """Bytes a query takes: moments and results in flight; sums of one replicate."""
    h = shape.heads
    moments, in_flight = 2 * h * (3 * h + 3) * 8, 2 * h * (5 * h + 3) * 8
    sums = 2 * h * (h + 4) * 8 + h * (h + 4) * shape.itemsize
    return moments + in_flight, sums + h * (h + 2) * 8


def make_plan(
    shape: Shape,
    replicates: int,
    tuning: Tuning,
    devices: int,
    *,
    platform: str = "cpu",
    streamed: bool = True,
) -> Plan:
    """Choose blocks whose working set, summed over host devices, obeys the budget.

    Sizes given by the caller are kept (queries in a group are rounded up to whole blocks); the
    others start from what fits a cache on a CPU, or fills an accelerator, and are halved, fewest
    losses first, until the working set fits. Sums that are not ``streamed`` by XLA see to their
    cache themselves, and get more keys at once.

    Raises:
        InputError: even the smallest blocks exceed the budget.
    """
    cpu = platform == "cpu"
    share = tuning.memory_budget // (devices if cpu else 1)
    keys = tuning.key_block or min(shape.n, 1024 if cpu and streamed else DRAW_BLOCK)
    keys = shape.n if shape.whole else min(keys, shape.n, DRAW_BLOCK)
    # A CPU's loop over replicates costs microseconds a turn: as long as 1000 keys take.
    default = max(1, 1024 // shape.n) if cpu else 32
    by_xla = streamed and not (cpu or shape.whole)
    if by_xla:  # of as many rows, those of more queries and fewer replicates are faster
        default = min(32, max(8, ROWS // shape.queries))
    at_once = divisor(replicates, tuning.replicates_at_once or default)
    if tuning.query_block:
        queries = tuning.query_block
    elif shape.whole:  # what a rule does between scores and weights takes as much again
        queries = max(1, CACHE // (2 * shape.heads * keys * shape.itemsize)) if cpu else 1
    elif cpu:
        queries = max(1, CACHE // (shape.heads * keys * shape.itemsize))
    else:
        queries = max(1, ROWS // at_once) if by_xla else shape.queries
    queries = min(queries, shape.queries)
    group = min(tuning.query_group or shape.queries, shape.queries)
    if cpu and not tuning.query_group:
        parts = -(-group * sum(_of_a_query(shape)) // GROUP)
        group = -(-group // parts)
    while True:
        # Equal blocks waste the least on padding, and groups hold whole blocks.
        queries = -(-group // -(-group // queries))
        padded = -(-group // queries) * queries
        blocks = Blocks(keys, queries)
        need = working_set(shape, padded, blocks, at_once)
        if need <= share:
            return Plan(padded, blocks, at_once, need)
        if at_once > 1 and not tuning.replicates_at_once:
            at_once = divisor(replicates, at_once // 2)
        elif queries > 1 and not tuning.query_block:
            queries = queries // 2
        elif keys > 128 and not (tuning.key_block or shape.whole):
            keys = max(128, keys // 2)
        elif group > 1 and not tuning.query_group:
            group = -(-group // 2)
        else:
            least = need * (devices if cpu else 1)
            raise InputError("memory_budget", tuning.memory_budget, f">= {least} bytes here")
