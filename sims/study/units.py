"""Units of work: named estimates that are kept until a result is complete.

A unit of an experiment is a named sampler, usually of one problem; a unit of a sweep is a group of
points. The driver supplies samplers with keys, batches, devices, checkpoints, resumption and
stopping.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xarray as xr

from sims.base import store
from sims.base.errors import InputError
from sims.base.identity import digest
from sims.base.progress import Bar
from sims.montecarlo import HostBatches, HostReplicates, Sampler, run
from sims.study.code import code
from sims.study.grid import point_errors
from sims.study.provenance import ORIGIN, origin
from sims.study.schema import SimulationSpec
from sims.study.stacking import Scalar

if TYPE_CHECKING:
    from sims.study.running import Run


class Unit(Protocol):
    """An estimate that is computed at once and kept when it is finished."""

    @property
    def identity(self) -> str:
        """Name of its file, completed by the digest of code and settings."""

    @property
    def coordinates(self) -> Mapping[str, Scalar]:
        """Coordinates of the point: name to a scalar or a label."""

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Result of the unit; the checkpoint keeps unfinished batches."""


@dataclass(frozen=True)
class SampledUnit:
    """A sampler defined by the experiment.

    Attributes:
        sampler: the sampler.
        coordinates: coordinates of the point: name to a scalar or a label.
        replicates: replicates per batch; None uses the file's.
        stream: numbers folded into the seed, so that units have separate draws; units with equal
            streams share them.
        alongside: further estimates of the point, with dimensions of their own; None has none.
        large: whether its sampler is plain Python that keeps all cores busy with large products.
    """

    sampler: Sampler
    coordinates: Mapping[str, Scalar] = field(default_factory=dict)
    replicates: int | None = None
    stream: tuple[int, ...] = ()
    alongside: Callable[[], xr.Dataset] | None = None
    large: bool = False

    @property
    def identity(self) -> str:
        """Digest of sampler, replicates and stream."""
        return digest(self.sampler.identity(), self.replicates, self.stream)

    @property
    def on_one_core(self) -> bool:
        """True for a sampler of plain Python, unless it is large."""
        return isinstance(self.sampler, (HostBatches, HostReplicates)) and not self.large

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Batches of the unit; the checkpoint keeps unfinished ones."""
        options = settings.sampling
        if self.replicates is not None:
            options["replicates_per_batch"] = self.replicates
        options |= {"stream": self.stream, "checkpoint": checkpoint, "progress": progress}
        estimates = run(self.sampler, settings.seed, **options)
        if self.alongside is None:
            return estimates
        return estimates.merge(self.alongside(), combine_attrs="override")


DRAWN = "drawn"
"""Attribute of a unit's batches: digest of their drawn problem."""


@dataclass(frozen=True)
class DrawnUnit:
    """A unit whose problem is drawn in the process that simulates it, since drawing takes time.

    Attributes:
        make: function that returns the unit and the digest of its problem.
        identity: digest of the inputs of the draw.
        coordinates: coordinates of the point.
        on_one_core: true if its sampler is plain Python.
    """

    make: Callable[[], tuple[SampledUnit, str]]
    identity: str
    coordinates: Mapping[str, Scalar]
    on_one_core: bool = True

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Batches of the unit; the checkpoint keeps unfinished ones."""
        unit, problem = self.make()
        return unit.estimate(settings, progress, checkpoint).assign_attrs({DRAWN: problem})


@dataclass(frozen=True)
class Simulation:
    """Units of work, and the folder that keeps the finished ones.

    Attributes:
        units: units by name.
        settings: settings of the simulation.
        folder: folder of the files.
        source_digest: digest of the code and settings that determine a unit, in the file names.
        progress: show progress on stderr.
    """

    units: Mapping[str, Unit]
    settings: SimulationSpec
    folder: Path
    source_digest: str
    progress: bool = False

    def part(self, index: int, count: int) -> list[str]:
        """Names of the units of the i-th of N parts, from 1.

        Parts are contiguous and about equal in work, which is the same for units that do not say:
        units that share a program are adjacent, so that a part compiles few programs.
        """
        work = np.array([getattr(unit, "work", 1.0) for unit in self.units.values()])
        middle = (np.cumsum(work) - work / 2) / work.sum()
        return list(compress(self.units, (middle * count).astype(int) + 1 == index))

    def path(self, name: str) -> Path:
        """Path of the file that keeps a unit."""
        return self.folder / f"{self.units[name].identity}-{self.source_digest}.npz"

    def batches_of(self, name: str) -> xr.Dataset:
        """Result of a unit, computed if it is not saved; resumed after a killed run."""
        unit = self.units[name]
        with point_errors(name, unit.coordinates), Bar(False) as bar:
            place = 1 + list(self.units).index(name)
            bar.add_task("unit", total=len(self.units), completed=place)
            return store.load_or_compute(
                self.path(name),
                lambda checkpoint: unit.estimate(
                    self.settings, self.progress, checkpoint
                ).assign_attrs({ORIGIN: json.dumps(origin(), sort_keys=True)}),
            )


def experiment_simulation(
    run: "Run", units: Mapping[str, Unit], output: Path, progress: bool = False
) -> Simulation:
    """Units of an experiment, kept in ``.points`` next to the output file."""
    settings = run.simulation
    source_digest = digest(
        code("simulate", run.study.declared, output.parent), settings.model_dump()
    )
    return Simulation(units, settings, output.parent / ".points", source_digest, progress)


def units_of(run: "Run") -> "Mapping[str, SampledUnit | DrawnUnit]":
    """Units of a run's study by name.

    Raises:
        InputError: there are none, or the study's code cannot use its settings.
    """
    with run.code_errors():
        units = run.study.units()
    if not units:
        raise InputError(run.study.declared.location, "no units", "one or more")
    return units
