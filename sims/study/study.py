"""A study: a law of problems, questions about them, and how they are simulated and predicted.

It is a value. An experiment's folder has a subclass of :class:`Study` in ``study.py``; in a
notebook functions are enough. The base class draws the problems, loops over them, names units and
streams of draws, and joins what comes back. :class:`sims.study.running.Run` gives it a fidelity, a
seed and a place for results.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from sims.base import store
from sims.base.errors import InputError, located, one_of
from sims.base.identity import digest
from sims.base.members import cached_names
from sims.study.batches import LAW, drawn_values
from sims.study.declaration import FIDELITIES, Declaration, is_known
from sims.study.problem import Fields as Fields  # studies take it from here
from sims.study.problem import problem_digest
from sims.study.referenced_files import (
    check_consent,
    class_of,
    resolve_files,
    resolved_consent,
)
from sims.study.results import Results
from sims.study.schema import ExperimentSpec, SimulationSpec
from sims.study.stacking import Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answers
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler
    from sims.study.panels import Panels
    from sims.study.units import DrawnUnit, SampledUnit

Problem = TypeVar("Problem")
COUNTS = ("simulated", "problems")
"""Settings that do not affect any single problem."""
PROSE = ("text", "problem", "checkpoints")
"""Keys of a law that are not fields."""


def from_module(module: str) -> Any:
    """Method of a study that is the function of its name in a module next to ``study.py``.

    The module is imported when the method is first used, so that a step loads only its code:
    ``effects = from_module("statistic")``.
    """
    return _Late(module)


class _Late:
    """Descriptor behind :func:`from_module`."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, study: object, owner: type) -> Any:
        package = owner.__module__.rpartition(".")[0]
        return getattr(import_module(f"{package}.{self.module}"), self.name)


class Study(Generic[Problem]):
    """A law of problems, questions about them, and code that simulates and predicts a problem.

    ``Study(law, questions, problem=…, sampler=…, theory=…, effects=…)`` takes functions in place of
    the methods of a subclass; functions have the arguments of these methods but ``self``.

    Args:
        law: field to its distribution, as in experiment.yaml.
        questions: questions as in experiment.yaml.
        name: name of the study, which its folder of results has.
        title: title of its figure and page.
        settings: values for its code.
        simulation: sizes and precision, as in experiment.yaml.
        fidelities: changes of settings and simulation, as there; none for a name left out.
        functions: methods of this class by name.

    Attributes:
        declared: law, questions and settings as declared.
        allow_code: whether code that the law names may be run.
        settings: settings of the study, in a run at its fidelity.
        simulation: sizes and seed of its simulation, in a run.

    Raises:
        InputError: an argument does not fit the schema, or a function has no place.
    """

    declared: Declaration
    allow_code: bool | None
    settings: dict[str, Any]
    simulation: SimulationSpec

    def __init__(
        self,
        law: Mapping[str, Any],
        questions: Sequence[Mapping[str, Any]],
        *,
        name: str = "study",
        title: str = "",
        settings: Mapping[str, Any] | None = None,
        simulation: Mapping[str, Any] | None = None,
        fidelities: Mapping[str, Any] | None = None,
        **functions: Any,
    ) -> None:
        content = {
            "title": title or name,
            "aim": title or name,
            "law": dict(law),
            "questions": [dict(question) for question in questions],
            "settings": dict(settings or {}),
            "simulation": dict(simulation or {}),
            "fidelities": {key: {} for key in FIDELITIES} | dict(fidelities or {}),
        }
        methods = [key for key, value in vars(Study).items() if callable(value) and key[0] != "_"]
        for key, function in functions.items():
            if key not in methods:
                raise InputError("Study", key, one_of(methods, key))
            setattr(self, key, function)
        code = functions | {"class": type(self)}
        self._declare(Declaration(content, name, functions=code), allow_code=True)

    def _declare(self, declared: Declaration, allow_code: bool | None) -> None:
        self.declared = declared
        self.allow_code = allow_code
        self.settings = declared.spec.settings
        self.simulation = declared.spec.simulation
        self._drawn: dict[int, Problem] = {}
        self._kept_in: tuple[Path, str] | None = None

    @staticmethod
    def load(
        experiment: str | Path, allow_code: bool | None = False, fidelity: str = "standard"
    ) -> "Study[Any]":
        """Study of an experiment, given by name or folder: the only reader of its YAML and code.

        A law with a ``problem`` and without code is a :class:`~sims.study.drawn.DrawnStudy`.

        Args:
            experiment: name or folder. Experiments in ``experiments``, and those of installed
                packages, have consent to run their code; others need it.
            allow_code: consent; None plans only, and loads no code.
            fidelity: one that the experiment must have.

        Raises:
            InputError: the experiment does not exist, its name is invalid, its file does not fit
                the schema, repeats a question, cites an unlisted claim, names a missing file or
                lacks the fidelity; consent is missing; or its code cannot be used.
        """
        declared = Declaration.read(experiment)
        folder = declared.folder
        assert folder is not None
        consent = allow_code
        if allow_code is False:
            consent = resolved_consent(is_known(folder))
        spec = declared.spec
        with located(declared.location):
            spec.fidelity_changes(fidelity)
            resolve_files(spec.law, folder, "law", consent)
        if consent is not None:
            check_consent(str(folder), "its code", consent)
        if (code := declared.code) is None:
            # By name: a step of an experiment with code does not depend on it (sims.study.code).
            kind = import_module("sims.study.drawn").DrawnStudy
        else:
            kind = Study if consent is None else class_of(code, Study)
        study = kind.__new__(kind)
        study._declare(declared, consent)
        return study

    def opened(self, settings: dict[str, Any], simulation: SimulationSpec) -> Self:
        """A copy with these settings, and without problems that were drawn for others."""
        other = copy.copy(self)
        for name in cached_names(self):
            vars(other).pop(name, None)
        other.settings = settings
        other.simulation = simulation
        other._drawn = {}
        return other

    def keep_draws(self, results: Path) -> None:
        """Keep what drawing problems measures next to results, for the other method.

        Nothing is kept of a study without a folder.
        """
        from sims.study.code import code_of_draws  # imported late: judging does without

        if self.folder is not None:
            self._kept_in = results / ".drawn", code_of_draws(self.declared)

    def keep(
        self, fields: Fields, name: str, measure: Callable[[], Mapping[str, np.ndarray]]
    ) -> Mapping[str, np.ndarray]:
        """Arrays that a draw measures, such as the errors of a pilot, once for both methods.

        The method that wants them first keeps them; files are named by a digest of the fields and
        of the code that draws. Outside a run they are measured.
        """
        if self._kept_in is None or fields.number is None:
            return measure()
        folder, code = self._kept_in
        made_of = digest(dict(fields), fields.seed, code)
        path = folder / f"{fields.number:04d}.{fields.attempt}-{name}-{made_of}.npz"
        found = store.load_or_wait(path, measure)
        return {str(key): variable.values for key, variable in found.variables.items()}

    def defines(self, method: str) -> bool:
        """True if the study has a method of its own of that name, or a function in its place."""
        return method in vars(self) or getattr(type(self), method) is not getattr(Study, method)

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.declared.name

    @property
    def folder(self) -> Path | None:
        """Its folder; None for one defined in Python alone."""
        return self.declared.folder

    @property
    def spec(self) -> ExperimentSpec:
        """The declaration by its schema."""
        return self.declared.spec

    def problem(self, fields: Fields, /) -> Problem | None:
        """Problem of a draw; None rejects it, and another is drawn."""
        raise NotImplementedError

    def sampler(self, problem: Problem) -> "Sampler":
        """Sampler of one problem."""
        raise NotImplementedError

    def alongside(self, problem: Problem) -> xr.Dataset:
        """Further estimates of one problem, with dimensions of their own; by default none."""
        raise NotImplementedError

    def replicates(self, problem: Problem) -> int | None:
        """Replicates of a batch; None uses the file's."""
        return None

    def theory(self, problem: Problem) -> xr.Dataset:
        """Theory of one problem, with its fields: one row of the point ``law``."""
        raise NotImplementedError

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        """Effects by name: one number per problem."""
        raise NotImplementedError

    def parameters(self, results: Results) -> pd.DataFrame:
        """Drawn values of the law, one row per problem, the simulated ones first."""
        return drawn_values(results)

    def panels(self, results: Results) -> xr.Dataset:
        """Arrays that figure, headline and caption need in addition to effects and parameters."""
        return xr.Dataset()

    def figure(self, panels: "Panels", answers: "Answers") -> "Figure | None":
        """The experiment's figure; None for the default: the first question's effects."""
        return None

    def headline(self, panels: "Panels") -> "Figure | None":
        """Figure for the README; None if the experiment has none."""
        return None

    def numbers(self, panels: "Panels") -> Mapping[str, Any]:
        """Numbers that the caption names."""
        return {}

    def as_file(self, problem: Problem) -> dict[str, Any] | None:
        """Problem as ``sims decompose`` or ``sims sweep`` reads it; None if it has no such form."""
        return None

    def file_of(self, number: int) -> dict[str, Any] | None:
        """Problem with the given number as a file; None if problems cannot be files."""
        if not self.defines("as_file"):
            return None
        return self.as_file(self.draw(number))

    @cached_property
    def law(self) -> Mapping[str, Any]:
        """Law: its fields and their distributions."""
        return {k: v for k, v in self.spec.law.items() if k not in PROSE}

    @property
    def simulated(self) -> int:
        """Number of simulated problems."""
        return int(self.settings.get("simulated", self.settings.get("problems", 0)))

    @property
    def predicted(self) -> int:
        """Number of problems that theory predicts, the simulated ones first."""
        return int(self.settings.get("problems", self.simulated))

    def draw(self, number: int) -> Problem:
        """Problem with the given number: its first draw that is not rejected."""
        from sims.problem.law import Law  # imported late: it loads JAX, which judging does without

        if number in self._drawn:
            return self._drawn[number]
        law = Law(self.law)
        seed = self.simulation.seed
        for attempt in count():
            fields = Fields(law.draw(seed, number, attempt), seed, number, attempt)
            problem = self.problem(fields)
            if problem is not None:
                if number < self.simulated:  # asked for again: by their digest, say
                    self._drawn[number] = problem
                return problem
        raise AssertionError

    def units(self) -> "Mapping[str, SampledUnit | DrawnUnit]":
        """Units to simulate by name, one per problem."""
        from sims.base.runtime import in_threads

        numbers = range(self.simulated)
        if not self._draws_apart:
            in_threads(self.draw, numbers)  # which keeps them
        return {f"{number:04d}": self._unit_of(number) for number in numbers}

    def unit(self, name: str) -> "SampledUnit | DrawnUnit":
        """One unit by name, without drawing other problems unless the study defines its units."""
        if self.defines("units"):
            return self.units()[name]
        return self._unit_of(int(name))

    def _unit_of(self, number: int) -> "SampledUnit | DrawnUnit":
        return self._drawn_apart(number) if self._draws_apart else self._unit(number)

    @cached_property
    def _draws_apart(self) -> bool:
        """True if the process that simulates a problem also draws it, as for plain Python."""
        known_without = not self.defines("coordinates")
        return known_without and bool(self.simulated) and self._unit(0).on_one_core

    def _drawn_apart(self, number: int) -> "DrawnUnit":
        from sims.study.units import DrawnUnit

        def make() -> "tuple[SampledUnit, str]":
            return self._unit(number), problem_digest(self.draw(number))

        settings = {k: v for k, v in self.settings.items() if k not in COUNTS}
        seed = self.simulation.seed
        made_of = digest(dict(self.law), settings, seed, number)
        return DrawnUnit(make, made_of, {"number": number})

    def _unit(self, number: int) -> "SampledUnit":
        from sims.study.units import SampledUnit

        problem = self.draw(number)
        return SampledUnit(
            self.sampler(problem),
            self.coordinates(number, problem),
            self.replicates(problem),
            stream=(number,),
            alongside=partial(self.alongside, problem) if self.defines("alongside") else None,
        )

    def predictions(self) -> dict[str, xr.Dataset]:
        """Theory by point: all problems in one, ``law``, along ``number``."""
        from sims.base.runtime import in_threads

        rows = in_threads(lambda number: self.theory(self.draw(number)), range(self.predicted))
        return {LAW: xr.concat(rows, "number", combine_attrs="drop")}

    def coordinates(self, number: int, problem: Problem) -> Mapping[str, Scalar]:
        """Coordinates of a problem's unit."""
        return {"number": number}

    def predicted_coordinates(self) -> Mapping[str, Mapping[str, Scalar]]:
        """Coordinates of theory's points, if it has several."""
        return {}

    def problem_digests(self) -> dict[str, str]:
        """Digest of every simulated problem, up to rounding, which both methods must share."""
        return {
            f"{number:04d}": problem_digest(self.draw(number)) for number in range(self.simulated)
        }
