"""Step ``tabulate``: the table of effects, and the arrays that figures show."""

from pathlib import Path

from sims.study.judge import panels_of
from sims.study.running import Run
from sims.study.stored import results_of, write_panels


def tabulate(run: Run, output: Path) -> None:
    """Write the table, and the arrays next to it, from the results in its folder."""
    results = results_of(run, output.parent)
    with run.code_errors():
        panels = panels_of(run, results)
    write_panels(run, panels, output.parent)
