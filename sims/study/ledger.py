"""The ledger: the answers of all experiments of a run, adjusted paper by paper."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import yaml

from sims.errors import InputError
from sims.files import replace
from sims.judgement.answers import Answer, adjusted, read_answers, write_answers
from sims.study.experiment import experiments, load_experiment


def gather(fidelity: str, folder: Path) -> list[Answer]:
    """Adjust the answers of all experiments (Holm), and write answers.json.

    Beside it, a problem that refutes an answer's claim is ``counterexamples/ID.yaml``. Questions
    that have not been answered count in the adjustment: a part of a run must not have easier
    p-values than the whole.

    Args:
        fidelity: its name.
        folder: of the folders of experiments.

    Raises:
        InputError: nothing has been answered, a file cannot be believed, or two questions share an
            id.
    """
    answers, always = list[Answer](), Counter[str]()
    for name in experiments():
        always.update(q.paper for q in load_experiment(name).spec.questions if q.says)
        if (path := folder / name / "answers.json").exists():
            found = read_answers(path, f"answers.json of {name} at {fidelity}")
            if (path := folder / name / "search.json").exists():
                searched = read_answers(path, f"search.json of {name} at {fidelity}")
                found = [_searched(one, searched) for one in found]
            answers += found
    if not answers:
        raise InputError(str(folder), "no answers", "a run: snakemake")
    if len({one.id for one in answers}) < len(answers):
        raise InputError("questions", "an id twice", "each id once in all experiments")
    answers = adjusted(answers, always)
    write_answers(answers, folder / "answers.json", f"answers.json of {fidelity}")
    shutil.rmtree(home := folder / "counterexamples", ignore_errors=True)
    for one in answers:
        if one.problem is not None:
            text = yaml.safe_dump(one.problem, sort_keys=False, allow_unicode=True)
            replace(text.encode(), home / f"{one.id}.yaml")
    return answers


def _searched(one: Answer, found: list[Answer]) -> Answer:
    """An answer with what a search found, if that was a search beside this very answer."""
    for each in found:
        before = dataclasses.replace(each, searched=0, least=None, problem=one.problem)
        if before == one:
            return each
    return one


def read_run(folder: Path, fidelity: str | None = None) -> list[Answer]:
    """The answers that :func:`gather` wrote, at that fidelity or any; [] without.

    Raises:
        InputError: the file cannot be believed.
    """
    path = folder / "answers.json"
    of = fidelity and f"answers.json of {fidelity}"
    return read_answers(path, of) if path.is_file() else []
