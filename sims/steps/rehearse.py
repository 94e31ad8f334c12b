"""Step ``rehearse``: questions and figure of an experiment on two problems, before a long run."""

from pathlib import Path
from typing import Any

from sims.base.errors import InputError
from sims.base.terms import SCALARS
from sims.figures import style
from sims.judgement.answers import by_id
from sims.study import drawn
from sims.study.judge import answers_of, check_effects, panels_of
from sims.study.results import Results
from sims.study.running import Run
from sims.study.units import units_of

NAMES = (AttributeError, KeyError, TypeError)
"""Errors of a figure's code that more problems would not cure."""


def rehearse(run: Run, output: Path) -> None:
    """Answer the questions of an experiment, and draw its figure, with two problems and few draws.

    A smoke run is itself a rehearsal, and so is an earlier run that kept units. If effects do not
    come from the experiment's code, only their names are checked.

    Args:
        run: the run.
        output: simulation.nc of the run that follows.

    Raises:
        InputError: the experiment's code cannot be used, or a question names no effect.
    """
    without_code = type(run.study) is drawn.DrawnStudy
    is_short = run.fidelity == "smoke" and not without_code
    if is_short or any(output.parent.glob(".points/*")):
        return
    if without_code:
        check_effects(run, dict.fromkeys(SCALARS, "gap"))
    if without_code or not run.study.defines("effects"):
        return
    counts = {"problems", "simulated"}
    if not isinstance(run.study, drawn.DrawnStudy):
        # Its units are its own affair: at smoke there are few, or they are fast.
        if "smoke" in run.spec.fidelities:
            run = Run(run.study, "smoke", run.seed, run.folder)
        counts &= run.settings.keys()
    few_draws = {"batches": 4, "replicates_per_batch": 2, "rel_mcse": None}
    settings = run.simulation.model_copy(update=few_draws)
    small = run.changed(run.settings | dict.fromkeys(counts, 2), settings)
    study = small.study
    units = units_of(small)
    estimates = {name: unit.estimate(settings) for name, unit in units.items()}
    coordinates = {name: unit.coordinates for name, unit in units.items()}
    origin: dict[str, dict[str, Any]] = {"simulation": {"versions": {}}}
    with run.code_errors():
        few = Results(estimates, study.predictions(), coordinates, origin)
        panels = panels_of(small, few)
    answers = by_id(answers_of(panels.table, small.spec))
    try:
        with run.code_errors(), style():
            study.figure(panels, answers)
    except (ValueError, ArithmeticError, LookupError, UnboundLocalError) as error:
        # Two problems may be too few for a figure: only errors of names count.
        if isinstance(error, InputError) and isinstance(error.__cause__, NAMES):
            raise
