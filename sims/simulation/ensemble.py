"""The heads' errors as a sampler of the Monte Carlo driver, over groups of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array
from numpy.typing import ArrayLike

from sims import terms
from sims.checks import on_device
from sims.montecarlo import Draws, Replicates, Rounds
from sims.problem import Heads, Kernel, Task
from sims.simulation.draws import centred
from sims.simulation.moments import batch_estimates
from sims.simulation.native import usable
from sims.simulation.plan import MEMORY, Shape, make_plan
from sims.simulation.replicate import Settings, Shared, pilot, replicate
from sims.simulation.result import batch_arrays, build, reached, unseen
from sims.simulation.whole import over_slots, weighed


@dataclass(frozen=True, eq=False)
class EnsembleSampler:
    """Batches of every head's errors at every query; attributes as in :func:`~.engine.estimate`."""

    task: Task
    heads: Heads
    n: int
    queries: np.ndarray
    precision: str = "float32"
    control_variate: bool = False
    raw_labels: bool = True
    keep_queries: bool = True
    weights: ArrayLike | None = None
    memory_budget: int = MEMORY

    def identity(self) -> object:
        """Problem and choices; the ensemble's weights enter after sampling, memory only rounds."""
        return (
            self.task,
            self.heads,
            self.n,
            self.queries,
            self.precision,
            self.control_variate,
            self.raw_labels,
            self.keep_queries,
        )

    def start(self, draws: Draws, devices: Sequence[jax.Device], batches: int) -> "Groups":
        """Plan the work, and draw the pilot if there is a control variate."""
        (task, constant), heads, count = centred(self.task), self.heads, len(self.queries)
        shape = Shape.of(task, heads, self.n, count, self.precision)
        one = replicate if isinstance(heads.rule, Kernel) else weighed
        if (slots := over_slots(heads, self.n)) is not None:
            heads, gates = slots
            one = partial(weighed, gates=gates)
        platform = devices[0].platform
        work = float(self.n) * count * heads.count * draws.replicates * batches
        native = usable(heads.rule, platform, work)
        plan = make_plan(
            shape,
            draws.replicates,
            len(devices),
            budget=self.memory_budget,
            platform=platform,
            native=native,
        )
        blocks = (plan.key_block, plan.query_block)
        settings = Settings(self.n, *blocks, self.precision, self.raw_labels, native)

        def shared(queries: np.ndarray, key: Array) -> Shared:
            known = Shared(task, heads, on_device(queries), constant=constant)
            if not self.control_variate:
                return known
            return known._replace(control=pilot(settings, key, known))

        groups = np.pad(self.queries, [(0, -count % plan.group), (0, 0)])
        rounds = [
            Replicates(
                partial(one, settings),
                prepare=partial(shared, group),
                reduce=batch_estimates(self.raw_labels),
                at_once=plan.at_once,
            ).start(draws, devices, batches)
            for group in groups.reshape(-1, plan.group, heads.dimension)
        ]
        sums = "C++" if native else "XLA"
        attrs = {"n": self.n, "precision": self.precision, "kernel_sums": sums}
        return Groups(rounds, count, self.keep_queries, attrs)

    def label(self, arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The terms, without MCSE."""
        return build(arrays, keep_queries=self.keep_queries, weights=self.weights)

    def unlabel(self, data: xr.Dataset) -> dict[str, np.ndarray]:
        """The arrays of a result."""
        return batch_arrays(data)

    def precise(
        self, batches: Mapping[str, Sequence[np.ndarray]], rel_mcse: float, negligible: float
    ) -> bool:
        """Whether every scalar term is known so well, and something was seen everywhere.

        See :func:`~.result.reached` and :func:`~.result.unseen`.
        """
        names = ("bias", *terms.PAIRS, "empty_rate")
        data = self.label({name: np.stack(batches[name]) for name in names})
        return not unseen(data) and reached(data, rel_mcse, negligible)


class Groups:
    """The same batches for one group of queries after another."""

    def __init__(
        self, rounds: Sequence[Rounds], count: int, keep_queries: bool, attrs: Mapping[str, Any]
    ) -> None:
        self.rounds, self.count, self.keep_queries = rounds, count, keep_queries
        self.width, self.attrs = rounds[0].width, attrs

    def dispatch(self, first: int) -> list[Any]:
        """Start the batches for every group."""
        return [each.dispatch(first) for each in self.rounds]

    def gather(self, handle: list[Any]) -> dict[str, np.ndarray]:
        """Wait for the batches; per query, or averaged over queries (as one query)."""
        parts = [each.gather(own) for each, own in zip(self.rounds, handle, strict=True)]
        out = {}
        for name in parts[0]:
            value = np.concatenate([part[name] for part in parts], axis=1)[:, : self.count]
            out[name] = value if self.keep_queries else value.mean(axis=1, keepdims=True)
        return out
