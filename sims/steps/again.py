"""Step ``again``: agreement of a run with other draws with the published answers."""

from pathlib import Path

from sims.judgement.agreement import agreement
from sims.report.learnt import fill_readme
from sims.study import ledger


def again(fidelity: str, marker: Path) -> None:
    """Print how many answers from fresh draws agree with the published ones; fill in README.md."""
    found = agreement(ledger.read_run(ledger.PUBLISHED), ledger.read_run(marker.parent))
    text = f"New random problems gave {found.in_words()}\n"
    fill_readme("again", text)
    print(text, end="")
