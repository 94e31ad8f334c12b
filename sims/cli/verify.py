"""``sims verify`` and ``sims replay``: results looked at again, or computed again."""

import math
import sys
from argparse import Namespace
from pathlib import Path

from sims.cli.listing import table
from sims.study.verifying import verify as looks

MOST_LINES = 30


def verify(options: Namespace) -> int:
    """Look at results again; exit code 1 if something is not as it has to be."""
    found = looks(Path(options.folder))
    rows: list[tuple[str, ...]] = [
        (look.what, f"{look.checked:,}", f"{len(look.wrong):,}") for look in found
    ]
    table(("", "checked", "wrong"), rows)
    lines = [line for look in found for line in look.wrong]
    print(*lines[:MOST_LINES], sep="\n" if lines else "", end="\n" if lines else "")
    if len(lines) > MOST_LINES:
        print(f"… and {len(lines) - MOST_LINES:,} more")
    return 1 if lines else 0


def replay(options: Namespace) -> int:
    """Compute a row of a ledger again; exit code 1 if it is not what it was."""
    from sims.judgement import read_ledger
    from sims.study.replaying import replay as replayed
    from sims.study.replaying import row_of

    own = Path("results", options.fidelity)
    folder = own if (own / "ledger.json").is_file() else Path("results", "published")
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {options.fidelity}")
    row = row_of(ledger, options.row, options.regime)
    print(f"{row.claim} ({row.regime}), of {row.experiment}: {row.statement}")
    found = replayed(row, options.fidelity, folder, sys.stderr.isatty())
    rows: list[tuple[str, ...]] = [
        (name, *map(_number, pair)) for name, pair in found.numbers().items()
    ]
    rows.append(("verdict", row.verdict, f"{found.again.verdict} (by itself)"))
    table(("", str(folder / "ledger.json"), "computed again"), rows)
    print(*(f"Note: {note}." for note in found.notes), sep="\n", end="\n" if found.notes else "")
    difference = found.difference()
    same = difference <= options.rtol
    print(f"largest difference {difference:.2g}, {'at most' if same else 'above'} {options.rtol:g}")
    return 0 if same else 1


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.12g}"
