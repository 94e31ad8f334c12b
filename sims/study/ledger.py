"""The ledger: the answers of all experiments of a run, adjusted paper by paper."""

import shutil
from collections import Counter
from pathlib import Path

import yaml

from sims.base.errors import InputError
from sims.base.files import replace
from sims.base.places import CARRIED, experiments
from sims.judgement.answers import Answer, read_answers, write_answers
from sims.judgement.families import adjusted
from sims.study.papers import papers

PUBLISHED = Path("results/published")
"""Folder of the published answers, here and in the package."""


def gather(fidelity: str, folder: Path) -> list[Answer]:
    """Answers of all experiments, adjusted by Holm's method and written to answers.json.

    A problem that refutes a claim is written to ``counterexamples/ID.yaml``. The families are those
    that the papers declare: a question that is added changes no other's p-value, and unanswered
    ones count, since a partial run must not have easier p-values than a complete one.

    Args:
        fidelity: name of the fidelity.
        folder: folder that contains the experiments' folders.

    Raises:
        InputError: there are no answers, a file is damaged, or two questions share an id.
    """
    answers = list[Answer]()
    for name in experiments():
        answers += read_run(folder / name, f"{name} at {fidelity}")
    if not answers:
        raise InputError(str(folder), "no answers", "a run: snakemake")
    if max(Counter(answer.id for answer in answers).values()) > 1:
        raise InputError("questions", "an id twice", "each id once in all experiments")
    answers = adjusted(answers, [paper.family for paper in papers().values()])
    write_answers(answers, folder / "answers.json", f"answers.json of {fidelity}")
    shutil.rmtree(home := folder / "counterexamples", ignore_errors=True)
    for answer in answers:
        if answer.problem is not None:
            text = yaml.safe_dump(answer.problem, sort_keys=False, allow_unicode=True)
            replace(text.encode(), home / f"{answer.id}.yaml")
    return answers


def read_run(folder: Path, fidelity: str | None = None) -> list[Answer]:
    """Answers that :func:`gather` or a step wrote, of one identity or any; empty without a file.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / "answers.json"
    seal = fidelity and f"answers.json of {fidelity}"
    return read_answers(path, seal) if path.is_file() else []


def known_answers(fidelity: str | None = None) -> dict[Path, list[Answer]]:
    """Answers by their folder: of runs here, published here, and of the package.

    A question's answer is in the first of these folders only.

    Args:
        fidelity: fidelity of the runs; None is published answers only.

    Raises:
        InputError: a file is damaged.
    """
    sources = {}
    if fidelity is not None:
        run = Path("results", fidelity)
        sources[run] = _latest(run, fidelity)
    for home in (Path(), CARRIED):
        sources[home / PUBLISHED] = read_run(home / PUBLISHED)
    known = set[str]()
    for folder, answers in sources.items():
        sources[folder] = [answer for answer in answers if answer.id not in known]
        known.update(answer.id for answer in answers)
    return sources


def _latest(folder: Path, fidelity: str) -> list[Answer]:
    """Answers of the last complete run, or of an experiment that ran alone after it."""
    latest = {answer.id: answer for answer in read_run(folder, fidelity)}
    for path in sorted(folder.glob("*/answers.json")):
        name = path.parent.name
        for answer in read_run(path.parent, f"{name} at {fidelity}"):
            known = latest.get(answer.id)
            if known is None or (known.p_value, known.results) != (answer.p_value, answer.results):
                latest[answer.id] = answer
    return [*latest.values()]
