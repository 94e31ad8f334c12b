"""Step ``publish``: results/published and README.md, from the tables of a run.

The published folder is that of a run without results, so that its pages can be made again.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from sims.base.errors import InputError
from sims.base.places import experiments
from sims.judgement.answers import Answer, write_answers
from sims.report.learnt import fill_readme, readme_texts
from sims.steps.pages import pages
from sims.study import ledger
from sims.study.panels import PANELS, TABLE
from sims.study.running import Run

MADE_OF = (TABLE, PANELS)
"""Files of an experiment from which all others are made."""
SHOWN = ("caption.md", "figure.svg", "headline.png", "headline.svg", "claims")
COMMON = ("answers.md", "report.html", "counterexamples")
"""What is published besides: of an experiment, and of all together."""


def publish(of: Run | str, output: Path) -> None:
    """Publish an experiment, or all that ran at a fidelity, and fill README.md.

    Only their files are replaced, and those that all experiments share. Answers of another one
    whose tables are not published stay as they are.

    Raises:
        InputError: there are no tables.
    """
    target = ledger.PUBLISHED
    folder = target.with_name("publishing")
    shutil.rmtree(folder, ignore_errors=True)
    if isinstance(of, Run):
        fidelity, names, source = of.fidelity, [of.name], output.parents[1]
    else:
        fidelity, source = of, output.parent
        names = [name for name in experiments() if (source / name / TABLE).is_file()]
        if not names:
            raise InputError(str(source), "no finished run", "make reproduce, first")
    kept = _bring_published(target, folder, names, fidelity)
    for name in names:
        _copy(MADE_OF, source / name, folder / name)
    pages(fidelity, folder / "report.html")
    for id in kept:
        shutil.copy(target / "counterexamples" / f"{id}.yaml", folder / "counterexamples")
    answers = ledger.read_run(folder, fidelity)
    for name, text in readme_texts(answers).items():
        fill_readme(name, text)
    for name in names:
        shutil.rmtree(target / name, ignore_errors=True)
        _copy((*MADE_OF, *SHOWN), folder / name, target / name)
    shutil.rmtree(target / "counterexamples", ignore_errors=True)
    _copy(COMMON, folder, target)
    # The numbers of a counterexample are in its file; the published answer names its fields.
    brief = [
        replace(answer, problem=answer.problem and dict.fromkeys(answer.problem))
        for answer in answers
    ]
    write_answers(brief, target / "answers.json", f"answers.json of {fidelity}")
    shutil.rmtree(folder)


def _bring_published(target: Path, folder: Path, names: list[str], fidelity: str) -> list[str]:
    """Bring what is published of other experiments; the ids of counterexamples that stay."""
    others: dict[str, list[Answer]] = {}
    for answer in ledger.read_run(target):
        if answer.experiment in experiments() and answer.experiment not in names:
            others.setdefault(answer.experiment, []).append(answer)
    kept = []
    for name, answers in others.items():
        if (target / name / TABLE).is_file():
            _copy(MADE_OF, target / name, folder / name)
            continue
        identity = f"answers.json of {name} at {fidelity}"
        write_answers(answers, folder / name / "answers.json", identity)
        kept += [answer.id for answer in answers if answer.problem is not None]
    return kept


def _copy(names: tuple[str, ...], source: Path, target: Path) -> None:
    """Copy those of these files and folders that are there; the table of effects has to be."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, target / name)
        elif path.is_file():
            shutil.copy(path, target)
        elif name == TABLE:
            raise InputError(str(path), "file not found; publish the whole run")
