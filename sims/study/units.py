"""Units of a simulation: what an experiment estimates at each of its points.

Without a ``simulate.py`` the units are the points of the grid, each the Nadaraya–Watson ensemble of
its problem. An experiment off that road names its own, as samplers for the driver; it gets keys,
batches, devices, checkpoints, resumption and stopping from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import xarray as xr

from sims import store
from sims.errors import InputError
from sims.identity import digest
from sims.montecarlo import HostBatches, HostReplicates, Sampler, run
from sims.study.code import code
from sims.study.experiment import Experiment, Point
from sims.study.planning import named
from sims.study.roads import estimate_terms
from sims.study.schema import SimulationSpec
from sims.study.stacking import Scalar


@dataclass(frozen=True)
class GridUnit:
    """The Nadaraya–Watson ensemble of a grid point."""

    point: Point

    @property
    def coordinates(self) -> Mapping[str, Scalar]:
        """Those of the point."""
        return self.point.coordinates

    @property
    def identity(self) -> str:
        """That of the problem."""
        return self.point.digest

    @property
    def on_one_core(self) -> bool:
        """JAX takes all cores."""
        return False

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Its batches; the checkpoint keeps unfinished ones."""
        return estimate_terms(self.point.spec.build(), settings, None, progress, checkpoint)


@dataclass(frozen=True)
class SampledUnit:
    """A sampler of the experiment's own.

    Attributes:
        sampler: what one batch is.
        coordinates: of the point: name to a scalar or a label.
        replicates: replicates a batch; None takes those of the file.
        stream: numbers folded into the seed, so that units have draws of their own; units of equal
            streams share them.
    """

    sampler: Sampler
    coordinates: Mapping[str, Scalar] = field(default_factory=dict)
    replicates: int | None = None
    stream: tuple[int, ...] = ()

    @property
    def identity(self) -> str:
        """That of the sampler."""
        return digest(self.sampler.identity(), self.replicates, self.stream)

    @property
    def on_one_core(self) -> bool:
        """Plain Python."""
        return isinstance(self.sampler, (HostBatches, HostReplicates))

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Its batches, as of :class:`GridUnit`."""
        limit = settings.max_batches or settings.batches
        return run(
            self.sampler,
            settings.seed,
            replicates_per_batch=self.replicates or settings.replicates_per_batch,
            batches=settings.batches,
            rel_mcse=settings.rel_mcse,
            max_batches=None if settings.rel_mcse is None else limit,
            negligible=settings.negligible,
            stream=self.stream,
            checkpoint=checkpoint,
            progress=progress,
        )


Unit = GridUnit | SampledUnit
"""One point of an experiment, to be simulated."""


def simulated(
    unit: Unit, settings: SimulationSpec, path: Path, progress: bool = False, **attrs: str
) -> xr.Dataset:
    """The batches of a unit, computed if they are not kept; what a killed run had of them is used.

    Args:
        unit: which one.
        settings: how much to simulate.
        path: of the finished unit, as :func:`~sims.store.kept` has it.
        progress: whether to show progress on stderr.
        attrs: attributes of what is computed.
    """
    batches = path.with_suffix(".part.npz")
    return store.kept(path, lambda: unit.estimate(settings, progress, batches).assign_attrs(attrs))


def grid_units(experiment: Experiment) -> dict[str, Unit]:
    """The units of the grid's points, by name."""
    return {point.name: GridUnit(point) for point in experiment.points}


def units_of(experiment: Experiment) -> dict[str, Unit]:
    """All units of an experiment: its own, if it has a ``simulate.py``, or those of its grid.

    Raises:
        InputError: it has neither.
    """
    module = experiment.module("simulate")
    with experiment.own_code():
        units: dict[str, Unit] = (module.units if module else grid_units)(experiment)
    if not units:
        allowed = "a base problem, or a simulate.py with units(experiment) beside experiment.yaml"
        raise InputError("problem", None, allowed)
    return units


@dataclass(frozen=True)
class Simulation:
    """The units of an experiment, and the files that keep them while it is simulated.

    Attributes:
        experiment: which one.
        output: the file that all are written to at the end.
        progress: whether to show progress on stderr.
    """

    experiment: Experiment
    output: Path
    progress: bool = False

    @cached_property
    def units(self) -> Mapping[str, Unit]:
        """By the names of their points."""
        return units_of(self.experiment)

    @cached_property
    def made(self) -> str:
        """Digest of the code and settings that make a point."""
        settings = self.experiment.simulation.model_dump()
        return digest(code("simulate", self.experiment.folder), settings)

    def path(self, name: str) -> Path:
        """The file that keeps a point."""
        unit = self.units[name].identity
        return self.output.parent / f".points/{unit}-simulation-{self.made}.npz"

    def begun(self, name: str) -> xr.Dataset:
        """A point, and the contract of the time when it was begun."""
        unit, settings = self.units[name], self.experiment.simulation
        with named(name, unit.coordinates):
            contract = self.experiment.contract
            return simulated(unit, settings, self.path(name), self.progress, contract=contract)
