"""The heads' errors as a sampler of the Monte Carlo driver, over groups of queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.base.checks import on_device
from sims.montecarlo import Draw, Replicates, Rounds
from sims.montecarlo.draws import PILOT
from sims.montecarlo.sampler import Arrays
from sims.problem import Heads, Kernel, Task
from sims.simulation.all_keys import over_slots, weigh_all_keys
from sims.simulation.draws import split_constant
from sims.simulation.moments import BATCH_ESTIMATES
from sims.simulation.native import usable
from sims.simulation.native.cuda import cuda_usable
from sims.simulation.plan import MEMORY, Shape, make_plan
from sims.simulation.replicate import Replicate, Settings, Shared, pilot, replicate
from sims.simulation.result import batch_arrays, build, reached, unseen


@dataclass(frozen=True, eq=False)
class EnsembleSampler:
    """Batches of every head's errors at every query; attributes as in :func:`~.engine.estimate`."""

    task: Task
    heads: Heads
    n: int
    queries: np.ndarray
    precision: str = "float32"
    control_variate: bool = False
    keep_queries: bool = True
    weights: ArrayLike | None = None
    memory_budget: int = MEMORY

    def identity(self) -> object:
        """Problem and choices; the ensemble's weights enter after sampling, memory only rounds."""
        return replace(self, weights=None, memory_budget=MEMORY)

    def prepare(
        self, draws: Draw, devices: Sequence[jax.Device], batches: int
    ) -> tuple[Callable[..., Replicate], int, list[Shared], dict[str, Any]]:
        """Plan the work, and draw the pilot if there is a control variate.

        Returns:
            One replicate as a function, how many of them are computed in parallel, what they
            share for each group of queries, and attributes of the result.
        """
        task, constant = split_constant(self.task)
        heads = self.heads
        count = len(self.queries)
        shape = Shape.from_problem(task, heads, self.n, count, self.precision)
        function = replicate if isinstance(heads.rule, Kernel) else weigh_all_keys
        if (slots := over_slots(heads, self.n)) is not None:
            heads, gates = slots
            function = partial(weigh_all_keys, gates=gates)
        platform = devices[0].platform
        work = float(self.n) * count * heads.count * draws.replicates * batches
        sums = "C++" if usable(heads.rule, platform, work) else "XLA"
        if cuda_usable(heads, self.precision, devices[0], work):
            sums = "CUDA"
        plan = make_plan(
            shape,
            draws.replicates,
            len(devices),
            budget=self.memory_budget,
            platform=platform,
            sums=sums,
        )
        blocks = (plan.key_block, plan.query_block)
        settings = Settings(self.n, *blocks, self.precision, sums)
        queries = np.pad(self.queries, [(0, -count % plan.group), (0, 0)])
        groups = []
        for group in queries.reshape(-1, plan.group, heads.dimension):
            known = Shared(task, heads, on_device(group), constant=constant)
            if self.control_variate:
                control = pilot(settings, draws.draw(PILOT, 0).key, known)
                known = known._replace(control=control)
            groups.append(known)
        attrs = {"n": self.n, "precision": self.precision, "kernel_sums": sums}
        return partial(function, settings), plan.at_once, groups, attrs

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Set up a run, a program for each group of queries."""
        function, at_once, groups, attrs = self.prepare(draws, devices, batches)
        rounds = []
        for known in groups:
            sampler = Replicates(function, constants=known, reduce=BATCH_ESTIMATES, at_once=at_once)
            rounds.append(sampler.start(draws, devices, batches))

        def begin(first: int) -> Callable[[], Arrays]:
            waits = [part.begin(first) for part in rounds]
            return lambda: join_groups(
                [wait() for wait in waits], len(self.queries), self.keep_queries
            )

        return Rounds(begin, rounds[0].width, {**rounds[0].attrs, **attrs})

    def label(self, arrays: Arrays) -> xr.Dataset:
        """The terms, without MCSE."""
        return build(arrays, keep_queries=self.keep_queries, weights=self.weights)

    def unlabel(self, data: xr.Dataset) -> Arrays:
        """The arrays of a result."""
        return batch_arrays(data)

    def precise(self, arrays: Arrays, rel_mcse: float, negligible: float) -> bool:
        """True if every scalar term is precise enough and every query had keys with weight.

        See :func:`~.result.reached` and :func:`~.result.unseen`.
        """
        if unseen(arrays["empty_rate"]):
            return False
        return reached(self.label(arrays), rel_mcse, negligible)


def join_groups(
    groups: Sequence[Arrays], count: int, keep_queries: bool, axis: int = 1
) -> dict[str, np.ndarray]:
    """Batches of so many queries from those of their groups, as one query unless they are kept."""
    out = {}
    for name in groups[0]:
        parts = [group[name] for group in groups]
        value = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)
        value = value[(slice(None),) * axis + (slice(count),)]
        out[name] = value if keep_queries else value.mean(axis=axis, keepdims=True)
    return out
