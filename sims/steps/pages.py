"""Step ``pages``: answers, figures and report of a run, from tables of effects alone."""

import os
from pathlib import Path

from joblib import Parallel, delayed

from sims.base.places import experiments
from sims.steps.judge import judge
from sims.steps.ledger import ledger
from sims.steps.plot import plot
from sims.steps.report import report
from sims.study.panels import TABLE
from sims.study.running import Run


def pages(fidelity: str, output: Path) -> None:
    """Make again all that words and looks make of the experiments that have a table.

    Args:
        fidelity: of the run.
        output: the report, in the folder that contains the experiments' folders.
    """
    folder = output.parent
    names = [name for name in experiments() if (folder / name / TABLE).is_file()]
    for name in names:
        home = folder / name
        judge(Run.load(name, fidelity, folder=home, allow_code=None), home / "answers.json")
    ledger(fidelity, folder / "answers.json")
    drawn = [delayed(_plot)(Path.cwd(), name, fidelity, folder / name) for name in names]
    Parallel(os.cpu_count())(drawn)
    report(fidelity, output)


def _plot(place: Path, name: str, fidelity: str, home: Path) -> None:
    """Plot an experiment in a process that may have worked elsewhere before."""
    os.chdir(place)
    plot(Run.load(name, fidelity, folder=home), home / "figure.png")
