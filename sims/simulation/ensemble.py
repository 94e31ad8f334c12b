"""The heads' errors as a sampler of the Monte Carlo driver, over groups of queries."""

from collections.abc import Callable, Mapping, Sequence
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
from sims.simulation.method import Method
from sims.simulation.moments import batch_estimates
from sims.simulation.native import native_rule_sums, native_sums, usable
from sims.simulation.plan import Shape, Tuning, make_plan
from sims.simulation.replicate import Settings, Shared, pilot, replicate
from sims.simulation.result import batch_arrays, build, reached, unseen
from sims.simulation.rounding import centred
from sims.simulation.slots import over_slots, slotted
from sims.simulation.sums import streamed_sums
from sims.simulation.whole import weighed


@dataclass(frozen=True, eq=False)
class EnsembleSampler:
    """Batches of every head's errors at every query; attributes as in :func:`~.engine.estimate`."""

    task: Task
    heads: Heads
    n: int
    queries: np.ndarray
    method: Method
    weights: ArrayLike | None
    tuning: Tuning

    def identity(self) -> object:
        """Problem and choices; the ensemble's weights enter after sampling, tuning only rounds."""
        return (self.task, self.heads, self.n, self.queries, self.method)

    def start(self, draws: Draws, devices: Sequence[jax.Device], batches: int) -> "Groups":
        """Plan the work, and draw the pilot if there is a control variate."""
        (task, constant), heads = centred(self.task), self.heads
        platform = devices[0].platform
        whole, one = not isinstance(heads.rule, Kernel), replicate
        if (slots := over_slots(heads, self.n)) is not None:
            heads, gates = slots
            one = partial(slotted, gates)
        elif whole:
            one = weighed
        by_rule = not isinstance(heads.rule, Kernel)
        kernel_sums: Callable[..., Any] | None = self.tuning.kernel_sums
        if kernel_sums is None:
            work = float(self.n) * len(self.queries) * heads.count * draws.replicates * batches
            in_cpp: Callable[..., Any] = native_rule_sums if by_rule else native_sums
            kernel_sums = in_cpp if usable(heads.rule, platform, work) else streamed_sums
        shape = Shape(
            queries=len(self.queries),
            heads=heads.count,
            dimension=heads.dimension,
            width=heads.width,
            terms=task.target.terms,
            n=self.n,
            itemsize=np.dtype(self.method.precision).itemsize,
            whole=whole,
        )
        plan = make_plan(
            shape, draws.replicates, self.tuning, len(devices),
            platform=platform, streamed=kernel_sums is streamed_sums,
        )  # fmt: skip
        method = self.method
        settings = Settings(self.n, plan.blocks, method.precision, method.raw_labels, kernel_sums)

        def shared(queries: np.ndarray, key: Array) -> Shared:
            known = Shared(task, heads, on_device(queries), constant=constant)
            if not method.control_variate:
                return known
            return known._replace(control=pilot(settings, key, known))

        padding = -len(self.queries) % plan.group
        groups = np.pad(self.queries, [(0, padding), (0, 0)])
        rounds = [
            Replicates(
                partial(one, settings),
                prepare=partial(shared, group),
                reduce=batch_estimates(method.raw_labels),
                at_once=plan.at_once,
            ).start(draws, devices, batches)
            for group in groups.reshape(-1, plan.group, heads.dimension)
        ]
        name = getattr(kernel_sums, "func", kernel_sums).__name__
        if by_rule and kernel_sums is streamed_sums:
            name = "none"
        attrs = {"n": self.n, "precision": method.precision, "kernel_sums": name}
        return Groups(rounds, len(self.queries), method.keep_queries, attrs)

    def label(self, arrays: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The terms, without MCSE."""
        return build(arrays, keep_queries=self.method.keep_queries, weights=self.weights)

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
        needed = {name: np.stack(batches[name]) for name in names}
        data = self.label(needed)
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
