"""The ledger: the answers of all experiments of a run, adjusted paper by paper."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import yaml

from sims.base.errors import InputError
from sims.base.files import replace
from sims.base.places import CARRIED, experiments
from sims.judgement.answers import Answer, adjusted, read_answers, write_answers
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
        answers += _read_answers(folder / name, f"{name} at {fidelity}")
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


def _read_answers(folder: Path, identity: str) -> list[Answer]:
    """Answers of an experiment with the results of its searches; empty if it has not run."""
    path = folder / "answers.json"
    if not path.exists():
        return []
    answers = read_answers(path, f"answers.json of {identity}")
    path = folder / "search.json"
    if path.exists():
        searched = read_answers(path, f"search.json of {identity}")
        answers = [_searched(answer, searched) for answer in answers]
    return answers


def _searched(original: Answer, searched: list[Answer]) -> Answer:
    """An answer with the result of a search, if the search belongs to this very answer."""
    for candidate in searched:
        unsearched = dataclasses.replace(
            candidate, searched=0, least=None, problem=original.problem
        )
        if unsearched == original:
            return candidate
    return original


def read_run(folder: Path, fidelity: str | None = None) -> list[Answer]:
    """Answers that :func:`gather` wrote, at one fidelity or any; empty without a file.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / "answers.json"
    seal = fidelity and f"answers.json of {fidelity}"
    return read_answers(path, seal) if path.is_file() else []


def published_answers() -> dict[Path, list[Answer]]:
    """Published answers by their folder: this directory's, and the package's to other questions."""
    return _first_of({home / PUBLISHED: read_run(home / PUBLISHED) for home in (Path(), CARRIED)})


def known_answers(fidelity: str) -> dict[Path, list[Answer]]:
    """Answers by their folder: of runs in this directory, then published ones to other questions.

    Args:
        fidelity: fidelity of the runs. The answer of an experiment that ran alone after the last
            complete run replaces that run's.

    Raises:
        InputError: a file is damaged.
    """
    folder = Path("results", fidelity)
    latest = {answer.id: answer for answer in read_run(folder, fidelity)}
    for path in sorted(folder.glob("*/answers.json")):
        home = path.parent
        for answer in _read_answers(home, f"{home.name} at {fidelity}"):
            known = latest.get(answer.id)
            if known is None or (known.p_value, known.results) != (answer.p_value, answer.results):
                latest[answer.id] = answer
    return _first_of({folder: [*latest.values()], **published_answers()})


def _first_of(sources: dict[Path, list[Answer]]) -> dict[Path, list[Answer]]:
    """Answers by their folder, without those to a question that an earlier folder answers."""
    known = set[str]()
    chosen = {}
    for folder, answers in sources.items():
        if rest := [answer for answer in answers if answer.id not in known]:
            chosen[folder] = rest
            known.update(answer.id for answer in rest)
    return chosen
