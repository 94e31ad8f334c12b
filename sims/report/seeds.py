"""What judging the ledger again with other seeds came to, as the page and the overview show it."""

import hashlib
from pathlib import Path
from typing import TypedDict

from sims.files import read_json


class SeedRow(TypedDict):
    """A verdict of the ledger beside those with other seeds: a row of ``seeds.json``."""

    claim: str
    experiment: str
    regime: str
    first: str
    verdicts: dict[str, int]
    turned: bool


def other_seeds(folder: Path, fidelity: str, verdicts: int) -> tuple[str, list[SeedRow]] | None:
    """What other seeds said about this very ledger: a sentence, and the rows that varied.

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
    rows: list[SeedRow] = outcome["rows"]
    times = sorted({sum(row["verdicts"].values()) for row in rows})
    often = f"{times[0]} to {times[-1]}" if len(times) > 1 else f"{times[0]}"
    drawn = "problems and draws" if outcome["redrawn"] else "draws of the same problems"
    sentence = (
        f"Judged again with {often} other {drawn} each: {len(rows)} of {verdicts} verdicts that "
        f"draws could have turned, {outcome['judged']:,} times in all; {outcome['turned']} turned "
        f"between supported and refuted, {outcome['inconclusive']} times one was inconclusive"
    )
    return sentence, [row for row in rows if set(row["verdicts"]) != {row["first"]}]
