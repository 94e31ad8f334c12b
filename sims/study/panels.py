"""Panels of claims: the effect of every problem of a question."""

from pathlib import Path

from sims.judgement.answers import condition_mask
from sims.judgement.table import Table
from sims.study.running import Run
from sims.study.schema import QuestionSpec

CLAIMS = "claims"
"""The folder of the panels, next to an experiment's figure."""


def plot_claims(run: Run, table: Table, folder: Path) -> None:
    """Draw the first question on every claim, ``claims/QUESTION.svg``."""
    from sims.figures import save
    from sims.figures.claims import sorted_effects

    for question in _first_questions(run):
        effect = table.effects[question.effect]
        count = len(effect.value if effect.predicted is None else effect.predicted)
        rows = table.parameters.iloc[:count]
        selected = condition_mask(rows, question.restrict.where if question.restrict else {})
        panel = sorted_effects(effect, selected, rows)
        path = folder / CLAIMS / f"{question.id}.svg"
        save(panel, path, run.identity, table.origin["results"], ["svg"])


def _first_questions(run: Run) -> list[QuestionSpec]:
    """First question on each claim, a confirmatory one if possible."""
    questions = sorted(run.spec.questions, key=lambda question: question.status)
    first: dict[str, QuestionSpec] = {}
    for question in questions:
        first.setdefault(question.claim or question.id, question)
    return list(first.values())
