"""``sims publish``: the part of a run's results that is small enough to be committed."""

import shutil
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from sims.errors import InputError
from sims.files import read, read_json, write, write_json


def publish(options: Namespace) -> None:
    """Copy a finished run's ledger and figures, with a report and a README that show them.

    What its rows came to with other seeds, if they were judged, goes with them.
    """
    from sims.judgement import read_ledger, write_verdicts
    from sims.report import other_seeds, write_overview, write_report
    from sims.study.experiment import experiments

    source, target = Path("results", options.fidelity), Path("results", "published")
    names = [name for name in experiments() if (source / name / "caption.md").exists()]
    if not (source / "ledger.json").is_file() or not names:
        raise InputError(str(source), "no finished run", "make reproduce, first")
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".published.", dir=target.parent) as folder:
        made = Path(folder, "made")
        of = f"ledger.json of {options.fidelity}"
        write_verdicts(read_ledger(source / "ledger.json", of), made / "ledger.json", of)
        for name in names:
            figure = f"figure.png of {name} at {options.fidelity}"
            write(read(source / name / "figure.png", figure), made / f"{name}.png", figure)
        if other_seeds(source, options.fidelity, 0) is not None:
            seeds = f"seeds.json of {options.fidelity}"
            write_json(read_json(source / "seeds.json", seeds), made / "seeds.json", seeds)
        write_report(source, options.fidelity, made / "report.html")
        write_overview(source, options.fidelity, made / "README.md")
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    print(f"{target}: ledger, report and {len(names)} figures", file=sys.stderr)
