"""Steps of a run: each is the module of its name, whose imports are what it depends on.

The module defines a function of the same name. The steps of an experiment take an
:class:`~sims.study.running.Run`, those of a full run a fidelity, both the path of the
file that they write.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

OF_EXPERIMENT = {
    "rehearse": "simulation.nc",
    "simulate": "simulation.nc",
    "predict": "theory.nc",
    "tabulate": "effects.nc",
    "judge": "answers.json",
    "plot": "figure.png",
    "publish": "answers.json",
}
"""Step of an experiment to the file that it writes, or that it prepares."""
OF_RUN = {
    "ledger": "answers.json",
    "report": "report.html",
    "pages": "report.html",
    "publish": "answers.json",
    "again": "answers.json",
    "compare": "answers.json",
}
"""Step of a full run to the file that it writes, or in whose folder it reads."""


def function(step: str) -> Callable[..., Any]:
    """The function of a step, imported on first use."""
    return getattr(import_module(f"sims.steps.{step}"), step)
