"""Samplers in plain Python: exact solvers, SciPy, scikit-learn, anything that JAX cannot trace."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import PyTree

from sims.base.errors import InputError
from sims.montecarlo.draws import Draw
from sims.montecarlo.history import stacked
from sims.montecarlo.sampler import FunctionSampler, ReplicateSampler, Rounds

Reduction = Callable[[Mapping[str, np.ndarray]], Mapping[str, Any]]
"""Function ``(stacked outputs) -> {name: array}`` from a batch's replicates to its estimates."""


@dataclass(frozen=True, eq=False)
class HostReplicates(ReplicateSampler):
    """A sampler whose replicate is a plain Python function.

    Attributes:
        replicate: ``(draw, shared, batch) -> {name: array}``, one replicate; its random numbers
            come from ``draw.rng()`` or ``draw.key``.
        constants, per_batch, rows, dims, coords: as in :class:`~sims.montecarlo.Replicates`.
        reduce: "mean" over replicates, "stack", or a function of the stacked outputs, each with a
            leading dimension R, to the batch's unbiased estimates (such as sample covariances).

    Raises:
        InputError: the attributes do not fit together.
    """

    replicate: Callable[[Draw, PyTree, PyTree], Mapping[str, Any]]
    _: KW_ONLY
    reduce: Literal["mean", "stack"] | Reduction = "mean"

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Rounds of one batch, each computed on demand."""

        def batch(number: int) -> dict[str, np.ndarray]:
            shared = self.of_batch(draws.draw(number))
            outputs = []
            for r in range(draws.replicates):
                row = jax.tree.map(operator.itemgetter(r), shared) if self.rows else shared
                value = self.replicate(draws.draw(number, r), self.constants, row)
                outputs.append(_arrays("replicate", value))
            together = stacked(outputs)
            if callable(self.reduce):
                return _arrays("reduce", self.reduce(together))
            if self.stacked:
                return together
            return {name: values.mean(axis=0) for name, values in together.items()}

        return _one_by_one(batch)


@dataclass(frozen=True, eq=False)
class HostBatches(FunctionSampler):
    """A sampler whose function returns the estimates of a batch, vectorised over replicates.

    Attributes:
        batch: ``(draw, R, shared) -> {name: array}``, the batch's estimates; its random numbers
            come from ``draw.rng()`` or ``draw.key``.
        constants, dims, coords: as in :class:`HostReplicates`.
    """

    batch: Callable[[Draw, int, PyTree], Mapping[str, Any]]

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Rounds of one batch, each computed on demand."""

        def batch(number: int) -> dict[str, np.ndarray]:
            values = self.batch(draws.draw(number), draws.replicates, self.constants)
            return _arrays("batch", values)

        return _one_by_one(batch)


def _one_by_one(batch: Callable[[int], dict[str, np.ndarray]]) -> Rounds:
    """Batches of a plain function, each computed on demand on JAX's default device."""

    def begin(number: int) -> Callable[[], dict[str, np.ndarray]]:
        return lambda: {name: value[None] for name, value in batch(number).items()}

    return Rounds(begin, attrs={"device_count": 1})


def _arrays(field: str, outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    if not isinstance(outputs, Mapping):
        raise InputError(field, type(outputs).__name__, "a function that returns a dict")
    return {name: np.asarray(value) for name, value in outputs.items()}
