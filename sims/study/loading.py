"""The study of an experiment: the class in its study.py, or that of a law of problems."""

from pathlib import Path
from typing import Any

from sims.base.errors import InputError
from sims.study.drawn import DrawnStudy
from sims.study.experiment import Experiment
from sims.study.referenced_files import check_consent, load_module
from sims.study.results import Results
from sims.study.study import Study


def load_study(experiment: Experiment) -> Study[Any]:
    """The study of an experiment.

    Of a law with a ``problem`` and without code it is :class:`~sims.study.drawn.DrawnStudy`.

    Raises:
        InputError: there is no consent to run its code, or no class in it.
    """
    path = experiment.folder / "study.py"
    if not path.is_file():
        if "problem" not in experiment.spec.law:
            raise InputError(
                str(path), "file not found; a law without `problem` needs a Study in this file"
            )
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


class DrawnModulesStudy(DrawnStudy):
    """A law of problems with modules ``statistic`` or ``figure``."""

    def effects(self, results: Results) -> Any:
        module = self.experiment.module("statistic")
        return module.effects(results) if module else super().effects(results)

    def parameters(self, results: Results) -> Any:
        module = self.experiment.module("statistic")
        return module.parameters(results) if module else super().parameters(results)

    def figure(self, results: Results, answers: Any) -> Any:
        module = self.experiment.module("figure")
        return module.figure(results, answers) if module else super().figure(results, answers)

    def numbers(self, results: Results) -> Any:
        module = self.experiment.module("figure")
        return getattr(module, "numbers", super().numbers)(results)
