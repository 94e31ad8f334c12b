"""What judging the ledger again with other seeds came to, as the page and the overview show it."""

import hashlib
from pathlib import Path
from typing import Any

from sims.files import read_json


def other_seeds(
    folder: Path, fidelity: str, verdicts: int
) -> tuple[str, list[dict[str, Any]]] | None:
    """What ``seeds.json`` says of this very ledger: a sentence, and the rows that varied.

    Args:
        folder: results of one fidelity.
        fidelity: its name.
        verdicts: how many tested ones the ledger has.

    Returns:
        None if other seeds were not judged, or were judged beside another ledger.
    """
    path = folder / "seeds.json"
    if not path.exists():
        return None
    outcome = read_json(path, f"seeds.json of {fidelity}")
    if outcome.get("ledger") != hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest():
        return None
    rows = outcome["rows"]
    times = [sum(row["verdicts"].values()) for row in rows]
    drawn = "problems and draws" if outcome["redrawn"] else "draws of the same problems"
    sentence = (
        f"Judged again with {min(times)} to {max(times)} other {drawn} each: {len(rows)} of "
        f"{verdicts} verdicts that draws could have turned, {outcome['judged']:,} times in all; "
        f"{outcome['turned']} turned between supported and refuted, {outcome['inconclusive']} "
        "times one was inconclusive"
    )
    return sentence, [row for row in rows if set(row["verdicts"]) != {row["first"]}]
