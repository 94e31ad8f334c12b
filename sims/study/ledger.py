"""The ledger: the answers of all experiments of a run, adjusted paper by paper."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import yaml

from sims.base.errors import InputError
from sims.base.files import replace
from sims.base.places import experiments
from sims.judgement.answers import Answer, adjusted, read_answers, write_answers
from sims.study.experiment import load_experiment


def gather(fidelity: str, folder: Path) -> list[Answer]:
    """Adjust the answers of all experiments (Holm), and write answers.json.

    Beside it, a problem that refutes an answer's claim is ``counterexamples/ID.yaml``. Questions
    that have not been answered count in the adjustment: a part of a run must not have easier
    p-values than the whole.

    Args:
        fidelity: its name.
        folder: folder of the folders of experiments.

    Raises:
        InputError: nothing has been answered, a file cannot be believed, or two questions share an
            id.
    """
    answers = list[Answer]()
    families = Counter[str]()
    for name in experiments():
        for question in load_experiment(name).spec.questions:
            families[question.paper] += bool(question.says)
        answers += _read_answers(folder / name, f"{name} at {fidelity}")
    if not answers:
        raise InputError(str(folder), "no answers", "a run: snakemake")
    if max(Counter(answer.id for answer in answers).values()) > 1:
        raise InputError("questions", "an id twice", "each id once in all experiments")
    answers = adjusted(answers, families)
    write_answers(answers, folder / "answers.json", f"answers.json of {fidelity}")
    shutil.rmtree(home := folder / "counterexamples", ignore_errors=True)
    for answer in answers:
        if answer.problem is not None:
            text = yaml.safe_dump(answer.problem, sort_keys=False, allow_unicode=True)
            replace(text.encode(), home / f"{answer.id}.yaml")
    return answers


def _read_answers(folder: Path, identity: str) -> list[Answer]:
    """The answers of an experiment, with what its searches found; none where it has not run."""
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
    """The answers that :func:`gather` wrote, at that fidelity or any; [] without.

    Raises:
        InputError: the file cannot be believed.
    """
    path = folder / "answers.json"
    seal = fidelity and f"answers.json of {fidelity}"
    return read_answers(path, seal) if path.is_file() else []
