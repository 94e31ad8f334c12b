"""Step ``plot``: an experiment's figure and caption, and the panels of its claims."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sims.base import files
from sims.base.errors import InputError
from sims.figures import letters, save, scatter, style
from sims.figures.claims import sorted_effects
from sims.judgement.answers import Answer, by_id, condition_mask, read_answers
from sims.judgement.table import Table
from sims.report.text import render_caption
from sims.study import drawn
from sims.study.code import FORMATS
from sims.study.judge import answered
from sims.study.ledger import read_run
from sims.study.running import Run
from sims.study.schema import QuestionSpec
from sims.study.stored import read_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMS = "claims"
"""The folder of the panels of claims, next to an experiment's figure."""


def plot(run: Run, output: Path) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        run: the run.
        output: the figure, in the folder of the table of effects and of answers.json; its other
            formats and caption.md go there, too.

    Raises:
        InputError: a file cannot be read.
    """
    folder = output.parent
    study = run.study
    panels = read_panels(run, folder)
    results = panels.table.origin["results"]
    answers = by_id(_read_final_answers(run, results, folder))
    template = None if study.folder is None else study.folder / "caption.md"
    kinds = FORMATS[run.fidelity]
    caption = drawn.CAPTION
    if template is not None and template.is_file():
        numbers = study.numbers(panels)
        caption = render_caption(template, run.fidelity, run.settings, answers, numbers)
    np.random.seed(0)  # noqa: NPY002, seaborn jitters points by the global generator
    with style():
        figure = study.figure(panels, answers) or _default_figure(run, panels.table)
        letters(ax for ax in figure.axes if ax.get_title())
        headline = study.headline(panels)
    save(figure, output, run.identity, results, kinds)
    if headline is not None:
        save(headline, folder / "headline.png", run.identity, results, kinds)
    if run.fidelity != "smoke":
        plot_claims(run, panels.table, folder)
    files.write(caption, folder / "caption.md", f"caption.md of {run.identity}")


def plot_claims(run: Run, table: Table, folder: Path) -> None:
    """Draw the effects of every problem of the first question on each claim."""
    # Of several questions on a claim a confirmatory one if possible, else the first.
    first: dict[str, QuestionSpec] = {}
    for question in sorted(answered(table, run.spec), key=lambda question: question.status):
        first.setdefault(question.claim or question.id, question)
    for question in first.values():
        effect = table.effects[question.effect]
        count = len(effect.value if effect.predicted is None else effect.predicted)
        rows = table.parameters.iloc[:count]
        selected = condition_mask(rows, question.restrict.where if question.restrict else {})
        panel = sorted_effects(effect, selected, rows)
        path = folder / CLAIMS / f"{question.id}.svg"
        save(panel, path, run.identity, table.origin["results"], ["svg"])


def _default_figure(run: Run, table: Table) -> "Figure":
    """Figure of the effects of the first question against up to four parameters."""
    question = run.spec.questions[0]
    columns = table.parameters.select_dtypes("number")
    effect = table.effects[question.effect]
    return scatter(columns.iloc[:, :4], effect.value, effect.error, question.question)


def _read_final_answers(run: Run, results: str, folder: Path) -> list[Answer]:
    """Experiment's answers, from the run's ledger if it belongs to this run.

    The ledger has the final answers, adjusted for all claims of a paper together.

    Raises:
        InputError: the answers belong to other results than those of this digest.
    """
    path = folder / "answers.json"
    answers = read_answers(path, f"answers.json of {run.identity}")
    if {answer.results for answer in answers} != {results}:
        allowed = "answers computed from these results: judge again"
        raise InputError(str(path), "answers on other results", allowed)
    ledger = read_run(folder.parent, run.fidelity)
    adjusted = [answer for answer in ledger if answer.experiment == run.name]
    return adjusted if _keys(adjusted) == _keys(answers) else answers


def _keys(answers: list[Answer]) -> set[tuple[str, float | None, str]]:
    return {(answer.id, answer.p_value, answer.results) for answer in answers}
