"""Step ``plot``: an experiment's figure and caption, and the panels of its claims."""

from pathlib import Path
from typing import TYPE_CHECKING

from sims.base import files
from sims.base.errors import InputError
from sims.figures import letters, save, scatter, style
from sims.judgement.answers import Answer, by_id, read_answers
from sims.judgement.table import Table
from sims.report.text import render_caption
from sims.study import drawn
from sims.study.code import FORMATS
from sims.study.judge import read_table
from sims.study.ledger import read_run
from sims.study.panels import plot_claims
from sims.study.results import Results
from sims.study.running import Run
from sims.study.stored import results_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(run: Run, output: Path) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        run: the run.
        output: the figure, in the folder of simulation.nc, theory.nc and answers.json; its other
            formats and caption.md go there, too.

    Raises:
        InputError: a file cannot be read.
    """
    folder = output.parent
    study = run.study
    results = results_of(run, folder)
    table = read_table(run, folder)
    answers = by_id(_read_final_answers(run, results, table, folder))
    template = None if study.folder is None else study.folder / "caption.md"
    kinds = FORMATS[run.fidelity]
    caption = drawn.CAPTION
    if template is not None and template.is_file():
        caption = render_caption(template, results, answers, study.numbers(results))
    with style():
        figure = study.figure(results, answers) or _default_figure(run, table)
        letters(ax for ax in figure.axes if ax.get_title())
        headline = study.headline(results)
    save(figure, output, run.identity, results.digest, kinds)
    if headline is not None:
        save(headline, folder / "headline.png", run.identity, results.digest, kinds)
    if run.fidelity != "smoke":
        plot_claims(run, table, folder)
    files.write(caption, folder / "caption.md", f"caption.md of {run.identity}")


def _default_figure(run: Run, table: Table) -> "Figure":
    """Figure of the effects of the first question against up to four parameters."""
    question = run.spec.questions[0]
    columns = table.parameters.select_dtypes("number")
    effect = table.effects[question.effect]
    return scatter(columns.iloc[:, :4], effect.value, effect.error, question.question)


def _read_final_answers(run: Run, results: Results, table: Table, folder: Path) -> list[Answer]:
    """Experiment's answers, from the run's ledger if it belongs to this run.

    The ledger has the final answers, adjusted for all claims of a paper together.

    Raises:
        InputError: the answers belong to other results.
    """
    path = folder / "answers.json"
    answers = read_answers(path, f"answers.json of {run.identity}")
    if {table.origin["results"], *(answer.results for answer in answers)} != {results.digest}:
        allowed = "answers computed from these results: judge again"
        raise InputError(str(path), "answers on other results", allowed)
    ledger = read_run(folder.parent, run.fidelity)
    adjusted = [answer for answer in ledger if answer.experiment == run.name]
    return adjusted if _keys(adjusted) == _keys(answers) else answers


def _keys(answers: list[Answer]) -> set[tuple[str, float | None, str]]:
    return {(answer.id, answer.p_value, answer.results) for answer in answers}
