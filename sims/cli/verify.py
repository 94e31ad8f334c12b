"""``sims verify`` and ``sims replay``: results looked at again, or computed again."""

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
