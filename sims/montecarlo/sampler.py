"""Samplers, which the driver runs, and the labelled result of their named outputs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import jax
import numpy as np
import xarray as xr
from jaxtyping import PyTree

from sims.base import estimates
from sims.base.errors import InputError, one_of
from sims.montecarlo.draws import Draw

BATCH, REPLICATE = "batch", "replicate"
Arrays = Mapping[str, np.ndarray]
"""Name of an output to its values (batch, …)."""


@dataclass(frozen=True)
class Rounds:
    """A running sampler on some devices, with rounds of ``width`` consecutive batches.

    Attributes:
        begin: starts batches ``first``, …, ``first + width − 1`` without waiting for them, and
            returns a function that waits for all of them.
        attrs: attributes of the result that describe its computation.
    """

    begin: Callable[[int], Callable[[], Arrays]]
    width: int = 1
    attrs: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """A source of iid batches, each an unbiased estimate of the same expectations."""

    def identity(self) -> object:
        """Inputs that determine the numbers, except seed and R."""

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Set up a run of at most that many batches."""

    def label(self, arrays: Arrays) -> xr.Dataset:
        """The result with a leading dimension ``batch``, without MCSE."""

    def unlabel(self, data: xr.Dataset) -> Arrays:
        """The inverse of :meth:`label`, to resume."""

    def precise(self, arrays: Arrays, rel_mcse: float, negligible: float) -> bool:
        """True if the batches so far suffice; see :func:`~sims.montecarlo.driver.run`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionSampler:
    """Base class of samplers made from a user's functions.

    Attributes:
        constants: arrays that all batches share.
        dims: names of the dimensions of each output, except batch and replicate; none if absent.
        coords: coordinates of those dimensions.
        partial: names of outputs that are partly or entirely NaN in some batches.
    """

    constants: PyTree = None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    partial: Collection[str] = ()

    def identity(self) -> object:
        """The functions and their inputs, without settings that change numbers only by rounding."""
        known = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("coords", "partial", "at_once"):
            known.pop(name, None)
        return known

    @property
    def stacked(self) -> bool:
        """True if the outputs of a batch keep its replicates."""
        return bool(getattr(self, "reduce", "mean") == "stack")

    def _dims(self, name: str) -> tuple[str, ...]:
        names = self.dims.get(name, ())
        lead = (BATCH, REPLICATE) if self.stacked else (BATCH,)
        return (*lead, *((names,) if isinstance(names, str) else names))

    def label(self, arrays: Arrays) -> xr.Dataset:
        """The outputs under their dimensions and coordinates.

        Raises:
            InputError: an output has a wrong number of dimension names, or dimensions that share
                a name differ in length.
        """
        for name in {*self.dims} - {*arrays}:
            raise InputError("dims", name, "an output: " + one_of(arrays, name))
        variables = {}
        for name, values in arrays.items():
            dims = self._dims(name)
            if values.ndim != len(dims):
                allowed = f"a name for each dimension of shape {values.shape}"
                raise InputError(f"dims.{name}", dims, allowed)
            variables[name] = (dims, values)
        try:
            return xr.Dataset(variables, dict(self.coords))
        except ValueError as error:
            raise InputError("dims and coords", str(error), "lengths that agree") from None

    def unlabel(self, data: xr.Dataset) -> Arrays:
        """The outputs of a labelled result, in the order of their dimensions."""
        errors = {f"{name}_mcse" for name in data.data_vars}
        arrays = {}
        for name, values in data.drop_vars(errors, errors="ignore").data_vars.items():
            arrays[str(name)] = values.transpose(*self._dims(str(name))).values
        return arrays

    def precise(self, arrays: Arrays, rel_mcse: float, negligible: float) -> bool:
        """True if every entry of every output has mcse ≤ rel_mcse·|mean|, or is negligible.

        Negligible: |mean| + 2·mcse ≤ negligible times the output's largest |mean|. Missing
        entries are ignored; an output with values that are not finite is not precise.
        """
        for values in arrays.values():
            if estimates.not_finite(values):
                return False
            means = values.mean(axis=1) if self.stacked else values
            mean = np.abs(means.mean(axis=0))
            error = estimates.mcse(means)
            largest = np.fmax.reduce(mean, axis=None)
            if np.any((error > rel_mcse * mean) & (mean + 2 * error > negligible * largest)):
                return False
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplicateSampler(FunctionSampler):
    """Base class of samplers whose function computes one replicate.

    Attributes:
        per_batch: ``(draw) -> batch``, arrays drawn on the host that the replicates of a batch
            share: targets, queries, a scrambled Sobol set.
        rows: whether leaves of ``batch`` have a leading axis R, of which replicate r gets row r.
        reduce: reduction of replicates to a batch: "mean", "stack" (keep them, in a dimension
            ``replicate``), or a function.
    """

    per_batch: Callable[[Draw], PyTree] | None = None
    rows: bool = False
    reduce: Any = "mean"

    def __post_init__(self) -> None:
        if isinstance(self.reduce, str) and self.reduce not in ("mean", "stack"):
            raise InputError("reduce", self.reduce, "'mean', 'stack' or a function")

    def of_batch(self, draw: Draw) -> PyTree:
        """Arrays that the replicates of a batch share; None without ``per_batch``.

        Raises:
            InputError: ``rows`` is set, and a leaf has no leading axis R.
        """
        batch = None if self.per_batch is None else self.per_batch(draw)
        for leaf in jax.tree.leaves(batch) if self.rows else ():
            if np.shape(leaf)[:1] != (draw.replicates,):
                allowed = f"leaves of per_batch that lead with R = {draw.replicates}"
                raise InputError("rows", f"shape {np.shape(leaf)}", allowed)
        return batch


def with_mcse(data: xr.Dataset) -> xr.Dataset:
    """The result with ``<name>_mcse`` for every variable that has a batch dimension.

    For a variable that keeps its replicates, it is the error of the mean over replicates, too.
    """
    variables = {name: data.variables[name] for name in data.data_vars}
    errors = {}
    for name, values in variables.items():
        if BATCH in values.dims:
            means = values.mean(REPLICATE) if REPLICATE in values.dims else values
            means = means.transpose(BATCH, ...)
            errors[f"{name}_mcse"] = xr.Variable(means.dims[1:], estimates.mcse(means.values))
    # Built at once: ``assign`` copies, aligns and merges, which a small problem feels.
    return xr.Dataset(variables | errors, data.coords, data.attrs)
