"""``sims experiments``, ``sims claims``, ``sims schema``: what there is."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from sims.fingerprint import EXPERIMENTS
from sims.fingerprint import experiments as names
from sims.validation import Strict, read_yaml


def experiments(options: Namespace) -> None:
    """Name, title and claims of every experiment of this folder."""
    rows: list[dict[str, Any]] = []
    for name in names():
        data = read_yaml(EXPERIMENTS / name / "experiment.yaml")
        claims = list(dict.fromkeys(str(c.get("id")) for c in data.get("claims") or []))
        rows.append({"name": name, "title": str(data.get("title")), "claims": claims})
    if options.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if not rows:
        print(f"no experiments: there is no {EXPERIMENTS}/*/experiment.yaml here")
        return
    table(
        ("experiment", "title", "claims"),
        [(r["name"], r["title"], ", ".join(r["claims"])) for r in rows],
    )
    print("Run one:  snakemake --config experiment=NAME fidelity=smoke|standard|paper")


def claims(options: Namespace) -> None:
    """Every claim of the paper, with the latest verdicts on it."""
    from sims.judgement import PAPER_CLAIMS, read_ledger

    own = Path("results", options.fidelity, "ledger.json")
    published = Path("results", "published", "ledger.json")
    ledgers = ((path, read_ledger(path)) for path in (own, published) if path.is_file())
    source, verdicts = next((found for found in ledgers if found[1]), (None, []))
    extra = dict.fromkeys(v.claim for v in verdicts if v.claim not in PAPER_CLAIMS)
    rows: list[dict[str, Any]] = []
    for claim in [*PAPER_CLAIMS, *extra]:
        found = [v for v in verdicts if v.claim == claim]
        statement = PAPER_CLAIMS.get(claim) or found[0].statement
        results = [
            {"experiment": v.experiment, "regime": v.regime, "verdict": v.verdict} for v in found
        ]
        rows.append({"claim": claim, "statement": statement, "verdicts": results})
    if options.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for heading, ours in (("The paper's claims", False), ("Our own claims", True)):
        chosen = [r for r in rows if (r["claim"] in extra) == ours]
        if chosen:
            print(heading)
            table(
                ("claim", "what it says", "verdicts"),
                [
                    (
                        r["claim"],
                        r["statement"],
                        "\n".join(map(_line, r["verdicts"])) or "not covered",
                    )
                    for r in chosen
                ],
            )
    print(f"Verdicts: {source}" if source else "No ledger yet: run snakemake first.")


def schema(options: Namespace) -> None:
    """The JSON schema of the experiment file, of a problem, or of decompose's file."""
    from sims.cli.decompose import DecomposeSpec
    from sims.experiment import ExperimentSpec
    from sims.specification import ProblemSpec

    models: dict[str, type[Strict]] = {
        "experiment": ExperimentSpec,
        "problem": ProblemSpec,
        "decompose": DecomposeSpec,
    }
    print(json.dumps(models[options.what].model_json_schema(), indent=1, ensure_ascii=False))


def _line(row: dict[str, Any]) -> str:
    regime = "" if row["regime"] == "all" else f" [{row['regime']}]"
    return f"{row['verdict']} ({row['experiment']}{regime})"


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
    # A pipe has no width of its own, and 80 characters are few for a table.
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
