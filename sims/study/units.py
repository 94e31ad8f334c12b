"""Units of a simulation: the named samplers of an experiment.

The driver supplies them with keys, batches, devices, checkpoints, resumption and stopping.
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
    """A sampler defined by the experiment.

    Attributes:
        sampler: the sampler.
        coordinates: coordinates of the point: name to a scalar or a label.
        replicates: replicates per batch; None uses the file's.
        stream: numbers folded into the seed, so that units have separate draws; units with equal
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
        """Batches of the unit; the checkpoint keeps unfinished ones."""
        options = settings.sampling
        if self.replicates is not None:
            options["replicates_per_batch"] = self.replicates
        options |= {"stream": self.stream, "checkpoint": checkpoint, "progress": progress}
        return run(self.sampler, settings.seed, **options)


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
    """Units of an experiment, and the files that keep them during its simulation.

    Attributes:
        experiment: the experiment.
        units: units by the names of their points.
        output: file to which all are written at the end.
        progress: show progress on stderr.
    """

    experiment: Experiment
    units: Mapping[str, SampledUnit | DrawnUnit]
    output: Path
    progress: bool = False

    @cached_property
    def source_digest(self) -> str:
        """Digest of the code and settings that determine a point."""
        settings = self.experiment.simulation.model_dump()
        return digest(code("simulate", self.experiment.folder), settings)

    @property
    def theory(self) -> Path:
        """Path of the theory file, next to the simulation file."""
        return self.output.with_name("theory.nc")

    def path(self, name: str) -> Path:
        """Path of the file that keeps a point."""
        unit = self.units[name].identity
        return self.output.parent / f".points/{unit}-simulation-{self.source_digest}.npz"

    def batches_of(self, name: str) -> xr.Dataset:
        """Batches of a unit, computed if they are not saved; resumed after a killed run."""
        unit = self.units[name]
        settings = self.experiment.simulation
        with point_errors(name, unit.coordinates):
            return store.load_or_compute(
                self.path(name), lambda batches: unit.estimate(settings, self.progress, batches)
            )
