"""Step ``compare``: agreement of a finished run with the published answers."""

from itertools import chain
from pathlib import Path

from sims.judgement.agreement import agreement
from sims.study import ledger


def compare(fidelity: str, marker: Path) -> None:
    """Print the report's path, and how many answers agree with the published ones, if any."""
    print(marker.with_name("report.html"))
    if published := [*chain(*ledger.known_answers().values())]:
        found = agreement(published, ledger.read_run(marker.parent, fidelity))
        print(f"This run and the published one gave {found.in_words()}")
        if found.differing:
            print("Questions with another answer:", ", ".join(found.differing))
