"""The study of an experiment: the class in its study.py, or that of a law of problems."""

from importlib import import_module
from typing import Any

from sims.base.errors import InputError
from sims.study.experiment import Experiment
from sims.study.referenced_files import check_consent, load_module
from sims.study.study import Study


def load_study(experiment: Experiment) -> Study[Any]:
    """The study of an experiment.

    Of a law with a ``problem`` and without code it is :class:`~sims.study.drawn.DrawnStudy`.

    Raises:
        InputError: there is no consent to run its code, or no class in it.
    """
    path = experiment.folder / "study.py"
    if not path.is_file():
        for name in ("statistic.py", "figure.py"):
            if (experiment.folder / name).is_file():
                raise InputError(str(path), f"file not found; a Study in it has to use {name}")
        if "problem" not in experiment.spec.law:
            raise InputError(
                str(path), "file not found; a law without `problem` needs a Study in this file"
            )
        # By name, since a step of an experiment with code does not depend on it (sims.study.code).
        return import_module("sims.study.drawn").DrawnStudy(experiment)
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
