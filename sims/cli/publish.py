"""``sims publish``: the part of a run's results that is small enough to be committed."""

import shutil
import sys
from argparse import Namespace
from pathlib import Path

from sims.errors import InputError


def publish(options: Namespace) -> None:
    """Copy a finished run's ledger and figures, with a report and a README that show them."""
    from sims.report import write_overview, write_report
    from sims.study.experiment import experiments

    source, target = Path("results", options.fidelity), Path("results", "published")
    names = [name for name in experiments() if (source / name / "caption.md").is_file()]
    if not (source / "ledger.json").is_file() or not names:
        raise InputError(str(source), "no finished run", "make reproduce, first")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copyfile(source / "ledger.json", target / "ledger.json")
    for name in names:
        shutil.copyfile(source / name / "figure.png", target / f"{name}.png")
    # The page shows the figures beside it: an embedded copy would double what is committed.
    write_report(source, options.fidelity, target / "report.html", linked=True)
    write_overview(source, options.fidelity, target / "README.md")
    print(f"{target}: ledger, report and {len(names)} figures", file=sys.stderr)
