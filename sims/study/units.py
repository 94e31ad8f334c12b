"""Units of a simulation: what an experiment estimates, by name.

A study names them as samplers for the driver, which gives them keys, batches, devices, checkpoints,
resumption and stopping.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import xarray as xr

from sims.base import store
from sims.base.identity import digest
from sims.montecarlo import HostBatches, HostReplicates, Sampler, run
from sims.study.code import code
from sims.study.experiment import Experiment
from sims.study.grid import point_errors
from sims.study.schema import SimulationSpec
from sims.study.stacking import Scalar


@dataclass(frozen=True)
class SampledUnit:
    """A sampler of the experiment's own.

    Attributes:
        sampler: what one batch is.
        coordinates: coordinates of the point: name to a scalar or a label.
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
        coordinates: coordinates of the point.
        on_one_core: its sampler is one of plain Python.
    """

    make: Callable[[], tuple[SampledUnit, str]]
    identity: str
    coordinates: Mapping[str, Scalar]
    on_one_core: bool = True

    def estimate(
        self, settings: SimulationSpec, progress: bool = False, checkpoint: Path | None = None
    ) -> xr.Dataset:
        """The unit's batches; the checkpoint keeps unfinished ones."""
        unit, problem = self.make()
        return unit.estimate(settings, progress, checkpoint).assign_attrs({DRAWN: problem})


@dataclass(frozen=True)
class Simulation:
    """The units of an experiment, and the files that keep them while it is simulated.

    Attributes:
        experiment: which one.
        units: by the names of their points.
        output: the file that all are written to at the end.
        progress: whether to show progress on stderr.
    """

    experiment: Experiment
    units: Mapping[str, SampledUnit | DrawnUnit]
    output: Path
    progress: bool = False

    @cached_property
    def source_digest(self) -> str:
        """Digest of the code and settings that make a point."""
        settings = self.experiment.simulation.model_dump()
        return digest(code("simulate", self.experiment.folder), settings)

    @property
    def theory(self) -> Path:
        """The file of theory, next to that of the simulation."""
        return self.output.with_name("theory.nc")

    def path(self, name: str) -> Path:
        """The file that keeps a point."""
        unit = self.units[name].identity
        return self.output.parent / f".points/{unit}-simulation-{self.source_digest}.npz"

    def batches_of(self, name: str) -> xr.Dataset:
        """The batches of a unit, computed if they are not kept, with what a killed run had."""
        unit = self.units[name]
        settings = self.experiment.simulation
        with point_errors(name, unit.coordinates):
            return store.load_or_compute(
                self.path(name), lambda batches: unit.estimate(settings, self.progress, batches)
            )
