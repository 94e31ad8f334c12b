"""Report: the answers of a run and their background, as one HTML file."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from sims.base import files
from sims.base.errors import InputError
from sims.judgement.answers import Answer
from sims.report.answers import (
    answers_on,
    by_claim,
    further_tables,
    listing,
)
from sims.report.claims import PUBLISHED, background, page
from sims.report.text import environment, html, title_of
from sims.study.declaration import PUBLISHED_FIDELITY, Declaration
from sims.study.ledger import read_run
from sims.study.papers import MAIN, Paper, paper_of, papers

Page = tuple[str, str, str]
"""Id, question and text of a claim's page."""
Section = tuple[str, str, Paper | None, str]
"""Id, title, paper and table of a list of answers."""
WIDTH = 1400
"""Maximum width of a figure in pixels."""


class Article(NamedTuple):
    """Section of an experiment.

    Attributes:
        title: question of the experiment.
        figure: address of its figure.
        finding: what the figures show, in a sentence.
        headline: address of the figure at the top of the report; "" without one.
        text: caption and background, as HTML.
        pages: pages of its claims.
    """

    title: str
    figure: str
    finding: str
    headline: str
    text: str
    pages: list[Page]


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the report, a self-contained page.

    It lists the answer on every claim, below the headline figure if the run has one. Figures and
    claims' pages are those of the main paper's experiments, or of all experiments if there are
    none.

    Args:
        folder: results of one fidelity, with ``answers.json`` and a folder for each experiment.
        fidelity: name of the fidelity.
        output: the HTML file.

    Raises:
        InputError: there are no answers, or a file is damaged (:mod:`sims.base.files`).
    """
    answers = read_run(folder, fidelity)
    if not answers:
        raise InputError(str(folder), "nothing to report", "results of a finished run")
    shown = _shown(answers, folder)
    main, others = _lists(answers, shown)
    articles = [_article(name, answers, folder, fidelity) for name in shown]
    first = answers[0]
    template = environment(html=True).get_template("page.html.j2")
    text = template.render(
        fidelity=fidelity,
        main=main,
        others=others,
        articles=articles,
        salt=first.salt,
        versions=first.versions,
    )
    files.write(text, output, f"report.html of {fidelity}")


def _shown(answers: Sequence[Answer], folder: Path) -> list[str]:
    """Experiments whose figures are shown, in the order of the tables.

    They are those of the main paper, or all if there are none.
    """
    of_main = [answer for answer in answers if answer.paper == MAIN]
    rows = answers_on(paper_of(MAIN), of_main, "paper") if of_main else answers
    names = dict.fromkeys(answer.experiment for answer in (*rows, *of_main))
    return [name for name in names if (folder / name / "caption.md").exists()]


def _lists(answers: Sequence[Answer], shown: Sequence[str]) -> tuple[list[Section], list[Section]]:
    """Tables of answers: of the main paper, and of all others."""

    def address(answer: Answer) -> str:
        return f"#{answer.claim}" if answer.experiment in shown else ""

    main: list[Section] = []
    others: list[Section] = []
    asked = {answer.paper for answer in answers}
    for paper in papers().values():
        if paper.arxiv in asked:
            place = main if paper.arxiv == MAIN else others
            table = _markup(listing(paper, answers, address, brief=True))
            place.append((f"paper-{paper.arxiv}", paper.title, paper, table))
    for number, (title, text) in enumerate(further_tables(answers, address).items()):
        if text.strip():
            others.append((f"table-{number}", title, None, _markup(text)))
    return main, others


def _article(name: str, answers: Sequence[Answer], folder: Path, fidelity: str) -> Article:
    """Section of an experiment."""
    spec = Declaration.read(name).spec
    run = f"{name} at {fidelity}"
    caption = files.read(folder / name / "caption.md", f"caption.md of {run}").decode()
    figure = _figure(folder / name / "figure.png", f"figure.png of {run}")
    source = PUBLISHED if fidelity == PUBLISHED_FIDELITY else folder.as_posix()
    pages = []
    own = [answer for answer in answers if answer.experiment == name]
    for claim, rows in by_claim(own).items():
        text = _markup(page(rows, derivation=spec.derivation, run=source))
        pages.append((claim, rows[0].question, text))
    text = f"{caption.strip()}\n\n{background(spec, own[0], fidelity)}"
    path = folder / name / "headline.png"
    headline = _figure(path, f"figure.png of {run}") if path.exists() else ""
    return Article(spec.title, figure, title_of(caption), headline, _markup(text), pages)


def _markup(text: str) -> str:
    """Markdown as HTML, with links only to places on the page."""
    return html(text, lambda target: target[1:] if target.startswith("#") else None)


def _figure(path: Path, name: str) -> str:
    """A figure as a ``data:`` address, of at most :data:`WIDTH` pixels and 64 colours."""
    image = Image.open(io.BytesIO(files.read(path, name))).convert("RGB")
    image.thumbnail((WIDTH, image.height))
    small = io.BytesIO()
    image.quantize(64, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"
