"""The ledger: verdicts and answers of all experiments of a run, adjusted paper by paper."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import yaml

from sims.errors import InputError
from sims.files import replace
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts
from sims.judgement.answers import Answer, adjusted, read_answers, write_answers
from sims.kinds import is_tested
from sims.study.experiment import experiments, load_experiment


def gather(fidelity: str, folder: Path) -> tuple[list[Verdict], list[Answer]]:
    """Adjust what all judged experiments came to (Holm); write ledger.json and answers.json.

    Beside them, a problem that refutes an answer's claim is ``counterexamples/ID.yaml``. Claims
    that have not been judged count in the adjustment: a part of a run must not have easier p-values
    than the whole.

    Args:
        fidelity: its name.
        folder: of the folders of experiments.

    Raises:
        InputError: nothing has been judged, a file cannot be believed, or two questions share an
            id.
    """
    verdicts, answers = list[Verdict](), list[Answer]()
    for name in experiments():
        if (path := folder / name / "verdicts.json").exists():
            verdicts += read_ledger(path, f"verdicts.json of {name} at {fidelity}")
        if (path := folder / name / "answers.json").exists():
            own = read_answers(path, f"answers.json of {name} at {fidelity}")
            if (path := folder / name / "search.json").exists():
                found = read_answers(path, f"search.json of {name} at {fidelity}")
                own = [_searched(one, found) for one in own]
            answers += own
    if not verdicts and not answers:
        raise InputError(str(folder), "no verdicts", "a run: snakemake")
    verdicts, answers = adjust(verdicts, claims_by_paper()), adjusted(answers, always_by_paper())
    if verdicts:
        write_verdicts(verdicts, folder / "ledger.json", f"ledger.json of {fidelity}")
    if answers:
        write_answers(answers, folder / "answers.json", f"answers.json of {fidelity}")
    if len({one.id for one in answers}) < len(answers):
        raise InputError("questions", "an id twice", "each id once in all experiments")
    shutil.rmtree(home := folder / "counterexamples", ignore_errors=True)
    for one in answers:
        if one.problem is not None:
            text = yaml.safe_dump(one.problem, sort_keys=False, allow_unicode=True)
            replace(text.encode(), home / f"{one.id}.yaml")
    return verdicts, answers


def _searched(one: Answer, found: list[Answer]) -> Answer:
    """An answer with what a search found, if that was a search beside this very answer."""
    for each in found:
        before = dataclasses.replace(each, searched=0, least=None, problem=one.problem)
        if before == one:
            return each
    return one


def read_run(folder: Path, fidelity: str | None = None) -> tuple[list[Verdict], list[Answer]]:
    """The verdicts and answers that :func:`gather` wrote, at that fidelity or any; [] without.

    Raises:
        InputError: a file cannot be believed.
    """
    of = {path: fidelity and f"{path.name} of {fidelity}" for path in folder.glob("*.json")}
    ledger, answers = folder / "ledger.json", folder / "answers.json"
    return (
        read_ledger(ledger, of[ledger]) if ledger in of else [],
        read_answers(answers, of[answers]) if answers in of else [],
    )


def always_by_paper() -> dict[str, int]:
    """How many questions of the files here say always, by paper."""
    loaded = (load_experiment(name).spec.questions for name in experiments())
    return dict(Counter(q.paper for asked in loaded for q in asked if q.says))


def claims_by_paper() -> dict[str, int]:
    """How many tested claims the experiment files here make, by paper: the sizes of families."""
    loaded = (load_experiment(name).claims for name in experiments())
    return dict(Counter(c.paper for claims in loaded for c in claims if is_tested(c.kind)))
