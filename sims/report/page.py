"""The report: the answers of a run, and what is behind them, as one HTML file."""

import base64
import io
from html import escape
from pathlib import Path

from PIL import Image

from sims.base import files
from sims.base.errors import InputError
from sims.judgement.answers import Answer
from sims.report.answers import by_claim, found_besides, instrument, listing
from sims.report.claims import background, page
from sims.report.text import environment, html
from sims.study.experiment import load_experiment
from sims.study.ledger import read_run
from sims.study.papers import MAIN, Paper, papers

Section = tuple[str, str, str, str]
"""Id, title, source and table of a list of answers."""
WIDTH = 1400
"""Pixels across a figure, at most."""


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the page, which needs nothing beside it and loads nothing.

    Every claim's answer is listed; figures and claims' pages are those of the main paper's
    experiments, or of all where there are none of it.

    Args:
        folder: results of one fidelity, with ``answers.json`` and a folder for each experiment.
        fidelity: its name.
        output: the HTML file.

    Raises:
        InputError: there are no answers, or a file cannot be believed (:mod:`sims.base.files`).
    """
    answers, known = read_run(folder, fidelity), papers()
    if not answers:
        raise InputError(str(folder), "nothing to report", "results of a finished run")
    of_main = {answer.experiment for answer in answers if answer.paper == MAIN}
    names = dict.fromkeys(
        answer.experiment for answer in answers if not of_main or answer.experiment in of_main
    )
    shown = [name for name in names if (folder / name / "caption.md").exists()]

    def address(answer: Answer) -> str:
        return f"#{answer.claim}" if answer.experiment in shown else ""

    def markup(text: str) -> str:
        return html(text, lambda target: target[1:] if target.startswith("#") else None)

    main: list[Section] = []
    others: list[Section] = []
    for paper in known.values():
        if any(answer.paper == paper.arxiv for answer in answers):
            place = main if paper.arxiv == MAIN else others
            table = markup(listing(paper, answers, address, brief=True))
            place.append((f"paper-{paper.arxiv}", paper.title, _source(paper), table))
    tables = {
        "What we found besides": found_besides(answers, address),
        "Is the instrument right?": instrument(answers, address),
    }
    for number, (title, text) in enumerate(tables.items()):
        if text.strip():
            others.append((f"table-{number}", title, "", markup(text)))
    articles = []
    for name in shown:
        spec, run = load_experiment(name, allow_code=None).spec, f"{name} at {fidelity}"
        caption = files.read(folder / name / "caption.md", f"caption.md of {run}").decode()
        figure = _figure(folder / name / "figure.png", f"figure.png of {run}")
        claims = by_claim(answer for answer in answers if answer.experiment == name)
        pages = [
            (claim, rows[0].question, markup(page(rows, derivation=spec.derivation)))
            for claim, rows in claims.items()
        ]
        text = f"{caption.strip()}\n\n{background(spec, next(iter(claims.values()))[0], fidelity)}"
        articles.append((spec.title, figure, markup(text), pages))
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


def _source(paper: Paper) -> str:
    """Authors of a paper, where they are known, and its link, as HTML."""
    names = "" if paper.authors.startswith("not ") else f"{escape(paper.authors)}, "
    link = f"https://arxiv.org/abs/{paper.arxiv}"
    return f'{names}<a href="{link}">arXiv {paper.arxiv}</a>'


def _figure(path: Path, name: str) -> str:
    """A figure as a ``data:`` address, of at most :data:`WIDTH` pixels and 64 colours."""
    image = Image.open(io.BytesIO(files.read(path, name))).convert("RGB")
    image.thumbnail((WIDTH, image.height))
    small = io.BytesIO()
    image.quantize(64, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"
