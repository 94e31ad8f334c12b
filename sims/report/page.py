"""Report: the answers of a run and their background, as one HTML file."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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

Section = tuple[str, str, Paper | None, str]
"""Id, title, paper and table of a list of answers."""
WIDTH = 1400
"""Maximum width of a figure in pixels."""


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the report, a self-contained page.

    It lists the answer on every claim, below the headline figure if the run has one. Figures and
    folded claims' pages are those of the main paper's experiments, or of all experiments if there
    are none.

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
    articles = [_article(name, answers, folder, fidelity) for name in shown]
    template = environment(html=True).get_template("page.html.j2")
    text = template.render(
        fidelity=fidelity,
        tables=_tables(answers, shown),
        articles=articles,
        first=answers[0],
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


def _tables(answers: Sequence[Answer], shown: Sequence[str]) -> list[Section]:
    """Tables of answers, by paper, and of those on no paper's claims."""

    def address(answer: Answer) -> str:
        return f"#{answer.claim}" if answer.experiment in shown else ""

    tables: list[Section] = []
    asked = {answer.paper for answer in answers}
    for paper in papers().values():
        if paper.arxiv in asked:
            text = listing(paper, answers, address, brief=True)
            tables.append((f"paper-{paper.arxiv}", paper.title, paper, _markup(text)))
    for number, (title, text) in enumerate(further_tables(answers, address, brief=True).items()):
        if text.strip():
            tables.append((f"table-{number}", title, None, _markup(text)))
    return tables


def _article(name: str, answers: Sequence[Answer], folder: Path, fidelity: str) -> dict[str, Any]:
    """Section of an experiment: its texts as HTML, addresses of its figures, pages of claims."""
    spec = Declaration.read(name).spec
    run = f"{name} at {fidelity}"
    caption = files.read(folder / name / "caption.md", f"caption.md of {run}").decode()
    source = PUBLISHED if fidelity == PUBLISHED_FIDELITY else folder.as_posix()
    pages = []
    own = [answer for answer in answers if answer.experiment == name]
    for claim, rows in by_claim(own).items():
        text = _markup(page(rows, derivation=spec.derivation, run=source))
        pages.append((claim, rows[0].question, text))
    text, _, tables = caption.partition("\n\n")
    headline = folder / name / "headline.png"
    return {
        "title": spec.title,
        "figure": _figure(folder / name / "figure.png", f"figure.png of {run}"),
        "finding": title_of(caption),
        "headline": _figure(headline, f"figure.png of {run}") if headline.exists() else "",
        "text": _markup(text),
        "behind": _markup(f"{tables.strip()}\n\n{background(spec, own[0], fidelity)}"),
        "pages": pages,
    }


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
