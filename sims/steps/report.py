"""Step ``report``: the page of a run."""

from pathlib import Path

from sims.report import write_report


def report(fidelity: str, output: Path) -> None:
    """Write the report of all experiments of a run."""
    write_report(output.parent, fidelity, output)
