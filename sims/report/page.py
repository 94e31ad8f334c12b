"""The report: the answers of a run, and what is behind them, as one HTML file."""

import base64
import io
from pathlib import Path

from PIL import Image

from sims import files
from sims.errors import InputError
from sims.papers import MAIN, papers
from sims.report.answers import listing, page
from sims.report.text import environment, html
from sims.study.experiment import load_experiment
from sims.study.ledger import read_run

WIDTH = 1400
"""Pixels across a figure, at most."""


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the page, which needs nothing beside it and loads nothing.

    All answers are listed; figures and details are those of the main paper's experiments, or of all
    where there are none of it.

    Args:
        folder: results of one fidelity, with ``answers.json`` and a folder for each experiment.
        fidelity: its name.
        output: the HTML file.

    Raises:
        InputError: there are no answers, or a file cannot be believed (:mod:`sims.files`).
    """
    answers, known = read_run(folder, fidelity), papers()
    if not answers:
        raise InputError(str(folder), "nothing to report", "results of a finished run")
    names = list(dict.fromkeys(one.experiment for one in answers))
    shown = [n for n in names if any((a.experiment, a.paper) == (n, MAIN) for a in answers)]
    shown = [name for name in shown or names if (folder / name / "caption.md").exists()]

    def inside(target: str) -> str | None:
        return target[1:] if target.startswith("#") else None

    lists = [
        (
            paper,
            html(
                listing(paper, answers, lambda a: f"#{a.experiment}" * (a.experiment in shown)),
                inside,
            ),
        )
        for paper in known.values()
        if any(one.paper == paper.arxiv for one in answers)
    ]
    articles = []
    for name in shown:
        spec, whose = load_experiment(name, allow_code=None).spec, f"{name} at {fidelity}"
        caption = files.read(folder / name / "caption.md", f"caption.md of {whose}").decode()
        text = page(name, spec, [a for a in answers if a.experiment == name], caption, fidelity)
        figure = _figure(folder / name / "figure.png", f"figure.png of {whose}")
        articles.append((name, spec.title, figure, html(text, inside)))
    first = answers[0]
    made = environment(html=True).get_template("page.html.j2")
    text = made.render(
        fidelity=fidelity, lists=lists, articles=articles, salt=first.salt, versions=first.versions
    )
    files.write(text, output, f"report.html of {fidelity}")


def _figure(path: Path, whose: str) -> str:
    """A figure as a ``data:`` address, of at most :data:`WIDTH` pixels and 64 colours."""
    image = Image.open(io.BytesIO(files.read(path, whose))).convert("RGB")
    image.thumbnail((WIDTH, image.height))
    small = io.BytesIO()
    image.quantize(64, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}"
