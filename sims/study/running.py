"""A run of a study, opened once: fidelity, seed, settings, digests, and a folder of results.

:func:`run` is a complete one of an experiment in one call.
"""

import copy
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sims.base.errors import InputError
from sims.study import code
from sims.study.results import is_current
from sims.study.schema import ExperimentSpec, SimulationSpec
from sims.study.study import Study

if TYPE_CHECKING:
    from sims.judgement.answers import Answer
    from sims.study.results import Results

SEED_STRIDE = 1000
"""Increase of the seed per seed offset: more than the number of batches."""


@dataclass
class Run:
    """A study at one fidelity and seed, with the folder of its results.

    ``Run(study, "smoke").answers()`` simulates, predicts and judges what is not yet there. The
    study of a run is a copy that knows its settings.

    Attributes:
        study: the study.
        fidelity: smoke, standard or paper.
        seed: k ≥ 0, for the same study with other draws.
        folder: folder of the results; None is results/FIDELITY/NAME.

    Raises:
        InputError: the study has no such fidelity.
    """

    study: Study[Any]
    fidelity: str = "standard"
    seed: int = 0
    folder: str | Path | None = None

    def __post_init__(self) -> None:
        self.spec.fidelity_changes(self.fidelity)
        self.study = self.study.opened(self.settings, self.simulation)
        self.home = Path(self.folder or Path("results", self.fidelity, self.name))

    @classmethod
    def load(
        cls,
        experiment: str | Path,
        fidelity: str = "standard",
        seed: int = 0,
        folder: str | Path | None = None,
        allow_code: bool | None = False,
    ) -> "Run":
        """Run of the experiment with the given name or folder; see :meth:`Study.load`."""
        return cls(Study.load(experiment, allow_code, fidelity), fidelity, seed, folder)

    def __reduce__(self) -> Any:
        """Another process loads the code of a folder anew: its modules have no name there."""
        if self.study.folder is None:
            return super().__reduce__()
        where = (self.study.folder, self.fidelity, self.seed, self.folder, self.study.allow_code)
        return (_load_in, (Path.cwd(), *where))

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study.name

    @property
    def identity(self) -> str:
        """Name and fidelity, with which files are sealed."""
        return f"{self.name} at {self.fidelity}"

    @property
    def spec(self) -> ExperimentSpec:
        """Declaration of the study."""
        return self.study.spec

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The study's settings at the fidelity."""
        return self.spec.experiment_settings(self.fidelity)

    @cached_property
    def simulation(self) -> SimulationSpec:
        """Simulation settings at the fidelity; the seed follows from questions and offset."""
        seed = self.study.declared.seed(self.fidelity) + self.seed * SEED_STRIDE
        if seed >= 2**63:
            raise InputError("seed, with its offset", seed, "less than 2**63")
        return self.spec.simulation_settings(self.fidelity).model_copy(update={"seed": seed})

    def changed(self, settings: dict[str, Any], simulation: SimulationSpec) -> "Run":
        """A copy with other settings, such as few problems."""
        other = copy.copy(self)
        vars(other).update(settings=settings, simulation=simulation)
        other.study = self.study.opened(settings, simulation)
        return other

    def digest(self, step: str) -> str:
        """Digest of all that a step depends on, but for its input files."""
        return code.digest(step, self.study.declared, self.fidelity, self.home)

    def simulate(self) -> None:
        """Simulate all problems; finished ones are kept."""
        self._step("simulate", "simulation.nc")

    def predict(self) -> None:
        """Predict all problems by theory."""
        self._step("predict", "theory.nc")

    def answers(self) -> "list[Answer]":
        """Answers to the study's questions, from results that are completed if one is missing.

        Results of a study of this name whose code or law was another count as missing.
        """
        for step, file in (("simulate", "simulation.nc"), ("predict", "theory.nc")):
            if not is_current(self.home / file, f"{file} of {self.identity}", self.digest(step)):
                return self.complete()
        return self._judged()

    def complete(self, progress: bool = False, processes: int = 1) -> "list[Answer]":
        """Answers from results that are all checked anew, after a rehearsal; units are kept.

        Args:
            progress: show progress on stderr.
            processes: number of processes for units of plain Python; one more computes theory.
        """
        self._step("rehearse", "simulation.nc")
        self._step("simulate", "simulation.nc", progress, processes, predicting=True)
        return self._judged()

    def _judged(self) -> "list[Answer]":
        self._step("tabulate", "effects.nc")
        return self._step("judge", "answers.json")

    def figure(self) -> Path:
        """Path of the study's figure, drawn with its caption from results and answers."""
        self._step("plot", "figure.png")
        return self.home / "figure.png"

    @property
    def results(self) -> "Results":
        """Results of both methods, read from the files of this run.

        Raises:
            InputError: a file is missing, damaged, or was made with other settings.
        """
        from sims.study.stored import results_of

        return results_of(self, self.home)

    def _step(self, name: str, file: str, *arguments: Any, **options: Any) -> Any:
        # By name, since no step depends on all others (sims.study.code).
        return import_module("sims.steps").function(name)(
            self, self.home / file, *arguments, **options
        )

    @contextmanager
    def code_errors(self) -> Iterator[None]:
        """Context in which an error of the study's code becomes a line about its settings.

        Such an error has its innermost project frame in the study's folder.

        Raises:
            InputError: a key is missing, or a value has the wrong kind for the code.
        """
        try:
            yield
        except InputError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if self.study.folder is None:
                raise
            folder = self.study.folder.resolve()
            package = Path(__file__).resolve().parents[1]
            for frame in reversed(traceback.extract_tb(error.__traceback__)):
                path = Path(frame.filename).resolve()
                if path.is_relative_to(folder) or package in path.parents:
                    break
            if not path.is_relative_to(folder):
                raise
            allowed = "settings in experiment.yaml that this code can use"
            message = f"{type(error).__name__}: {error}"
            location = f"{self.study.folder / path.name}, line {frame.lineno}"
            raise InputError(location, message, allowed) from error


def run(
    name: str | Path,
    fidelity: str = "standard",
    *,
    seed_offset: int = 0,
    folder: str | Path | None = None,
    figure: bool = True,
    progress: bool = False,
    processes: int = 1,
    allow_code: bool = False,
) -> Run:
    """Complete run of one experiment: theory, simulation, answers and figure.

    Finished units are kept. Its answers are without Holm's adjustment, which the ledger adds.

    Args:
        name: name of the experiment, or its folder.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, added to the seeds: the same experiment with other draws.
        folder: folder of the results; None is results/FIDELITY/NAME.
        figure: whether to draw it.
        progress: show progress on stderr.
        processes: number of processes for units of plain Python; one more computes theory.
        allow_code: consent to run the code of a folder outside ``experiments``.

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    opened = Run.load(name, fidelity, seed_offset, folder, allow_code)
    opened.complete(progress, processes)
    if figure:
        opened.figure()
    return opened


def _load_in(place: Path, *where: Any) -> Run:
    """A run as a process loads it that may have worked in another folder before."""
    os.chdir(place)
    return Run.load(*where)
