"""Answers of an experiment from its results, by its statistic."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd

from sims.base.errors import InputError, one_of
from sims.judgement.answers import Answer, answer
from sims.judgement.effects import Effects
from sims.judgement.robustness import robustness
from sims.judgement.summaries import Share
from sims.study.declaration import salt
from sims.study.papers import paper_of
from sims.study.results import Results
from sims.study.running import Run
from sims.study.schema import QuestionSpec


def answer_questions(run: Run, results: Results) -> list[Answer]:
    """Answers to the questions of the file, in order.

    Raises:
        InputError: effects or parameters are invalid, or a question names an effect
            that there is not.
    """
    study = run.study
    path = run.study.folder
    with run.code_errors():
        families = study.effects(results)
        parameters = study.parameters(results)
        cells = study.specifications(results, families)
    if not isinstance(families, Mapping) or not all(
        isinstance(effects, Effects) for effects in families.values()
    ):
        raise InputError(f"{path}: effects", _kind(families), "a dict of name to Effects")
    if not isinstance(parameters, pd.DataFrame):
        raise InputError(f"{path}: parameters", _kind(parameters), "a pandas DataFrame")
    check_effects(run, families)
    answers = []
    for question in run.spec.questions:
        result = answer(
            question,
            families[question.effect],
            parameters,
            experiment=run.name,
            subject=_subject(question),
            law=str(run.spec.law.get("text", "")),
            smoke=run.fidelity == "smoke",
            labels=run.spec.labels,
            results=results.digest,
            seed=run.simulation.seed,
            salt=salt(),
            versions=results.provenance["simulation"]["versions"],
        )
        if question.id in cells and isinstance(result.result, Share):
            result = replace(result, robust=robustness(result.result, cells[question.id]))
        if result.counterexample is not None:
            with run.code_errors():
                result = replace(result, problem=study.file_of(result.counterexample))
        answers.append(result)
    return answers


def _subject(question: QuestionSpec) -> str:
    """Whose claim is on trial: a paper's, ours, one's own, or that of a formula of ours."""
    if question.validates:
        return "formula"
    if question.own:
        return "own"
    ours = [claim.id for claim in paper_of(question.paper).ours]
    return "ours" if (question.claim or question.id) in ours else "paper"


def check_effects(run: Run, names: Iterable[str]) -> None:
    """Raise InputError if a question uses an unknown effect."""
    for question in run.spec.questions:
        if question.effect not in (known := list(names)):
            location = f"{run.name}: questions, {question.id}, effect"
            raise InputError(location, question.effect, one_of(known, question.effect))


def _kind(value: object) -> str:
    """The returned value of a function, in words."""
    if isinstance(value, Mapping) and value:
        kinds = sorted({type(item).__name__ for item in value.values()})
        return f"a dict of {', '.join(kinds)}"
    return f"an empty {type(value).__name__}" if value == {} else type(value).__name__
