"""Samplers in plain Python: exact solvers, SciPy, scikit-learn, anything that JAX cannot trace."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import PyTree

from sims.errors import InputError
from sims.identity import known_by_name
from sims.montecarlo.draws import Draw
from sims.montecarlo.sampler import OfFunctions, OfReplicates, Rounds

Reduction = Callable[[Mapping[str, np.ndarray]], Mapping[str, Any]]
"""``(stacked outputs) -> {name: array}``, from the replicates of a batch to its estimates."""


@dataclass(frozen=True, eq=False)
class HostReplicates(OfReplicates):
    """A sampler whose replicate is a plain Python function.

    Attributes:
        replicate: ``(draw, shared, batch) -> {name: array}``, one replicate; its random numbers
            come from ``draw.rng()`` or ``draw.key``.
        constants, per_batch, rows, dims, coords: as in :class:`~sims.montecarlo.Replicates`.
        reduce: "mean" over replicates, "stack", or a function of the stacked outputs, each with a
            leading dimension R, to the batch's unbiased estimates (such as sample covariances).
        n_jobs: processes to spread the replicates of a batch over, as in joblib; −1 is one a core.

    Raises:
        InputError: the attributes do not fit together.
    """

    replicate: Callable[[Draw, PyTree, PyTree], Mapping[str, Any]]
    _: KW_ONLY
    reduce: Literal["mean", "stack"] | Reduction = "mean"
    n_jobs: int = 1

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Nothing is computed ahead."""

        def batch(number: int) -> dict[str, np.ndarray]:
            own = self.of_batch(draws.draw(number))
            calls = [
                (
                    draws.draw(number, r),
                    self.constants,
                    jax.tree.map(lambda leaf, r=r: leaf[r], own) if self.rows else own,
                )
                for r in range(draws.replicates)
            ]
            values = _each(self.replicate, calls, self.n_jobs)
            each = [_arrays("replicate", value) for value in values]
            kept = {name: np.stack([value[name] for value in each]) for name in each[0]}
            if callable(self.reduce):
                return _arrays("reduce", self.reduce(kept))
            return kept if self.stacked else {k: v.mean(axis=0) for k, v in kept.items()}

        return _one_by_one(batch)


@dataclass(frozen=True, eq=False)
class HostBatches(OfFunctions):
    """A sampler of whole batches, by a function that is vectorised over replicates itself.

    Attributes:
        batch: ``(draw, R, shared) -> {name: array}``, the batch's estimates; its random numbers
            come from ``draw.rng()`` or ``draw.key``.
        constants, dims, coords: as in :class:`HostReplicates`.
    """

    batch: Callable[[Draw, int, PyTree], Mapping[str, Any]]

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Nothing is computed ahead."""

        def batch(number: int) -> dict[str, np.ndarray]:
            return _arrays(
                "batch", self.batch(draws.draw(number), draws.replicates, self.constants)
            )

        return _one_by_one(batch)


def _one_by_one(batch: Callable[[int], dict[str, np.ndarray]]) -> Rounds:
    """Batches of a plain function, each computed when it is waited for, on JAX's default device."""

    def begin(number: int) -> Callable[[], dict[str, np.ndarray]]:
        return lambda: {name: value[None] for name, value in batch(number).items()}

    return Rounds(begin, attrs={"device_count": 1})


def _arrays(field: str, outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    if not isinstance(outputs, Mapping):
        raise InputError(field, type(outputs).__name__, "a function that returns a dict")
    return {name: np.asarray(value) for name, value in outputs.items()}


def _each(
    function: Callable[..., Mapping[str, Any]], calls: Sequence[tuple[Any, ...]], jobs: int
) -> list[Mapping[str, Any]]:
    """The function of each call, in so many processes."""
    if jobs == 1:
        return [function(*call) for call in calls]
    import cloudpickle
    from joblib import Parallel, delayed

    plain = function
    while isinstance(plain, functools.partial):
        plain = plain.func
    name = getattr(plain, "__module__", type(plain).__module__)
    if not known_by_name(getattr(sys.modules.get(name), "__file__", None)):
        # Else processes would be sent its name, and import it: an experiment's modules, made from
        # the files of its folder, are found in this process alone.
        cloudpickle.register_pickle_by_value(sys.modules[name.partition(".")[0]])
    return list(Parallel(jobs)(delayed(function)(*call) for call in calls))
