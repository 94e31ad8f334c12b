"""``sims seeds``: which verdicts turn with other seeds."""

from argparse import Namespace
from pathlib import Path

from sims.study.reseeding import reseed


def seeds(options: Namespace) -> None:
    """Judge the ledger again with other seeds, and print the rows that came out otherwise."""
    folder = Path("results", options.fidelity)
    comparison = reseed(
        folder,
        options.fidelity,
        options.experiment or [],
        options.count,
        redrawn=not options.same_problems,
    )
    for row in comparison["rows"]:
        if row["turned"] or set(row["verdicts"]) != {row["first"]}:
            counts = ", ".join(f"{n} {kind}" for kind, n in row["verdicts"].items())
            name = f"{row['claim']} ({row['experiment']}, {row['regime']})"
            mark = "TURNED  " if row["turned"] else "        "
            print(f"{mark}{name}: {row['first']}; {counts}")
    rows, judged = comparison["rows"], comparison["judged"]
    print(
        f"{len(rows)} verdicts, {judged} times with other seeds: {comparison['turned']} turned "
        f"between supported and refuted; {comparison['inconclusive']} of {judged} inconclusive"
    )
