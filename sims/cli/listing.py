"""What there is: experiments, claims, results and schemas, listed; and an experiment begun."""

import json
import keyword
import re
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sims.documents import read_yaml
from sims.errors import InputError, one_of
from sims.places import place
from sims.study.code import EXPERIMENTS
from sims.study.experiment import experiments as names
from sims.study.experiment import load_experiment

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sims.judgement.grouping import ClaimRows

VERDICT_KEYS = ("experiment", "regime", "kind", "over", "verdict", "edited")
"""What the JSON list of claims says of a verdict."""


def experiments(as_json: bool) -> None:
    """Name, title and claims of every experiment that is here."""
    rows: list[dict[str, Any]] = []
    for name in names():
        data = read_yaml(place(EXPERIMENTS) / name / "experiment.yaml")
        claims = list(dict.fromkeys(str(c.get("id")) for c in data.get("claims") or []))
        rows.append({"name": name, "title": str(data.get("title")), "claims": claims})
    if as_json:
        _print_json(rows)
        return
    print_table(
        ("experiment", "title", "claims"),
        [(r["name"], r["title"], ", ".join(r["claims"])) for r in rows],
    )
    print("Run one:  sims run NAME --fidelity smoke|standard|paper")


def claims(fidelity: str, paper: str | None, as_json: bool) -> None:
    """The claims of every paper, or of one, with the latest verdicts on them."""
    from sims.judgement import read_ledger
    from sims.judgement.grouping import by_paper
    from sims.papers import papers

    own = Path("results", fidelity, "ledger.json")
    source = own if own.exists() else place("results/published/ledger.json")
    whose = f"ledger.json of {fidelity}" if own.exists() else None
    verdicts = read_ledger(source, whose) if source.exists() else []
    groups = {group.arxiv: group for group in by_paper(verdicts, papers())}
    if paper is not None:
        if paper not in groups:
            allowed = one_of(groups, paper) or "a paper with a file in papers/"
            raise InputError("--paper", paper, allowed)
        groups = {paper: groups[paper]}
    if as_json:
        rows = [
            {
                "paper": group.arxiv,
                "claim": row.id,
                "ours": row in group.ours,
                "statement": row.statement,
                "source": row.source,
                "reconstruction": row.reconstruction,
                "verdicts": [{k: getattr(v, k) for k in VERDICT_KEYS} for v in row.verdicts],
            }
            for group in groups.values()
            for row in (*group.claims, *group.ours)
        ]
        _print_json(rows)
        return
    for group in groups.values():
        print(f"arXiv {group.arxiv}", group.about.title if group.about else "")
        print_table(
            ("claim", "what it says", "verdicts"),
            [(row.id, row.statement, _said(row)) for row in (*group.claims, *group.ours)],
        )
    print(f"Verdicts: {source}" if verdicts else "No ledger yet: make reproduce")


def _said(row: "ClaimRows") -> str:
    lines = [
        f"{v.verdict} ({v.experiment}, {v.regime}; {v.worth})"
        f"{', edited after the simulation began' * v.edited}"
        for v in row.verdicts
    ]
    return "\n".join(lines) or "not covered"


def table(name: str, fidelity: str, order: str, latex: bool) -> None:
    """One row a point: coordinates, and every scalar by simulation, its MCSE, and by theory."""
    from sims.study.results import Results

    experiment = load_experiment(name, fidelity)
    home = Path("results", fidelity, experiment.name)
    results = Results.load(
        home / "simulation.nc", home / "theory.nc", experiment.settings, experiment.identity
    )
    frame = results.table(order)
    if latex:
        print(frame.to_latex(index=False, escape=True, float_format="%.6g"), end="")
    else:
        print(frame.to_csv(index=False), end="")


def new(name: str) -> None:
    """The files of an experiment, an example that runs as it is.

    Raises:
        InputError: the name cannot be a module's, or there is such a folder.
    """
    if not re.fullmatch(r"[a-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise InputError("name", name, "lower-case letters, digits and _, a letter first")
    folder = Path(EXPERIMENTS, name)
    if folder.exists():
        raise InputError("name", name, f"one that is no folder of {EXPERIMENTS}/ yet")
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f'"""{name.replace("_", " ").capitalize()}."""\n')
    for part in (files("sims.study") / "scaffold").iterdir():
        target = folder / part.name.removesuffix(".txt")
        target.write_text(part.read_text("utf-8"), encoding="utf-8")
        print(target)
    print(f"sims run {name} --fidelity smoke")


def schema(what: str) -> None:
    """The JSON schema of a file that users write."""
    from sims.papers import Paper
    from sims.study.describing import VariablesSpec
    from sims.study.schema import ExperimentSpec
    from sims.study.specification import ProblemSpec
    from sims.study.sweepfile import DecomposeSpec, SweepSpec

    models: dict[str, type[BaseModel]] = {
        "experiment": ExperimentSpec,
        "problem": ProblemSpec,
        "decompose": DecomposeSpec,
        "sweep": SweepSpec,
        "paper": Paper,
        "variables": VariablesSpec,
    }
    _print_json(models[what].model_json_schema())


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False
) -> None:
    """Print a table for people; of numbers, none is cut short."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    table.columns[0].no_wrap = True
    for column in table.columns[1:] if numbers else ():
        column.justify = "right"
    # A pipe has no width of its own, and 80 characters are few for a table.
    width = None if sys.stdout.isatty() and not numbers else 120
    Console(highlight=False, width=width).print(table)
