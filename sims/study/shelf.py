"""Where the unfinished and the finished points of a simulation lie: ``.points`` beside its file.

A name says whose it is (experiment, fidelity, offset of the seeds, rule of allocation) and under
which code and settings it was made. So runs that share a folder leave one another's files alone,
and what a run made under earlier code or settings is removed once that run is finished.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sims.identity import digest
from sims.montecarlo import store
from sims.montecarlo.checkpoint import Checkpoint
from sims.study import code
from sims.study.contract import contract
from sims.study.experiment import Experiment
from sims.study.units import Unit


@dataclass(frozen=True)
class Shelf:
    """The points of one simulation.

    Attributes:
        folder: where they lie.
        owner: whose they are.
        made: digest of the code and settings.
        contract: what is fixed of an experiment as its batches are drawn; see
            :mod:`sims.study.contract`.
    """

    folder: Path
    owner: str
    made: str
    contract: str = ""

    @classmethod
    def of(cls, experiment: Experiment, output: Path) -> "Shelf":
        """That of an experiment's simulation, beside the file that it is written to."""
        # How far sampling may go on is no part of a point's identity: its first batches are the
        # same.
        adaptive = experiment.simulation.decide != "no"
        left_out = {"decide", "max_batches"} if adaptive else None
        settings = experiment.simulation.model_dump(exclude=left_out)
        made = digest(code.code("simulate", experiment.folder), settings)
        own = (experiment.seed_offset, experiment.redrawn, experiment.decide)
        name = digest(experiment.identity, *own)[:8]
        return cls(output.parent / ".points", name, made, contract(experiment))

    def finished(self, unit: Unit) -> Path:
        """The file of a point with the batches that every point gets."""
        return self.folder / f"{unit.identity}-simulation-{self.owner}-{self.made}.npz"

    def longer(self, unit: Unit) -> Path:
        """The file of a point that claims made to go on."""
        return self.folder / f"{unit.identity}-more-simulation-{self.owner}-{self.made}.npz"

    def batches(self, unit: Unit, part: range | None = None, closed: bool = False) -> Checkpoint:
        """The batches of a point that is not finished."""
        mark = {"contract": self.contract}
        return Checkpoint(self.finished(unit).with_suffix(""), part, closed, mark)

    def tidy(self, units: Iterable[Unit]) -> None:
        """After the run: the batches of its points, and its points of earlier code or settings."""
        for unit in units:
            self.batches(unit).clear()
        store.prune(self.folder, "simulation", self.owner, self.made)
