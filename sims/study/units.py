"""Units of work: what is estimated at once, by name, and kept until all of a result is there.

A unit of an experiment is a problem of its law, one of a sweep a group of points. An experiment
names its units as samplers for the driver, which gives them keys, batches, devices, checkpoints,
resumption and stopping.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import xarray as xr

from sims.base import store
from sims.base.identity import digest
from sims.montecarlo import HostBatches, HostReplicates, Sampler, run
from sims.study.code import code
from sims.study.experiment import Experiment
from sims.study.grid import point_errors
from sims.study.schema import SimulationSpec
from sims.study.stacking import Scalar


class Unit(Protocol):
    """What is estimated at once, and kept when it is done."""

    @property
    def identity(self) -> str:
        """What names its file; the digest of code and settings does the rest."""

    @property
    def coordinates(self) -> Mapping[str, Scalar]:
        """Coordinates of the point: name to a scalar or a label."""

    @property
    def work(self) -> float:
        """Its cost, compared with that of other units."""

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """Its result; the checkpoint keeps unfinished batches."""


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
    work: ClassVar[float] = 1.0

    @property
    def identity(self) -> str:
        """Digest of sampler, replicates and stream."""
        return digest(self.sampler.identity(), self.replicates, self.stream)

    @property
    def on_one_core(self) -> bool:
        """True for a sampler of plain Python."""
        return isinstance(self.sampler, (HostBatches, HostReplicates))

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """The unit's batches; the checkpoint keeps unfinished ones."""
        options = settings.sampling
        if self.replicates is not None:
            options["replicates_per_batch"] = self.replicates
        options |= {"stream": self.stream, "checkpoint": checkpoint, "progress": progress}
        return run(self.sampler, settings.seed, **options)


DRAWN = "drawn"
"""Attribute of a unit's batches: digest of the problem that was drawn for them."""


@dataclass(frozen=True)
class DrawnUnit:
    """A unit whose problem is drawn where it is simulated, since drawing takes time.

    Attributes:
        make: the unit, and the digest of its problem.
        identity: digest of what the problem is drawn by.
        coordinates: of the point.
        on_one_core: its sampler is one of plain Python.
    """

    make: Callable[[], tuple[SampledUnit, str]]
    identity: str
    coordinates: Mapping[str, Scalar]
    on_one_core: bool = True
    work: ClassVar[float] = 1.0

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """The unit's batches; the checkpoint keeps unfinished ones."""
        unit, problem = self.make()
        return unit.estimate(settings, progress, checkpoint).assign_attrs({DRAWN: problem})


@dataclass(frozen=True)
class Simulation:
    """Units of work, each kept in a file when it is done: a run that was stopped goes on.

    Attributes:
        units: by name.
        settings: of the simulation.
        folder: where the files lie.
        source_digest: of the code and settings that make a unit, in the names of the files.
        progress: whether to show progress on stderr.
    """

    units: Mapping[str, Unit]
    settings: SimulationSpec
    folder: Path
    source_digest: str
    progress: bool = False

    def part(self, index: int, count: int) -> list[str]:
        """Names of the units of the i-th of N parts, from 1.

        Parts follow one another and are about equal in work: units that share a program lie side by
        side, so that a part compiles few.
        """
        work = np.array([unit.work for unit in self.units.values()])
        middle = (np.cumsum(work) - work / 2) / work.sum()
        return list(compress(self.units, (middle * count).astype(int) + 1 == index))

    def path(self, name: str) -> Path:
        """The file that keeps a unit."""
        return self.folder / f"{self.units[name].identity}-{self.source_digest}.npz"

    def batches_of(self, name: str) -> xr.Dataset:
        """The result of a unit, computed if it is not kept, with what a killed run had."""
        unit = self.units[name]
        with point_errors(name, unit.coordinates):
            return store.load_or_compute(
                self.path(name),
                lambda checkpoint: unit.estimate(self.settings, self.progress, checkpoint),
            )


def experiment_simulation(
    experiment: Experiment, units: Mapping[str, Unit], output: Path, progress: bool = False
) -> Simulation:
    """Units of an experiment, kept in ``.points`` beside the file that all are written to."""
    settings = experiment.simulation
    source_digest = digest(code("simulate", experiment.folder), settings.model_dump())
    return Simulation(units, settings, output.parent / ".points", source_digest, progress)
