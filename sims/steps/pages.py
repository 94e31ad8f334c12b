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
    runs = []
    for name in experiments():
        if (folder / name / TABLE).is_file():
            runs.append(Run.load(name, fidelity, folder=folder / name))
    for run in runs:
        judge(run, run.home / "answers.json")
    ledger(fidelity, folder / "answers.json")
    drawn = [delayed(plot)(run, run.home / "figure.png") for run in runs]
    Parallel(min(os.cpu_count() or 1, max(len(runs), 1)))(drawn)
    report(fidelity, output)
