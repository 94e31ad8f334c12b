"""Answers: how often a claim holds over problems that nobody chose, and where it stops.

A question has one number per problem, its effect. The unit is the problem: intervals are over
problems, and Monte Carlo errors decide only which problems can be called. No JAX.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Discriminator, RootModel

from sims.base.errors import InputError, one_of
from sims.base.files import read_json, write_json
from sims.base.validation import parse
from sims.judgement import conventions
from sims.judgement.changes import Change, changes, deciding_field
from sims.judgement.effects import Effects
from sims.judgement.failures import drawn_fields, failure_in_words
from sims.judgement.robustness import Robustness
from sims.judgement.summaries import Gap, Mean, Result, Share, summarize
from sims.judgement.wording import percent, percent_range

if TYPE_CHECKING:
    from sims.study.schema import QuestionSpec


AnyResult = Annotated[Result, Discriminator("kind")]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question: a row of ``answers.json``.

    Attributes:
        paper: arXiv id; "" for a claim of no paper.
        experiment: its name.
        id: id of the question.
        claim: id of the paper's claim; that of the question for a claim of no paper.
        question: text of the question, on one line.
        quantity: quantity whose relative change the result reports; None without one.
        status: confirmatory, which gets a word, or exploratory.
        subject: "paper" (a claim of a paper), "ours" (a claim of this suite), "own" (a claim of no
            paper), or "formula" (one of ours, compared with simulation).
        own: statement of a claim of no paper; None for others.
        says: "always" if the claim says so.
        abstract: whether only the abstract of the paper was read.
        built_in: why the law builds the answer in; "" where it does not.
        result: result for all problems.
        word: word for how often it holds; "" for an estimate or an exploratory question.
        law: description of the law.
        restriction: description of the law's restriction.
        strata: name to result, for strata with enough problems.
        conditions: field of the law that decides alone, with the share at each of its values,
            none of which is between 5 and 95 %; None if there is none.
        robust: whether the word holds over the specifications; None if there are none.
        where: up to two parameters along which the answer changes most.
        always: "no" if a failure is confirmed on fresh draws, else "not refuted"; "" if the claim
            does not say always.
        p_value: p-value, from one half of the draws, of the failure found by the other half.
        adjusted: p-value adjusted by Holm's method over the family.
        family: number of questions in the paper's family; 0 outside it.
        counterexample: index of the failing problem, if it is confirmed.
        worst: that problem: under "effect" a sentence on its failure, and its drawn fields.
        problem: that problem as ``sims decompose`` reads it; as published, its fields without their
            numbers, which are in ``counterexamples/``.
        results: digest of the result files.
        seed: random seed for the problems.
        salt: salt of the seed.
        versions: versions of packages.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    paper: str
    experiment: str
    id: str
    claim: str
    question: str
    quantity: str | None = None
    status: str
    says: str | None
    result: AnyResult
    word: str
    law: str
    subject: str = "paper"
    abstract: bool = False
    built_in: str = ""
    own: str | None = None
    restriction: str = ""
    strata: dict[str, AnyResult] = field(default_factory=dict)
    conditions: Change | None = None
    robust: Robustness | None = None
    where: list[Change] = field(default_factory=list)
    always: str = ""
    p_value: float = 1.0
    adjusted: float | None = None
    family: int = 0
    counterexample: int | None = None
    worst: dict[str, str] = field(default_factory=dict)
    problem: dict[str, Any] | None = None
    results: str = ""
    seed: int = 0
    salt: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def shares(self) -> dict[str, Share]:
        """Share of all problems, ``all``, and of each stratum; empty for gaps and means."""
        results = {"all": self.result, **self.strata}
        return {name: result for name, result in results.items() if isinstance(result, Share)}

    def spoken(self) -> str:
        """Word of the answer, with the tolerance of gaps, and the verdict on the claim as stated.

        Without a word, see :meth:`word_in_full`.
        """
        stated = self.as_stated()
        return f"{self.word_in_full()}; {stated}" if stated else self.word_in_full()

    def sentence(self, subject: str, predicate: str) -> str:
        """Sentence on how often the claim holds: "The error usually falls".

        A word that is no adverb follows after a colon.
        """
        if self.word in (*conventions.WORDS, "never"):
            return f"{subject} {self.word} {predicate}"
        return f"{subject} {predicate}: {self.word_in_full()}"

    def how_often(self) -> str:
        """Share of the simulated problems in which the claim holds, or the gap is within tolerance.

        In percent, from none to all of the undecided ones; "none" without problems.
        """
        result = self.result
        counted = result.near if isinstance(result, Gap) else getattr(result, "simulated", None)
        return percent_range(*counted.bracket) if counted else "none"

    def how_much(self) -> str:
        """Quantity with the median and quartiles of its change; "" where no size is reported."""
        sizes = self.result.how_much() if isinstance(self.result, Share) else ""
        return f"{self.quantity} {sizes}" if sizes else ""

    def changes(self) -> str:
        """Changes of the answer along parameters, in words."""
        return "; ".join(change.in_words() for change in self.where)

    def word_in_full(self) -> str:
        """Word of the answer, with the tolerance of gaps.

        Without a word it is "estimate" for a mean, and "exploratory" for a share or gap.
        """
        near = ""
        if isinstance(self.result, Gap) and self.result.tolerance and self.word:
            enough = self.result.problems >= conventions.FEWEST
            near = f" within {percent(self.result.tolerance)}" if enough else ""
        wordless = "estimate" if isinstance(self.result, Mean) else "exploratory"
        return f"{self.word or wordless}{near}"

    def as_stated(self) -> str:
        """Verdict on the claim as it is stated, whatever holds often; "" where none is due.

        A claim that is built in says why. One that says "always" is false if a failure is
        confirmed, under our reading if only the paper's abstract was read; else the share of
        failures has an upper bound.
        """
        if self.built_in:
            return f"built in ({self.built_in})"
        if not self.says or not self.always:
            return ""
        if self.always == "no":
            return "false under our reading" if self.abstract else "false as stated"
        counted = self.result.simulated if isinstance(self.result, Share) else None
        if counted is None:
            return NO_FAILURE
        most = percent(counted.most_failing)
        return f"{NO_FAILURE} in {counted.total} problems (at most {most} fail)"


NO_FAILURE = "no failure found"
"""Verdict on a claim that says "always", and has no confirmed failure."""
FACTS = {"paper", "own", "id", "question", "quantity", "status", "says", "built_in"}
"""Facts of a question that its answer repeats."""


def answer(
    question: "QuestionSpec",
    effects: Effects,
    parameters: pd.DataFrame,
    *,
    smoke: bool = False,
    labels: Mapping[str, str] | None = None,
    **origin: Any,
) -> Answer:
    """Answer to a question from its effects.

    Args:
        question: the question in the experiment's file.
        effects: effects of N simulated problems, and of M ≥ N by theory.
        parameters: drawn fields, one row for each of the M problems, the N simulated ones first.
        smoke: whether the run has too few problems for any word.
        labels: names of the columns of ``parameters`` for readers.
        **origin: experiment, subject, law, results, seed, salt and versions.

    Raises:
        InputError: the effect is of another kind than the question's, or the question names no
            quantity of an effect that has a size, a condition names a missing column, or lengths
            disagree.
    """
    check_kind(question, effects.kind)
    if (question.quantity is None) != (effects.size is None):
        size = f"the effect {question.effect!r} has"
        allowed = f"nothing: {size} no size" if effects.size is None else f"what {size} the size of"
        raise InputError(f"questions, {question.id}, quantity", question.quantity, allowed)
    names = question.compared
    if names and len(names) - effects.value.shape[1] not in (0, 1):
        allowed = "a name for each pair, or those of a ladder, one more"
        raise InputError(f"questions, {question.id}, compared", names, allowed)
    count = _count(question.id, effects, len(parameters))
    parameters = parameters.iloc[:count]
    labels = labels or {}
    effects, selected = as_asked(question, effects, parameters)
    result = summarize(effects, selected)
    failing, p = effects.confirmed_failure(selected)
    can_fail = np.isfinite(effects.margin[selected[: len(effects.value)]]).any()
    always = verdict(p) if can_fail else ""
    found = Answer(
        **question.model_dump(include=FACTS),
        claim=question.claim or question.id,
        result=result,
        word="" if question.status == "exploratory" else result.word,
        restriction=question.restrict.text if question.restrict else "",
        strata=_strata(question, effects, parameters, selected),
        always=always,
        p_value=p,
        **origin,
    )
    if always == "no" and failing is not None:
        worst = {"effect": failure_in_words(question, effects, failing)}
        worst |= drawn_fields(parameters.iloc[failing], labels)
        found = replace(found, counterexample=failing, worst=worst)
    if smoke:
        return replace(found, word=conventions.TOO_FEW if found.word else "")
    return _with_changes(found, effects, selected, parameters, labels)


def as_asked(
    question: "QuestionSpec", effects: Effects, parameters: pd.DataFrame
) -> tuple[Effects, np.ndarray]:
    """The effects under the question's tolerance, and the mask (M,) of the problems it is about."""
    conditions = question.restrict.where if question.restrict else {}
    selected = condition_mask(parameters, conditions)
    tolerance = conventions.tolerance(question.tolerance)
    return effects.within(tolerance, question.level_holds), selected


def counterexample(
    question: "QuestionSpec", effects: Effects, parameters: pd.DataFrame
) -> int | None:
    """Number of the problem whose failure fresh draws confirm; None without one.

    Arguments are as of :func:`answer`.
    """
    effects, selected = as_asked(question, effects, parameters)
    failing, p = effects.confirmed_failure(selected)
    return failing if verdict(p) == "no" else None


def check_kind(question: "QuestionSpec", kind: str, location: str = "") -> None:
    """Raise InputError if a question's effect gives another kind of summary."""
    if question.asks != kind:
        allowed = f"{kind}, which the effect {question.effect!r} is"
        raise InputError(f"{location}questions, {question.id}, asks", question.asks, allowed)


def _count(name: str, effects: Effects, most: int) -> int:
    """Number of problems that a question is tested on."""
    simulated = len(effects.value)
    count = simulated if effects.predicted is None else len(effects.predicted)
    if not simulated <= count <= most:
        counts = f"{simulated} simulated, {count} predicted"
        allowed = f"no more than the {most} rows of parameters"
        raise InputError(f"effects of {name}", counts, allowed)
    return count


def _strata(
    question: "QuestionSpec",
    effects: Effects,
    parameters: pd.DataFrame,
    selected: np.ndarray,
) -> dict[str, Result]:
    """Results of the declared strata that have enough problems to be shown."""
    shown = {}
    for name, conditions in question.strata.items():
        part = summarize(effects, selected & condition_mask(parameters, conditions))
        if part.answered >= conventions.SHOWN:
            shown[name] = part
    return shown


def _with_changes(
    found: Answer,
    effects: Effects,
    selected: np.ndarray,
    parameters: pd.DataFrame,
    labels: Mapping[str, str],
) -> Answer:
    """The answer with where it changes, and by condition if one field decides it."""
    by_theory = effects.predicted is not None
    decisive = None
    if isinstance(found.result, Share):
        by_theory = found.result.deciding is found.result.theory
        decisive = deciding_field(effects, selected, parameters, by_theory)
    if isinstance(found.result, Gap):
        by_theory = False
    where = []
    for change in changes(effects, selected, parameters, by_theory):
        where.append(_labelled(change, labels))
    if decisive is None:
        return replace(found, where=where)
    word = found.word and conventions.BY_CONDITION
    return replace(found, where=where, conditions=_labelled(decisive, labels), word=word)


def _labelled(change: Change, labels: Mapping[str, str]) -> Change:
    """The change with its parameter's name for readers."""
    name = change.parameter.replace("_", " ")
    return replace(change, parameter=labels.get(change.parameter, name))


def verdict(p: float) -> str:
    """Verdict on "always" from the p-value of a failure."""
    return "no" if p <= 1 - conventions.LEVEL else "not refuted"


def condition_mask(parameters: pd.DataFrame, conditions: Mapping[str, Any]) -> np.ndarray:
    """Mask (M,) of the problems that fulfil conditions: a column's value or range.

    Raises:
        InputError: a column is missing.
    """
    mask = np.ones(len(parameters), bool)
    for name, condition in conditions.items():
        if name not in parameters:
            raise InputError("column of parameters", name, one_of(parameters.columns, name))
        column = parameters[name].to_numpy()
        mask &= (
            condition.contains(column) if hasattr(condition, "contains") else column == condition
        )
    return mask


Answers = Mapping[str, Answer]
"""Answers by the ids of their questions."""


def by_id(answers: Iterable[Answer]) -> dict[str, Answer]:
    """The answers by the ids of their questions."""
    return {answer.id: answer for answer in answers}


class _Answers(RootModel[list[Answer]]):
    """The rows of a file of answers."""


def write_answers(answers: Iterable[Answer], path: str | Path, identity: str) -> None:
    """Write answers as a JSON list, sealed with their ``identity`` (:mod:`sims.base.files`)."""
    write_json([asdict(answer) for answer in answers], path, identity)


def read_answers(path: str | Path, identity: str | None = None) -> list[Answer]:
    """Read a file of answers.

    Raises:
        InputError: the file is not there, is damaged, or holds no answers.
    """
    return parse(_Answers, read_json(path, identity), str(path), of_json=True).root
