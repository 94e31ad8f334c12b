"""``sims table``, ``sims diff``, ``sims open``: results as a table, beside others, on screen."""

import webbrowser
from argparse import Namespace
from pathlib import Path

import pandas as pd

from sims.cli.options import writable
from sims.errors import InputError
from sims.study import comparing
from sims.study.experiment import folder_of, load_experiment
from sims.study.results import Results

FORMATS = ("csv", "md", "latex", "parquet")


def table(options: Namespace) -> None:
    """One row a point: coordinates, and every scalar by simulation, its MCSE, and by theory."""
    experiment = load_experiment(options.experiment, options.fidelity)
    home = Path("results", options.fidelity, experiment.name)
    results = Results.load(
        home / "simulation.nc", home / "theory.nc", experiment.settings, experiment.identity
    )
    frame = results.table(options.order)
    if options.format == "parquet":
        if options.output is None:
            raise InputError("--output", None, "a file: parquet is not text")
        try:
            frame.to_parquet(writable(Path(options.output)), index=False)
        except ImportError:
            raise InputError("--format", "parquet", "with pyarrow installed; else csv") from None
        return
    text = _text(frame, options.format)
    if options.output is None:
        print(text, end="")
    else:
        writable(Path(options.output)).write_text(text, encoding="utf-8")


def _text(frame: pd.DataFrame, form: str) -> str:
    """The table as text: full digits in CSV, six significant ones for readers."""
    if form == "csv":
        return frame.to_csv(index=False)
    short = frame.map(lambda x: f"{x:.6g}" if isinstance(x, float) else str(x))
    if form == "latex":
        return short.to_latex(index=False, escape=True)
    rows = [list(map(str, short.columns)), ["---"] * short.shape[1], *short.to_numpy().tolist()]
    return "".join("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |\n" for row in rows)


def diff(options: Namespace) -> None:
    """Verdicts that differ between two runs; how far their estimates and effects are apart."""
    one, other = Path(options.one), Path(options.other)
    ledgers = [comparing.ledger_of(run) for run in (one, other)]
    rows = comparing.turned(*ledgers)
    for row in rows:
        before, after = (verdict or "absent" for verdict in row.verdicts)
        print(f"{row.claim} ({row.experiment}, {row.regime}): {before} -> {after}")
    if one.is_dir() and other.is_dir():
        for found in comparing.apart(one, other):
            worst = f", at most {found.worst:.2g} ({found.where})" if found.where else ""
            print(
                f"{found.experiment}: {found.beyond} of {found.compared} {found.what} more than 2 "
                f"joint MCSE apart{worst}"
            )
    print(f"{len(ledgers[0])} and {len(ledgers[1])} verdicts, {len(rows)} differ")


def show(options: Namespace) -> None:
    """Print where the figure of an experiment is, or the report, and open it where one can."""
    folder = Path("results", options.fidelity)
    path = folder / "report.html"
    if options.experiment is not None:
        path = folder / folder_of(options.experiment).resolve().name / "figure.svg"
    if not path.is_file():
        made = f"a finished run: snakemake --config fidelity={options.fidelity}"
        raise InputError(str(path), "no such file", made)
    print(path)
    webbrowser.open(path.resolve().as_uri())
