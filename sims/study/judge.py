"""Answers of an experiment: its effects in a table, and the answers that the table gives."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.base.errors import InputError, one_of
from sims.judgement.answers import (
    Answer,
    answer,
    as_asked,
    check_kind,
    condition_mask,
    counterexample,
)
from sims.judgement.effects import Effects
from sims.judgement.robustness import Cell, robustness
from sims.judgement.summaries import Share, summarize
from sims.judgement.table import Table
from sims.study.declaration import salt
from sims.study.panels import Panels
from sims.study.papers import paper_of
from sims.study.results import Results
from sims.study.schema import ExperimentSpec, QuestionSpec

if TYPE_CHECKING:
    from sims.study.running import Run


def panels_of(run: "Run", results: Results) -> Panels:
    """What answers, figures and captions are made of, by a run's study.

    Errors of the study's code are as it raises them; callers use ``run.code_errors()``.

    Raises:
        InputError: effects, parameters or arrays are invalid, or a question names no effect, or one
            of another kind.
    """
    table = tabulate(run, results)
    arrays = run.study.panels(results)
    if not isinstance(arrays, xr.Dataset):
        raise InputError(f"{run.study.folder}: panels", _kind(arrays), "an xarray Dataset")
    failures = {}
    for question in run.spec.questions:
        number = counterexample(question, table.effects[question.effect], table.parameters)
        if number is not None:
            failures[str(number)] = run.study.file_of(number)
    return Panels(table, arrays, failures)


def tabulate(run: "Run", results: Results) -> Table:
    """Table of the effects that an experiment's file names, as it is read; raises as above."""
    study = run.study
    path = run.study.folder
    effects = study.effects(results)
    parameters = study.parameters(results)
    if not isinstance(effects, Mapping) or not all(
        isinstance(each, Effects) for each in effects.values()
    ):
        raise InputError(f"{path}: effects", _kind(effects), "a dict of name to Effects")
    if not isinstance(parameters, pd.DataFrame):
        raise InputError(f"{path}: parameters", _kind(parameters), "a pandas DataFrame")
    check_effects(run, {name: each.kind for name, each in effects.items()})
    origin = {
        "experiment": run.name,
        "fidelity": run.fidelity,
        "results": results.digest,
        "seed": run.simulation.seed,
        "salt": salt(run.name, run.fidelity),
        "versions": results.provenance["simulation"]["versions"],
    }
    kept = dict[str, Effects]()
    for question in run.spec.questions:
        for name in _effects_of(question):
            called = replace(effects[name], halves=None, size=None, size_error=None, components={})
            kept.setdefault(name, called)
    kept |= {question.effect: effects[question.effect] for question in run.spec.questions}
    # As the file has it, so that answers are a function of the file.
    return Table.of(Table(kept, parameters, origin).dataset())


def answers_of(
    table: Table, spec: ExperimentSpec, failures: Mapping[str, Any] | None = None
) -> list[Answer]:
    """Answers to the questions of an experiment's file from its table of effects alone.

    A published table has no effects of later questions: they have no answers yet.

    Args:
        table: the table.
        spec: the file.
        failures: number of a problem that fails, as text, to its description.
    """
    origin = dict(table.origin)
    smoke = origin.pop("fidelity") == "smoke"
    origin.pop("settings", None)
    answers = []
    for question in answered(table, spec):
        found = answer(
            question,
            table.effects[question.effect],
            table.parameters,
            smoke=smoke,
            labels=spec.labels,
            subject=_subject(question),
            abstract=bool(question.paper) and not paper_of(question.paper).full_text,
            law=str(spec.law.get("text", "")),
            **origin,
        )
        cells = cells_of(table, question)
        if cells and isinstance(found.result, Share):
            found = replace(found, robust=robustness(found.result, cells))
        if found.counterexample is not None:
            found = replace(found, problem=(failures or {}).get(str(found.counterexample)))
        answers.append(found)
    return answers


def answered(table: Table, spec: ExperimentSpec) -> list[QuestionSpec]:
    """Questions whose effects a table has."""
    return [one for one in spec.questions if table.effects.keys() >= {*_effects_of(one)}]


def cells_of(table: Table, question: QuestionSpec) -> list[Cell]:
    """Shares of a question under every combination of its specifications; empty without any.

    Choices of problems stand in the place of the question's restriction.
    """
    declared = question.specifications
    if declared is None:
        return []
    cells = []
    if declared.problems:
        question = question.model_copy(update={"restrict": None})
    for effect, named in declared.effects.items():
        effects, among = as_asked(question, table.effects[effect], table.parameters)
        for values in itertools.product(*declared.problems.values()):
            selected = among.copy()
            for choice, value in zip(declared.problems, values, strict=True):
                selected &= condition_mask(table.parameters, declared.problems[choice][value])
            share = summarize(effects, selected)
            if isinstance(share, Share):
                choices = named | dict(zip(declared.problems, values, strict=True))
                cells.append(Cell(choices, share))
    return cells


def _effects_of(question: QuestionSpec) -> list[str]:
    """Names of the effects that a question uses."""
    others = question.specifications.effects if question.specifications else ()
    return [question.effect, *others]


def _subject(question: QuestionSpec) -> str:
    """Whose claim is on trial: a paper's, ours, one's own, or that of a formula of ours."""
    if question.validates:
        return "formula"
    if question.own:
        return "own"
    ours = [claim.id for claim in paper_of(question.paper).ours]
    return "ours" if (question.claim or question.id) in ours else "paper"


def check_effects(run: "Run", kinds: Mapping[str, str]) -> None:
    """Refuse a question that names no effect, or one of another kind than its own.

    Args:
        run: the run.
        kinds: name of each effect to its kind.
    """
    for question in run.spec.questions:
        for effect in _effects_of(question):
            if effect not in kinds:
                location = f"{run.name}: questions, {question.id}, effect"
                raise InputError(location, effect, one_of(kinds, effect))
        check_kind(question, kinds[question.effect], f"{run.name}: ")


def _kind(value: object) -> str:
    """The returned value of a function, in words."""
    if isinstance(value, Mapping) and value:
        kinds = sorted({type(item).__name__ for item in value.values()})
        return f"a dict of {', '.join(kinds)}"
    return type(value).__name__
