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
from sims.study.experiment import Experiment
from sims.study.judge import read_table
from sims.study.ledger import read_run
from sims.study.loading import load_study
from sims.study.panels import plot_claims
from sims.study.results import Results
from sims.study.stored import results_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(experiment: Experiment, output: Path) -> None:
    """Draw the experiment's figure and fill in its caption.

    Args:
        experiment: the experiment.
        output: the figure, in the folder of simulation.nc, theory.nc and answers.json; its other
            formats and caption.md go there, too.

    Raises:
        InputError: a file cannot be read.
    """
    folder = output.parent
    study = load_study(experiment)
    results = results_of(experiment, folder)
    table = read_table(experiment, folder)
    answers = by_id(_read_final_answers(experiment, results, table, folder))
    template = experiment.folder / "caption.md"
    kinds = FORMATS[experiment.fidelity]
    caption = drawn.CAPTION
    if template.is_file():
        caption = render_caption(template, results, answers, study.numbers(results))
    with style():
        figure = study.figure(results, answers) or _default_figure(experiment, table)
        letters(ax for ax in figure.axes if ax.get_title())
        headline = study.headline(results)
    save(figure, output, experiment.identity, results.digest, kinds)
    if headline is not None:
        save(headline, folder / "headline.png", experiment.identity, results.digest, kinds)
    if experiment.fidelity != "smoke":
        plot_claims(experiment, table, folder)
    files.write(caption, folder / "caption.md", f"caption.md of {experiment.identity}")


def _default_figure(experiment: Experiment, table: Table) -> "Figure":
    """Figure of the effects of the first question against up to four parameters."""
    question = experiment.spec.questions[0]
    columns = table.parameters.select_dtypes("number")
    effect = table.effects[question.effect]
    return scatter(columns.iloc[:, :4], effect.value, effect.error, question.question)


def _read_final_answers(
    experiment: Experiment, results: Results, table: Table, folder: Path
) -> list[Answer]:
    """Experiment's answers, from the run's ledger if it belongs to this run.

    The ledger has the final answers, adjusted for all claims of a paper together.

    Raises:
        InputError: the answers belong to other results.
    """
    path = folder / "answers.json"
    answers = read_answers(path, f"answers.json of {experiment.identity}")
    if {table.origin["results"], *(answer.results for answer in answers)} != {results.digest}:
        allowed = "answers computed from these results: judge again"
        raise InputError(str(path), "answers on other results", allowed)
    ledger = read_run(folder.parent, experiment.fidelity)
    adjusted = [answer for answer in ledger if answer.experiment == experiment.name]
    return adjusted if _keys(adjusted) == _keys(answers) else answers


def _keys(answers: list[Answer]) -> set[tuple[str, float | None, str]]:
    return {(answer.id, answer.p_value, answer.results) for answer in answers}
