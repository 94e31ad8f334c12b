"""Step ``ledger``: the answers of all experiments of a run, and their tables."""

from pathlib import Path

from sims.base.files import write
from sims.report.answers import all_tables
from sims.study.ledger import gather


def ledger(fidelity: str, output: Path) -> None:
    """Write the answers of all experiments next to each other, and as tables in answers.md."""
    answers = gather(fidelity, output.parent)
    title = "# How often is it true?\n\n95 % intervals over problems in parentheses.\n\n"
    write(title + all_tables(answers), output.with_name("answers.md"), f"answers.md of {fidelity}")
