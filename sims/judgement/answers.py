"""Answers: how often a claim holds over problems that nobody chose, and where it stops.

A question has one number a problem, its effect. The unit is the problem: intervals are over
problems, and Monte Carlo errors decide only which problems can be called. No JAX.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pydantic import ConfigDict, RootModel
from scipy import stats
from scipy.special import betaincinv

from sims.errors import InputError, one_of
from sims.files import read_json, write_json
from sims.judgement import house
from sims.judgement.intervals import fixed_p
from sims.validation import parse

if TYPE_CHECKING:
    from sims.study.schema import QuestionSpec

Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Effects:
    """One number a problem, of one question.

    Attributes:
        value: (N,) simulated effects: positive where the claim holds ("share"), relative gaps of
            the two roads ("gap") or any number ("estimate"). NaN where the question has no meaning.
        error: (N,) their Monte Carlo standard errors.
        kind: how they are summed up.
        predicted: (M,) theory's effects of M ≥ N problems, the first N the simulated ones; None
            where theory does not reach.
        valid: (M,) where theory is in its range and surer of the sign than its error; None:
            everywhere.
        batches: behind each standard error.
    """

    value: np.ndarray
    error: np.ndarray
    kind: Literal["share", "gap", "estimate"] = "share"
    predicted: np.ndarray | None = None
    valid: np.ndarray | None = None
    batches: float = np.inf


@dataclass(frozen=True)
class Share:
    """The share of problems in which a claim holds.

    Attributes:
        holds: in how many it does.
        unresolved: of how many this is not known.
        of: how many were asked.
        bracket: [holds / of, (holds + unresolved) / of].
        interval: Clopper–Pearson's, outward from the bracket.
    """

    holds: int
    unresolved: int
    of: int
    bracket: Pair
    interval: Pair


def share(holds: int, unresolved: int, of: int) -> Share | None:
    """The share of ``of`` problems that these counts allow; None of no problem."""
    if not of:
        return None
    most, tail = holds + unresolved, (1 - house.LEVEL) / 2
    low = float(betaincinv(holds, of - holds + 1, tail)) if holds else 0.0
    high = float(betaincinv(most + 1, of - most, 1 - tail)) if most < of else 1.0
    return Share(holds, unresolved, of, (holds / of, most / of), (low, high))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the effects of a population of problems come to.

    Attributes:
        problems: N, simulated ones that the question has a meaning in.
        holds: those where it holds by three standard errors.
        fails: those where it fails by as many.
        unresolved: the others.
        contradictions: called problems in theory's range of which theory says the opposite.
        simulated: the share by these calls.
        theory: the share by theory, of the M; unresolved are problems outside its range.
        within: T95, the 95 % quantiles of max(|gap| − 2 se, 0) and of |gap| + 2 se.
        within_interval: order statistics that enclose them; an end is None if N is too small.
        above_three: share of gaps beyond three standard errors.
        visible: the gap that three standard errors would show in 95 % of the problems.
        mean: of an estimate, over ``mean_of`` problems.
        mean_interval: Student's.
        word: as :func:`sims.judgement.house.word` has it; "" where no share is asked for.
    """

    problems: int
    holds: int = 0
    fails: int = 0
    unresolved: int = 0
    contradictions: int | None = None
    simulated: Share | None = None
    theory: Share | None = None
    within: Pair | None = None
    within_interval: tuple[float, float | None] | None = None
    above_three: float | None = None
    visible: float | None = None
    mean: float | None = None
    mean_of: int = 0
    mean_interval: Pair | None = None
    word: str = ""

    @property
    def share(self) -> Share | None:
        """The share that decides the word: theory's or simulation's, whose interval is narrower."""
        both = [s for s in (self.theory, self.simulated) if s is not None]
        return min(both, key=lambda s: s.interval[1] - s.interval[0], default=None)


@dataclass(frozen=True)
class Change:
    """How the answer changes along a parameter of the law.

    Attributes:
        parameter: its name.
        groups: its quarters, or its values if they are few.
        values: share, T95 or mean in each.
    """

    parameter: str
    groups: list[str]
    values: list[float]

    def in_words(self, percent: bool) -> str:
        """The values with their groups, on one line."""
        shown = (f"{100 * v:.3g} %" if percent else f"{v:.3g}" for v in self.values)
        parts = zip(self.groups, shown, strict=True)
        return f"{self.parameter} " + ", ".join(f"{group}: {v}" for group, v in parts)


@dataclass(frozen=True, kw_only=True)
class Answer(Summary):
    """The answer to a question: a row of ``answers.json``.

    Attributes:
        paper: arXiv id.
        experiment: its name.
        id: of the question.
        claim: id of the paper's claim.
        question: in one line.
        status: confirmatory (a paper's sentence) or exploratory (no word).
        says: "always" where the sentence does.
        kind: of the effects.
        tolerance: what gaps are held against.
        law: of the problems, in words.
        restriction: of the law, in words.
        strata: name to summary, of those with enough problems.
        where: the parameters along which the answer changes most, two at most.
        stops: the same in words.
        always: "no" if a failure is confirmed among all N, else "not refuted"; "" if not asked.
        p_value: of the most significant failure, times N.
        adjusted: the same by Holm over the family.
        family: confirmatory questions of the paper that say always; 0 for others.
        counterexample: index of that problem, if it is called.
        problem: that problem, as ``sims decompose`` takes it.
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
    kind: str
    tolerance: float | None
    law: str
    restriction: str = ""
    strata: dict[str, Summary] = field(default_factory=dict)
    where: list[Change] = field(default_factory=list)
    stops: str = ""
    always: str = ""
    p_value: float = 1.0
    adjusted: float | None = None
    family: int = 0
    counterexample: int | None = None
    problem: dict[str, Any] | None = None
    seed: int = 0
    salt: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def answer(
    question: "QuestionSpec",
    effects: Effects,
    parameters: pd.DataFrame,
    *,
    experiment: str,
    law: str = "",
    smoke: bool = False,
    **origin: Any,
) -> Answer:
    """The answer to a question by its effects.

    Args:
        question: as the experiment's file has it.
        effects: of N problems, by theory of M ≥ N.
        parameters: what the law drew, a row for each of the M problems, the N simulated ones first.
        experiment: its name.
        law: in words.
        smoke: whether there are too few problems to say anything.
        **origin: seed, salt and versions.

    Raises:
        InputError: a condition names a column that is not there, or lengths do not agree.
    """
    count = len(effects.value) if effects.predicted is None else len(effects.predicted)
    if not len(effects.value) <= count <= len(parameters):
        counts = f"{len(effects.value)} simulated, {count} predicted"
        allowed = f"no more than the {len(parameters)} rows of parameters"
        raise InputError(f"{experiment}: effects of {question.id}", counts, allowed)
    parameters = parameters.iloc[:count]
    restriction = question.restrict
    asked = chosen(parameters, restriction.where if restriction else {})
    tolerance = house.TOLERANCES[question.tolerance] if question.tolerance else None
    whole = summary(effects, asked, tolerance, smoke)
    parts = {
        name: summary(effects, asked & chosen(parameters, where), tolerance, smoke)
        for name, where in question.strata.items()
    }
    by_theory = effects.predicted is not None and whole.share is whole.theory
    where = [] if smoke else changes(effects, asked, parameters, by_theory)
    margin = margins(effects, tolerance)
    own = asked[: len(margin)] & np.isfinite(margin)
    p = np.where(own, fixed_p(-margin, effects.error, effects.batches - 1), 1.0)
    ranked = np.where(own, margin / np.maximum(effects.error, 1e-300), np.inf)
    worst = int(ranked.argmin()) if own.any() else None
    least = min(1.0, float(own.sum() * p.min())) if own.any() else 1.0
    failing = worst is not None and ranked[worst] <= -house.CALLED
    return Answer(
        **vars(whole) | {"word": whole.word if question.status == "confirmatory" else ""},
        paper=question.paper,
        experiment=experiment,
        id=question.id,
        claim=question.claim or question.id,
        question=question.question,
        status=question.status,
        says=question.says,
        kind=effects.kind,
        tolerance=tolerance,
        law=law,
        restriction=restriction.text if restriction else "",
        strata={k: s for k, s in parts.items() if size(s) >= house.FEWEST},
        where=where,
        stops="; ".join(change.in_words(effects.kind != "estimate") for change in where),
        always=said(least) if own.any() else "",
        p_value=least,
        counterexample=worst if failing else None,
        **origin,
    )


def said(p: float) -> str:
    """Whether a claim always holds, by the p-value of its worst failure."""
    return "no" if p <= 1 - house.LEVEL else "not refuted"


def size(of: Summary) -> int:
    """Problems that a summary rests on."""
    return of.share.of if of.share else of.problems


def chosen(parameters: pd.DataFrame, where: Mapping[str, Any]) -> np.ndarray:
    """Which problems fulfil conditions, (M,): a column's value, or a range of it.

    Raises:
        InputError: there is no such column.
    """
    mask = np.ones(len(parameters), bool)
    for name, wanted in where.items():
        if name not in parameters:
            raise InputError("column of parameters", name, one_of(parameters.columns, name))
        column = parameters[name]
        if hasattr(wanted, "at_least"):
            low = -np.inf if wanted.at_least is None else wanted.at_least
            high = np.inf if wanted.at_most is None else wanted.at_most
            mask &= column.between(low, high).to_numpy()
        else:
            mask &= (column == wanted).to_numpy()
    return mask


def margins(effects: Effects, tolerance: float | None) -> np.ndarray:
    """By how much each simulated problem holds, (N,), negative if it fails; NaN if none can."""
    if effects.kind == "share":
        return effects.value
    off = tolerance if tolerance is not None and effects.kind == "gap" else np.nan
    return off - np.abs(effects.value)


def calls(margin: np.ndarray, error: np.ndarray) -> np.ndarray:
    """1 where a problem holds by three standard errors, −1 where it fails by as many, else 0."""
    far = house.CALLED * error
    return np.where(margin > far, 1, np.where(margin <= -far, -1, 0))


def known(effects: Effects, asked: np.ndarray) -> np.ndarray:
    """Of which problems theory says something in its range, (M,)."""
    assert effects.predicted is not None
    inside = True if effects.valid is None else effects.valid
    return asked & np.isfinite(effects.predicted) & inside


def summary(
    effects: Effects, asked: np.ndarray, tolerance: float | None = None, smoke: bool = False
) -> Summary:
    """What the effects of some problems come to.

    Args:
        effects: of all problems.
        asked: which of the M are meant.
        tolerance: that gaps are held against.
        smoke: whether there are too few problems to say anything.
    """
    count, theory, differ = len(effects.value), None, None
    own = asked[:count] & np.isfinite(effects.value)
    value, error = effects.value[own], effects.error[own]
    margin = margins(effects, tolerance)[own]
    call = calls(margin, error)
    holds, fails, open_ = (int((call == k).sum()) for k in (1, -1, 0))
    if not np.isfinite(margin).any():
        holds = fails = open_ = 0
    if effects.predicted is not None and effects.kind == "share":
        inside = known(effects, asked)
        everywhere = int((asked & np.isfinite(effects.predicted)).sum())
        found = int((effects.predicted[inside] > 0).sum())
        theory = share(found, everywhere - int(inside.sum()), everywhere)
        sign = np.where(effects.predicted > 0, 1, -1)[:count][own]
        differ = int(((call * sign < 0) & inside[:count][own]).sum())
    made = Summary(
        problems=len(value),
        holds=holds,
        fails=fails,
        unresolved=open_,
        contradictions=differ,
        simulated=share(holds, open_, holds + fails + open_),
        theory=theory,
    )
    if effects.kind == "gap" and len(value):
        made = replace(made, **_within(np.abs(value), error))
    if effects.kind == "estimate":
        if effects.predicted is not None:
            value = effects.predicted[known(effects, asked)]
        if len(value) > 1:
            middle, spread = float(value.mean()), stats.sem(value)
            half = float(stats.t.ppf((1 + house.LEVEL) / 2, len(value) - 1) * spread)
            ends = middle - half, middle + half
            made = replace(made, mean=middle, mean_of=len(value), mean_interval=ends)
    if (decided := made.share) is None:
        return made
    asked_of = 0 if smoke else decided.of
    return replace(made, word=house.word(decided.interval, decided.bracket[1] > 0, asked_of))


def _within(gap: np.ndarray, error: np.ndarray) -> dict[str, Any]:
    """T95 of gaps (N,) with errors, by order statistics; and what the errors would have shown."""
    low, high = np.sort(np.maximum(gap - 2 * error, 0)), np.sort(gap + 2 * error)
    count, tail = len(gap), (1 - house.LEVEL) / 2
    law = stats.binom(count, house.WITHIN)
    # P(at least r of N are below the quantile) ≥ 1 − tail, and P(at least s are) ≤ tail.
    r, s = int(law.ppf(tail)), int(law.ppf(1 - tail)) + 1
    middle = int(np.ceil(house.WITHIN * count)) - 1
    return {
        "within": (float(low[middle]), float(high[middle])),
        "within_interval": (
            float(low[r - 1]) if r else 0.0,
            float(high[s - 1]) if s <= count else None,
        ),
        "above_three": float((gap > house.CALLED * error).mean()),
        "visible": float(np.quantile(house.CALLED * error, house.WITHIN)),
    }


def changes(
    effects: Effects, asked: np.ndarray, parameters: pd.DataFrame, by_theory: bool
) -> list[Change]:
    """The parameters along which the answer changes most, two at most: by quarters or values.

    Only those along which it changes at all, by Kruskal and Wallis's test over all parameters.
    """
    if by_theory and effects.predicted is not None:
        score, own = effects.predicted, known(effects, asked)
        call = np.sign(score)
    else:
        score, own = effects.value, asked[: len(effects.value)] & np.isfinite(effects.value)
        call = calls(score, effects.error)
    if effects.kind == "share":
        own = own & (call != 0)
        score = (call > 0).astype(float)
    score = (np.abs(score) if effects.kind == "gap" else score)[own]
    parameters = parameters.iloc[: len(own)][own]
    found = []
    for name in parameters.columns:
        column, labels = parameters[name], dict[Any, str]()
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > 4:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, 5)))
            ends = itertools.pairwise(edges)
            labels = dict(enumerate(f"{low:.3g} to {high:.3g}" for low, high in ends))
            column = pd.Series(np.searchsorted(edges[1:-1], column, "right"))
        groups = {
            labels.get(value, str(value)): score[rows]
            for value, rows in column.groupby(column).indices.items()
            if len(rows) >= house.FEWEST // 4
        }
        if len(groups) < 2 or np.ptp(np.concatenate([*groups.values()])) == 0:
            continue
        if stats.kruskal(*groups.values()).pvalue > (1 - house.LEVEL) / len(parameters.columns):
            continue
        gap = effects.kind == "gap"
        values = [float(np.quantile(g, house.WITHIN) if gap else g.mean()) for g in groups.values()]
        found.append(Change(str(name), [*groups], values))
    return sorted(found, key=lambda c: -np.ptp(c.values))[:2]


def adjusted(answers: Sequence[Answer], families: Mapping[str, int]) -> list[Answer]:
    """The answers of a ledger, "always" by Holm over a paper's questions that say so.

    Args:
        answers: those that there are.
        families: paper to the number of confirmatory questions that say always, answered or not.
    """
    out, seen = list(answers), Counter[str]()
    least: dict[str, float] = {}
    for i in sorted(range(len(out)), key=lambda i: out[i].p_value):
        one = out[i]
        if one.says != "always" or one.status != "confirmatory":
            continue
        m = max(families.get(one.paper, 0), 1)
        p = min(1.0, max(least.get(one.paper, 0.0), (m - seen[one.paper]) * one.p_value))
        least[one.paper], seen[one.paper] = p, seen[one.paper] + 1
        out[i] = replace(one, adjusted=p, family=m, always=said(p))
    return out


class _Answers(RootModel[list[Answer]]):
    """The rows of a file of answers."""


def write_answers(answers: Iterable[Answer], path: str | Path, of: str) -> None:
    """Write answers as a sealed JSON list; ``of`` is what they are of (:mod:`sims.files`)."""
    write_json([asdict(one) for one in answers], path, of)


def read_answers(path: str | Path, of: str | None = None) -> list[Answer]:
    """Read a file of answers.

    Raises:
        InputError: the file is not there, is damaged, or holds no answers.
    """
    return parse(_Answers, read_json(path, of), str(path), of_json=True).root
