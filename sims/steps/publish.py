"""Step ``publish``: the published answers, figures and pages, from a finished run."""

import shutil
from dataclasses import replace
from pathlib import Path

from sims.base.errors import InputError
from sims.base.places import experiments
from sims.judgement.answers import write_answers
from sims.report.learnt import fill_readme, readme_texts
from sims.study import ledger
from sims.study.judge import TABLE
from sims.study.panels import CLAIMS

PUBLISHED = ("answers.json", "answers.md", "report.html")
"""Files of a finished run to publish, next to figures, captions and counterexamples."""


def publish(fidelity: str, report: Path) -> None:
    """Copy a finished run's answers, effects, figures and report, and fill README.md."""
    source, target = report.parent, ledger.PUBLISHED
    figures = [drawn for name in experiments() if (drawn := _figure_of(source / name))]
    files = [path for name in PUBLISHED if (path := source / name).is_file()]
    if len(files) < len(PUBLISHED) or not figures:
        raise InputError(str(source), "no finished run", "make reproduce, first")
    answers = ledger.read_run(source, fidelity)
    texts = readme_texts(answers)
    shutil.rmtree(target, ignore_errors=True)
    (target / CLAIMS).mkdir(parents=True)
    for figure in figures:
        name = figure.parent.name
        shutil.copy(figure, target / f"{name}{figure.suffix}")
        shutil.copy(figure.with_name("caption.md"), target / f"{name}.md")
        shutil.copy(figure.with_name(TABLE), target / f"{name}.nc")
    for panel in source.glob(f"*/{CLAIMS}/*.svg"):
        shutil.copy(panel, target / CLAIMS)
    # README.md is shown on white, the site on any ground.
    for path in [*files, *source.glob("*/headline.png"), *source.glob("*/headline.svg")]:
        shutil.copy(path, target)
    for name, text in texts.items():
        fill_readme(name, text)
    # The numbers of a counterexample are in its file; the published answer names its fields.
    brief = [
        replace(answer, problem=answer.problem and dict.fromkeys(answer.problem))
        for answer in answers
    ]
    write_answers(brief, target / "answers.json", f"answers.json of {fidelity}")
    if (source / "counterexamples").is_dir():
        shutil.copytree(source / "counterexamples", target / "counterexamples")


def _figure_of(folder: Path) -> Path | None:
    """The figure of an experiment: its SVG, or the PNG of a smoke run; None without one."""
    paths = (folder / f"figure.{kind}" for kind in ("svg", "png"))
    return next((path for path in paths if path.is_file()), None)
