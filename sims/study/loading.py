"""The study of an experiment: the class in its study.py, or one that stands for its modules."""

from pathlib import Path
from typing import Any

from sims.errors import InputError
from sims.study.drawn import DrawnStudy
from sims.study.experiment import Experiment
from sims.study.referenced_files import check_consent, load_module
from sims.study.results import Results
from sims.study.study import Fields, Study, problem_digest


def load_study(experiment: Experiment) -> Study[Any]:
    """The study of an experiment.

    Of a law with a ``problem`` and without code it is :class:`~sims.study.drawn.DrawnStudy`.

    Raises:
        InputError: there is no consent to run its code, or no class in it.
    """
    path = experiment.folder / "study.py"
    if not path.is_file():
        if "problem" not in experiment.spec.law:
            return ModulesStudy(experiment)
        own = (experiment.folder / f"{name}.py" for name in ("statistic", "figure"))
        return (DrawnModulesStudy if any(map(Path.is_file, own)) else DrawnStudy)(experiment)
    check_consent(str(path), "code", experiment.allow_code)
    module = load_module(path)
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Study)
        and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise InputError(str(path), f"{len(classes)} classes", "one subclass of Study")
    study: Study[Any] = classes[0](experiment)
    return study


class ModulesStudy(Study[Any]):
    """The study that modules of an experiment's folder make up, one a step."""

    def module(self, name: str, *functions: str) -> Any:
        """A module of the folder that has these functions."""
        module, path = self.experiment.module(name), self.experiment.folder / f"{name}.py"
        if module is None or not all(hasattr(module, function) for function in functions):
            raise InputError(str(path), "nothing", f"a module with {' and '.join(functions)}")
        return module

    def units(self) -> Any:
        return self.module("simulate", "units").units(self.experiment)

    def predictions(self) -> Any:
        return self.module("predict", "predict").predict(self.experiment)

    def effects(self, results: Results) -> Any:
        return self.module("statistic", "effects", "parameters").effects(results)

    def parameters(self, results: Results) -> Any:
        return self.module("statistic", "effects", "parameters").parameters(results)

    def figure(self, results: Results, answers: Any) -> Any:
        return self.module("figure", "figure").figure(results, answers)

    def numbers(self, results: Results) -> Any:
        return getattr(self.module("figure"), "numbers", super().numbers)(results)

    def headline(self, results: Results) -> Any:
        return getattr(self.module("figure"), "headline", super().headline)(results)

    def file_of(self, number: int) -> Any:
        drawing = self.experiment.module("problems")
        if drawing is None or not hasattr(drawing, "problem"):
            return None
        return drawing.problem(self.experiment, number)

    def problem(self, fields: Fields) -> Fields:
        return fields

    def search_row(self, problem: Fields) -> Any:
        return self.module("search", "theory", "problem").theory(self.experiment, problem)

    def as_file(self, problem: Fields) -> Any:
        return self.module("search", "theory", "problem").problem(self.experiment, problem)

    def problem_digests(self) -> dict[str, str]:
        return {
            name: problem_digest(unit.sampler.identity()) for name, unit in self.units().items()
        }


class DrawnModulesStudy(DrawnStudy):
    """A law of problems with a statistic or a figure of its own, in modules of these names."""

    def own(self, name: str) -> Any:
        """The module of that name, or None."""
        return self.experiment.module(name)

    def effects(self, results: Results) -> Any:
        module = self.own("statistic")
        return module.effects(results) if module else super().effects(results)

    def parameters(self, results: Results) -> Any:
        module = self.own("statistic")
        return module.parameters(results) if module else super().parameters(results)

    def figure(self, results: Results, answers: Any) -> Any:
        module = self.own("figure")
        return module.figure(results, answers) if module else super().figure(results, answers)
