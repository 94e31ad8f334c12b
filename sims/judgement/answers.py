"""Answers: how often a claim holds over problems that nobody chose, and where it stops.

A question has one number a problem, its effect. The unit is the problem: intervals are over
problems, and Monte Carlo errors decide only which problems can be called. No JAX.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Discriminator, RootModel

from sims.errors import InputError, one_of
from sims.files import read_json, write_json
from sims.judgement import house
from sims.judgement.outcomes import FAILS, HOLDS
from sims.judgement.summaries import (
    Effects,
    Gap,
    Mean,
    Result,
    Share,
    calls,
    confirmed_failure,
    foreseen,
    margins,
    summarize,
    tally,
)
from sims.judgement.wording import percent, significant
from sims.validation import parse

if TYPE_CHECKING:
    from sims.study.schema import QuestionSpec


MOST_GROUPS = 4
"""Groups of a parameter that are shown; of more, the lowest and the highest."""


@dataclass(frozen=True)
class Change:
    """Change of the answer along a parameter of the law.

    Attributes:
        parameter: its name.
        groups: its quarters, or its values if they are few.
        values: share, T95 or mean in each.
        percent: whether these are percentages.
    """

    parameter: str
    groups: list[str]
    values: list[float]
    percent: bool

    def in_words(self, short: bool = False) -> str:
        """The values from the lowest to the highest quarter, or by name."""
        shown = [
            percent(value, short=short) if self.percent else significant(value)
            for value in self.values
        ]
        name = self.parameter.replace("_", " ")
        if all(" to " in group for group in self.groups):
            return f"{name} ↑: {shown[0]} → {shown[-1]}"
        groups = [{"True": "yes", "False": "no"}.get(group, group) for group in self.groups]
        rows = list(zip(self.values, groups, shown, strict=True))
        if len(rows) > MOST_GROUPS:
            rows = [min(rows), max(rows)]
        return f"{name} " + ", ".join(f"{group}: {value}" for _, group, value in rows)


AnyResult = Annotated[Result, Discriminator("kind")]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question: a row of ``answers.json``.

    Attributes:
        paper: arXiv id.
        experiment: its name.
        id: of the question.
        claim: id of the paper's claim.
        question: in one line.
        status: confirmatory (a paper's sentence) or exploratory (no word).
        says: "always" where the sentence does.
        result: of all problems.
        word: how often it holds; "" of an estimate, or where the question is exploratory.
        law: of the problems, in words.
        restriction: of the law, in words.
        strata: name to result, of those with enough problems.
        conditions: the field of the law that decides alone, with the share at each of its values,
            none of which is between 5 and 95 %; None where there is none.
        where: the parameters along which the answer changes most, two at most.
        always: "no" if a failure is confirmed on fresh draws, else "not refuted"; "" if not asked.
        p_value: of the failure that half of the draws found, by the other half.
        adjusted: the same by Holm over the family.
        family: confirmatory questions of the paper that say always; 0 for others.
        counterexample: index of that problem, if it is confirmed.
        problem: that problem, as ``sims decompose`` takes it, or the one that a search found; as
            published, its fields without their numbers, which are in ``counterexamples/``.
        searched: problems that theory was asked of beside the simulated ones, in a search.
        least: the least effect that the search saw, negative of a counterexample.
        results: digest of those that it rests on.
        seed: of the problems.
        salt: behind the seed.
        versions: of packages.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    paper: str
    experiment: str
    id: str
    claim: str
    question: str
    status: str
    says: str | None
    result: AnyResult
    word: str
    law: str
    restriction: str = ""
    strata: dict[str, AnyResult] = field(default_factory=dict)
    conditions: Change | None = None
    where: list[Change] = field(default_factory=list)
    always: str = ""
    p_value: float = 1.0
    adjusted: float | None = None
    family: int = 0
    counterexample: int | None = None
    problem: dict[str, Any] | None = None
    searched: int = 0
    least: float | None = None
    results: str = ""
    seed: int = 0
    salt: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    def shares(self) -> dict[str, Share]:
        """The share of all problems, ``all``, and of each stratum; empty of gaps and means."""
        results = {"all": self.result, **self.strata}
        return {name: result for name, result in results.items() if isinstance(result, Share)}

    def spoken(self) -> str:
        """The word, of gaps with their tolerance, and whether the claim always holds if it says so.

        "estimate" where there is no word.
        """
        near = ""
        if isinstance(self.result, Gap) and self.result.tolerance and self.word:
            enough = self.result.problems >= house.FEWEST
            near = f" within {percent(self.result.tolerance)}" if enough else ""
        asked = self.says or self.always == "no"
        always = ALWAYS.get(self.always, "") if asked else ""
        return f"{self.word or 'estimate'}{near}{always}"


ALWAYS = {"no": "; not always", "not refuted": "; no failure confirmed"}
"""What is said of a claim that says "always", by the answer's ``always``."""


def answer(
    question: "QuestionSpec",
    effects: Effects,
    parameters: pd.DataFrame,
    *,
    smoke: bool = False,
    labels: Mapping[str, str] | None = None,
    **origin: Any,
) -> Answer:
    """The answer to a question by its effects.

    Args:
        question: as the experiment's file has it.
        effects: of N problems, by theory of M ≥ N.
        parameters: what the law drew, a row for each of the M problems, the N simulated ones first.
        smoke: whether there are too few problems to say anything.
        labels: words for columns of ``parameters``, else their names.
        **origin: experiment, law, results, seed, salt and versions.

    Raises:
        InputError: a condition names a column that is not there, or lengths do not agree.
    """
    simulated = len(effects.value)
    count = simulated if effects.predicted is None else len(effects.predicted)
    if not simulated <= count <= len(parameters):
        counts = f"{simulated} simulated, {count} predicted"
        allowed = f"no more than the {len(parameters)} rows of parameters"
        raise InputError(f"effects of {question.id}", counts, allowed)
    parameters, restriction = parameters.iloc[:count], question.restrict
    selected = condition_mask(parameters, restriction.where if restriction else {})
    tolerance = house.TOLERANCES[question.tolerance] if question.tolerance else None
    result = summarize(effects, selected, tolerance)
    strata = {}
    for name, conditions in question.strata.items():
        part = summarize(effects, selected & condition_mask(parameters, conditions), tolerance)
        if part.answered >= house.SHOWN:
            strata[name] = part
    failing, p = confirmed_failure(effects, selected, tolerance)
    can_fail = bool(np.isfinite(margins(effects, tolerance)[selected[:simulated]]).any())
    always = verdict(p) if can_fail else ""
    by_theory = isinstance(result, Share) and result.deciding is result.theory
    if isinstance(result, Mean):
        by_theory = effects.predicted is not None
    trends = [
        replace(change, parameter=(labels or {}).get(change.parameter, change.parameter))
        for change in (
            [] if smoke else changes(effects, selected, parameters, by_theory, tolerance)
        )
    ]
    decisive = None
    if isinstance(result, Share) and not smoke:
        decisive = deciding_field(effects, selected, parameters, by_theory, tolerance)
    word = house.BY_CONDITION if decisive else result.word
    if question.status == "exploratory":
        word = ""
    return Answer(
        **question.model_dump(include={"paper", "id", "question", "status", "says"}),
        claim=question.claim or question.id,
        result=result,
        word=house.TOO_FEW if word and smoke else word,
        restriction=restriction.text if restriction else "",
        strata=strata,
        conditions=decisive,
        where=trends,
        always=always,
        p_value=p,
        counterexample=failing if always == "no" else None,
        **origin,
    )


def verdict(p: float) -> str:
    """Verdict on "always" by the p-value of a failure."""
    return "no" if p <= 1 - house.LEVEL else "not refuted"


def condition_mask(parameters: pd.DataFrame, conditions: Mapping[str, Any]) -> np.ndarray:
    """Mask (M,) of the problems that fulfil conditions: a column's value, or a range of it.

    Raises:
        InputError: there is no such column.
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


def changes(
    effects: Effects,
    selected: np.ndarray,
    parameters: pd.DataFrame,
    by_theory: bool,
    tolerance: float | None = None,
) -> list[Change]:
    """The parameters along which the answer changes most, two at most: by quarters or values.

    Only those along which it changes at all, by Kruskal and Wallis's test over all parameters. A
    problem without an answer is in no group: one that is undecided, that the question has no
    meaning in, or that is outside theory's range where theory is asked; nor is one without a value
    of the parameter.
    """
    from scipy.stats import kruskal  # slow to load

    score = scores(effects, by_theory, tolerance)
    usable = selected[: len(score)] & np.isfinite(score)
    candidates = []
    for name in parameters.columns:
        column = parameters[name].iloc[: len(score)]
        rows = usable & column.notna().to_numpy()
        groups = {
            label: score[rows][members]
            for label, members in group_rows(column[rows]).items()
            if len(members) >= house.SHOWN
        }
        if len(groups) < 2 or np.ptp(np.concatenate([*groups.values()])) == 0:
            continue
        if kruskal(*groups.values()).pvalue > (1 - house.LEVEL) / len(parameters.columns):
            continue
        if effects.kind == "gap":
            sizes = [np.quantile(abs(group), house.WITHIN) for group in groups.values()]
        else:
            sizes = [group.mean() for group in groups.values()]
        values = [float(size) for size in sizes]
        candidates.append(Change(str(name), [*groups], values, effects.kind != "estimate"))
    return sorted(candidates, key=lambda c: -np.ptp(c.values))[:2]


def deciding_field(
    effects: Effects,
    selected: np.ndarray,
    parameters: pd.DataFrame,
    by_theory: bool,
    tolerance: float | None = None,
) -> Change | None:
    """The field whose values decide the answer: a share would say how often the law draws each.

    At each of its values the interval of the share lies above 95 % or below 5 %, and both occur.
    """
    call = foreseen(effects) if by_theory else calls(effects, tolerance)
    usable = selected[: len(call)] & np.isfinite(call)
    for name in parameters.columns:
        column = parameters[name].iloc[: len(call)][usable]
        counts = [tally(call[usable][rows]) for rows in group_rows(column).values()]
        intervals = [counted.interval for counted in counts if counted is not None]
        nearly_all = [low > house.LEVEL for low, _ in intervals]
        nearly_none = [high < 1 - house.LEVEL for _, high in intervals]
        sure = all(a or b for a, b in zip(nearly_all, nearly_none, strict=True))
        if sure and any(nearly_all) and any(nearly_none):
            shares = [float(np.mean(counted.bracket)) for counted in counts if counted]
            return Change(str(name), list(group_rows(column)), shares, percent=True)
    return None


def scores(effects: Effects, by_theory: bool, tolerance: float | None = None) -> np.ndarray:
    """What is averaged over a group of problems, (N,) or (M,); NaN of those without an answer.

    Of a share 1 where the claim holds and 0 where it fails, else the effect.

    Args:
        effects: of N problems, by theory of M.
        by_theory: whether theory's are meant.
        tolerance: of outcomes.
    """
    if effects.kind in ("share", "outcome"):
        call = foreseen(effects) if by_theory else calls(effects, tolerance)
        return np.select([call == HOLDS, call == FAILS], [1.0, 0.0], np.nan)
    if not by_theory or effects.predicted is None:
        return effects.value
    inside = True if effects.valid is None else effects.valid
    return np.where(inside, effects.predicted, np.nan)


def group_rows(column: pd.Series) -> dict[str, np.ndarray]:
    """Places of rows by the quarter that their number lies in, or by value if these are few."""
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= 4:
        groups = column.groupby(column).indices.items()
        return {str(value): np.asarray(rows) for value, rows in groups}
    edges = np.unique(np.quantile(column, np.linspace(0, 1, 5)))
    quarter = np.searchsorted(edges[1:-1], column, "right")
    ends = enumerate(itertools.pairwise(edges))
    return {f"{low:.3g} to {high:.3g}": np.flatnonzero(quarter == k) for k, (low, high) in ends}


def adjusted(answers: Sequence[Answer], families: Mapping[str, int]) -> list[Answer]:
    """The answers of a ledger, "always" by Holm over a paper's questions that say so.

    Args:
        answers: those that there are.
        families: paper to the number of questions that say always, answered or not.
    """
    out = list(answers)
    for paper, m in families.items():
        family = [i for i, item in enumerate(out) if item.says and item.paper == paper]
        p_adjusted = 0.0
        for rank, i in enumerate(sorted(family, key=lambda i: out[i].p_value)):
            p_adjusted = max(p_adjusted, min(1.0, (m - rank) * out[i].p_value))
            out[i] = replace(out[i], adjusted=p_adjusted, family=m, always=verdict(p_adjusted))
            if out[i].always != "no" and not out[i].searched:
                out[i] = replace(out[i], counterexample=None, problem=None)
    return out


@dataclass(frozen=True)
class Agreement:
    """How far the answers of two runs with other draws agree.

    Attributes:
        agreeing: ids of answers that agree.
        differing: ids of those that do not.
        visible: median over answers of the least difference that would have been seen, as a part
            of the number's size for means, else absolute.
    """

    agreeing: list[str]
    differing: list[str]
    visible: float

    def in_words(self) -> str:
        """The counts, the names of differing answers, and the power, on one line."""
        count = len(self.agreeing) + len(self.differing)
        names = f" ({', '.join(self.differing)} differ)" if self.differing else ""
        seen = percent(self.visible)
        return (
            f"{len(self.agreeing)} of {count} answers agree{names}; in half of them a difference "
            f"of {seen} or less would have been seen."
        )


def agreement(first: Sequence[Answer], second: Sequence[Answer]) -> Agreement:
    """Agreement of the answers that both runs have with an interval, compared end by end.

    Two agree if both ends of their brackets differ by at most ``√(w² + w′²)``, with w the distance
    from that end to the interval's. If nothing but draws differs they do so with probability
    :data:`~sims.judgement.house.LEVEL` or more.
    """
    partners = {item.id: item for item in second}
    agreeing, differing = list[str](), list[str]()
    tolerated = list[float]()
    for item in first:
        both = [partner.result.ends() for partner in (item, partners.get(item.id, item))]
        if item.id not in partners or any(ends is None for ends in both):
            continue
        one, other = (np.array(ends) for ends in both)
        allowed = np.hypot(one[:, 1], other[:, 1])
        scale = abs(one[:, 0]).max() if isinstance(item.result, Mean) else 1.0
        agree = bool((abs(one[:, 0] - other[:, 0]) <= allowed).all())
        (agreeing if agree else differing).append(item.id)
        tolerated.append(float(allowed.max() / (scale or 1.0)))
    return Agreement(agreeing, differing, float(np.median(tolerated)) if tolerated else 0.0)


class _Answers(RootModel[list[Answer]]):
    """The rows of a file of answers."""


def write_answers(answers: Iterable[Answer], path: str | Path, identity: str) -> None:
    """Write answers as a JSON list, sealed with their ``identity`` (:mod:`sims.files`)."""
    write_json([asdict(answer) for answer in answers], path, identity)


def read_answers(path: str | Path, identity: str | None = None) -> list[Answer]:
    """Read a file of answers.

    Raises:
        InputError: the file is not there, is damaged, or holds no answers.
    """
    return parse(_Answers, read_json(path, identity), str(path), of_json=True).root
