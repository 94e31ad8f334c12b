"""An experiment as a class: problems from drawn fields, their simulation, theory and effects.

A subclass of :class:`Study` stands in ``study.py`` of the experiment's folder. The base class draws
the problems, loops over them, names units and streams of draws, and joins what comes back. A step
depends on what the methods that it calls import: inside themselves, or by :func:`from_module`
(:mod:`sims.study.code`).
"""

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd
import xarray as xr

from sims.base.identity import rounded_digest
from sims.study.batches import LAW, drawn_values
from sims.study.results import Results
from sims.study.stacking import Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answers
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler
    from sims.study.experiment import Experiment
    from sims.study.units import DrawnUnit, SampledUnit

Problem = TypeVar("Problem")
COUNTS = ("simulated", "problems")
"""Settings that do not affect any single problem."""
PROSE = ("text", "problem", "checkpoints")
"""Keys of a law that are not fields."""


class Fields(dict[str, Any]):
    """Fields of a problem as the law draws them.

    Attributes:
        seed: random seed for the law's draws.
        number: number of the problem, from 0; None for one that was not drawn.
        attempt: number of rejected draws of this problem.
    """

    def __init__(
        self, fields: Mapping[str, Any], seed: int, number: int | None = None, attempt: int = 0
    ) -> None:
        super().__init__(fields)
        self.seed = seed
        self.number = number
        self.attempt = attempt


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
        self.package = owner.__module__.rpartition(".")[0]
        self.name = name

    def __get__(self, study: object, owner: type) -> Any:
        return getattr(import_module(f"{self.package}.{self.module}"), self.name)


class Study(Generic[Problem]):
    """The code of an experiment; a subclass has at least ``problem``, ``sampler`` and ``effects``.

    Attributes:
        experiment: its file, at a fidelity.
    """

    def __init__(self, experiment: "Experiment") -> None:
        self.experiment = experiment
        self._drawn: dict[int, Problem] = {}

    def problem(self, fields: Fields) -> Problem | None:
        """Problem of a draw; None rejects it, and another is drawn."""
        raise NotImplementedError

    def sampler(self, problem: Problem) -> "Sampler":
        """Sampler of one problem."""
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

    def figure(self, results: Results, answers: "Answers") -> "Figure | None":
        """The experiment's figure; None for the default: the first question's effects."""
        return None

    def headline(self, results: Results) -> "Figure | None":
        """Figure for the README; None if the experiment has none."""
        return None

    def numbers(self, results: Results) -> Mapping[str, Any]:
        """Numbers that the caption names."""
        return {}

    def as_file(self, problem: Problem) -> dict[str, Any] | None:
        """Problem as ``sims decompose`` or ``sims sweep`` reads it; None if it has no such form."""
        return None

    def search_row(self, problem: Problem) -> xr.Dataset | None:
        """Theory of a problem in a search: the result of :meth:`theory`, or a part of it."""
        return self.theory(problem)

    def file_of(self, number: int) -> dict[str, Any] | None:
        """Problem with the given number as a file; None if problems cannot be files."""
        if type(self).as_file is Study.as_file:
            return None
        return self.as_file(self.draw(number))

    @cached_property
    def law(self) -> Mapping[str, Any]:
        """Law: its fields and their distributions."""
        return {k: v for k, v in self.experiment.spec.law.items() if k not in PROSE}

    @property
    def simulated(self) -> int:
        """Number of simulated problems."""
        settings = self.experiment.settings
        return int(settings.get("simulated", settings.get("problems", 0)))

    @property
    def predicted(self) -> int:
        """Number of problems that theory predicts, the simulated ones first."""
        return int(self.experiment.settings.get("problems", self.simulated))

    def draw(self, number: int) -> Problem:
        """Problem with the given number: its first draw that is not rejected."""
        from sims.problem.law import Law  # imported late: it loads JAX, which judging does without

        if number in self._drawn:
            return self._drawn[number]
        law = Law(self.law)
        seed = self.experiment.simulation.seed
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
        if self._draws_apart:
            return {f"{number:04d}": self._drawn_apart(number) for number in numbers}
        in_threads(self.draw, numbers)  # which keeps them
        return {f"{number:04d}": self._unit(number) for number in numbers}

    def unit(self, name: str) -> "SampledUnit | DrawnUnit":
        """One unit by name, without drawing other problems unless the study defines its units."""
        if type(self).units is not Study.units:
            return self.units()[name]
        return self._drawn_apart(int(name)) if self._draws_apart else self._unit(int(name))

    @cached_property
    def _draws_apart(self) -> bool:
        """True if the process that simulates a problem also draws it, as for plain Python."""
        known_without = type(self).coordinates is Study.coordinates
        return known_without and bool(self.simulated) and self._unit(0).on_one_core

    def _drawn_apart(self, number: int) -> "DrawnUnit":
        from sims.base.identity import digest
        from sims.study.units import DrawnUnit

        def make() -> "tuple[SampledUnit, str]":
            return self._unit(number), problem_digest(self.draw(number))

        settings = {k: v for k, v in self.experiment.settings.items() if k not in COUNTS}
        seed = self.experiment.simulation.seed
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


def problem_digest(problem: object) -> str:
    """Digest of a problem and its solved (cached) properties, up to rounding."""
    solved = {}
    for kind in type(problem).__mro__:
        for name, value in vars(kind).items():
            if isinstance(value, cached_property):
                solved[name] = getattr(problem, name)
    return rounded_digest(problem, solved)
