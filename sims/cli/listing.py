"""``sims experiments``, ``sims claims``, ``sims schema``: what there is."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sims.documents import read_yaml
from sims.errors import InputError, one_of
from sims.places import CARRIED, place
from sims.study.code import EXPERIMENTS
from sims.study.experiment import experiments as names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from sims.judgement import Verdict
    from sims.judgement.grouping import ClaimRows

VERDICT_KEYS = ("experiment", "regime", "kind", "over", "verdict", "edited")
"""What the JSON list of claims says of a verdict."""


def experiments(options: Namespace) -> None:
    """Name, title and claims of every experiment that is here."""
    rows: list[dict[str, Any]] = []
    home = place(EXPERIMENTS)
    for name in names():
        data = read_yaml(home / name / "experiment.yaml")
        claims = list(dict.fromkeys(str(c.get("id")) for c in data.get("claims") or []))
        rows.append({"name": name, "title": str(data.get("title")), "claims": claims})
    if options.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if not rows:
        print(f"no experiments: there is no {home}/*/experiment.yaml")
        return
    table(
        ("experiment", "title", "claims"),
        [(r["name"], r["title"], ", ".join(r["claims"])) for r in rows],
    )
    print("Run one:  sims run NAME --fidelity smoke|standard|paper")
    if home.resolve() != (CARRIED / EXPERIMENTS).resolve():
        print(
            "Those that came with sims run by name, too; a folder without experiments lists them."
        )


def claims(options: Namespace) -> None:
    """The claims of every paper, or of one, with the latest verdicts on them."""
    from sims.judgement import read_ledger
    from sims.judgement.grouping import by_paper
    from sims.papers import PAPERS, papers

    own = Path("results", options.fidelity, "ledger.json")
    published = place("results/published/ledger.json")
    of = {own: f"ledger.json of {options.fidelity}", published: None}
    ledgers = ((path, read_ledger(path, of[path])) for path in of if path.exists())
    source, verdicts = next((ledger for ledger in ledgers if ledger[1]), (None, []))
    groups = {group.arxiv: group for group in by_paper(verdicts, papers())}
    if options.paper is not None:
        if options.paper not in groups:
            allowed = one_of(groups, options.paper) or f"a paper with a file in {PAPERS}/"
            raise InputError("--paper", options.paper, allowed)
        groups = {options.paper: groups[options.paper]}
    if options.json:
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
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if not groups:
        print(f"no claims: there is no {PAPERS}/*.yaml here, and no ledger")
    for group in groups.values():
        about = group.about
        print(f"arXiv {group.arxiv}", *([f"{about.authors} ({about.year})"] if about else []))
        if about:
            print(about.title)
        _claims_table(group.claims)
        if group.ours:
            print("Our own claims beside the paper's")
            _claims_table(group.ours)
    print(f"Verdicts: {source}" if source else "No ledger yet: sims run NAME, then sims ledger.")


def schema(options: Namespace) -> None:
    """The JSON schema of a file that users write."""
    from sims.papers import Paper
    from sims.study.describing import VariablesSpec
    from sims.study.schema import ExperimentSpec
    from sims.study.specification import ProblemSpec
    from sims.study.sweepfile import DecomposeSpec, SweepSpec

    models: dict[str, "type[BaseModel]"] = {
        "experiment": ExperimentSpec,
        "problem": ProblemSpec,
        "decompose": DecomposeSpec,
        "sweep": SweepSpec,
        "paper": Paper,
        "variables": VariablesSpec,
    }
    print(json.dumps(models[options.what].model_json_schema(), indent=1, ensure_ascii=False))


def _claims_table(claims: "Sequence[ClaimRows]") -> None:
    rows: list[tuple[str, ...]] = [
        (row.id, row.statement, "\n".join(map(_line, row.verdicts)) or "not covered")
        for row in claims
    ]
    table(("claim", "what it says", "verdicts"), rows)


def _line(verdict: "Verdict") -> str:
    regime = "" if verdict.regime == "all" else f" [{verdict.regime}]"
    edited = ", edited after the simulation began" if verdict.edited else ""
    worth = f"; {verdict.worth}" if verdict.worth else ""
    return f"{verdict.verdict} ({verdict.experiment}{regime}{worth}){edited}"


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table for people."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    table.columns[0].no_wrap = True

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # as from print

    # A pipe has no width of its own, and 80 characters are few for a table.
    Quiet(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
