"""Summaries of effects: shares of problems, T95 of gaps and means of estimates. No JAX."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import bdtr, betaincinv, stdtrit

from sims.estimates import mcse
from sims.judgement import house
from sims.judgement.intervals import fixed_p
from sims.judgement.outcomes import FAILS, HOLDS, LEVEL, UNDECIDED, outcome_calls
from sims.judgement.wording import (
    INTERVAL,
    number_range,
    percent,
    percent_range,
    significant,
    too_few,
)

Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of one question: one number per problem, or one per pair of each problem.

    Attributes:
        value: (N,) simulated effects: positive where the claim holds ("share"), relative gaps of
            the two methods ("gap") or any number ("estimate"); (N, P) relative falls over pairs
            ("outcome"). NaN where the question has no meaning.
        error: their Monte Carlo standard errors.
        kind: how they are summed up.
        predicted: (M,) theory's effects of M ≥ N problems, the first N the simulated ones; None
            where theory does not reach.
        valid: (M,) where theory is in its range and surer of the sign than its error; None:
            everywhere.
        draws: of each problem (B,) or (B, P), whose means are the values and whose spread gives
            the errors: independent of each other, given the problem; None of theory alone, whose
            error is stated.
        looks: at which a problem may have been stopped, of outcomes.
        size: (N,) by how much, as a relative change; None where no size is told.
    """

    value: np.ndarray
    error: np.ndarray
    kind: Literal["share", "gap", "estimate", "outcome"] = "share"
    predicted: np.ndarray | None = None
    valid: np.ndarray | None = None
    draws: Sequence[np.ndarray] | np.ndarray | None = None
    looks: int = 1
    size: np.ndarray | None = None

    @property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the errors, (N,); infinite of theory alone."""
        if self.draws is None:
            return np.full(len(self.value), np.inf)
        return np.array([len(draws) - 1 for draws in self.draws], float)

    def half(self, number: int) -> "Effects":
        """The effects by every second draw, from the first (0) or the second one (1)."""
        if self.draws is None:
            return self
        if isinstance(self.draws, np.ndarray):
            draws = self.draws[:, number::2]
            return replace(self, value=draws.mean(1), error=mcse(draws.T), draws=draws)
        halves = [draws[number::2] for draws in self.draws]
        value = np.stack([draws.mean(0) for draws in halves])
        error = np.stack([mcse(draws) for draws in halves])
        return replace(self, value=value, error=error, draws=halves)


@dataclass(frozen=True)
class Tally:
    """Number of problems in which a claim holds, and the share that this is.

    Attributes:
        holds: in how many it does.
        fails: in how many it does not.
        undecided: of how many this is not known.
        level: in how many there is no difference to speak of; they are in no share.
        bracket: the share if it holds in none, and in all, of the undecided ones.
        interval: Clopper–Pearson's, outward from the bracket.
    """

    holds: int
    fails: int
    undecided: int
    bracket: Pair
    interval: Pair
    level: int = 0

    @property
    def total(self) -> int:
        """Number of problems, level ones too."""
        return self.holds + self.fails + self.undecided + self.level

    @property
    def parts(self) -> dict[str, float]:
        """Shares of all problems by outcome."""
        names = ("holds", "fails", "level", "undecided")
        return {name: getattr(self, name) / self.total for name in names}


def tally(calls: np.ndarray) -> Tally | None:
    """Tally of calls of 1 (holds), −1 (fails), 2 (level) and 0 (undecided); None of no calls."""
    if not len(calls):
        return None
    holds, fails, undecided, level = (
        int((calls == call).sum()) for call in (HOLDS, FAILS, UNDECIDED, LEVEL)
    )
    total, upper = holds + fails + undecided, holds + undecided
    if not total:
        return Tally(0, 0, 0, (0.0, 1.0), (0.0, 1.0), level)
    tail = (1 - house.LEVEL) / 2
    low = float(betaincinv(holds, total - holds + 1, tail)) if holds else 0.0
    high = float(betaincinv(upper + 1, total - upper, 1 - tail)) if upper < total else 1.0
    return Tally(holds, fails, undecided, (holds / total, upper / total), (low, high), level)


@dataclass(frozen=True, kw_only=True)
class Share:
    """The share of problems in which a claim holds, by both methods.

    Attributes:
        problems: N, simulated ones that the question has a meaning in.
        simulated: by simulation, which calls each at three standard errors.
        theory: by theory, of M ≥ N problems; undecided are problems outside its range.
        contradictions: called problems in theory's range of which theory says the opposite.
        size: lower quartile, median and upper quartile of the relative change.
    """

    kind: Literal["share"] = "share"
    problems: int
    simulated: Tally | None = None
    theory: Tally | None = None
    contradictions: int | None = None
    size: tuple[float, float, float] | None = None

    @property
    def deciding(self) -> Tally | None:
        """The tally that decides the word: theory's or simulation's, whose interval is narrower."""
        both = [tally for tally in (self.theory, self.simulated) if tally is not None]
        return min(both, key=lambda tally: tally.interval[1] - tally.interval[0], default=None)

    @property
    def interval(self) -> Pair | None:
        """The interval of the share."""
        return self.deciding.interval if self.deciding else None

    def ends(self) -> tuple[Pair, Pair] | None:
        """Both ends of the bracket, each with its distance to that of the interval."""
        if self.deciding is None:
            return None
        (low, high), (least, most) = self.deciding.bracket, self.deciding.interval
        return (low, low - least), (high, most - high)

    @property
    def answered(self) -> int:
        """Number of problems that the share is of."""
        return self.deciding.total if self.deciding else self.problems

    @property
    def word(self) -> str:
        """How often the claim holds, as :func:`sims.judgement.house.word` has it."""
        return word_of(self.deciding)

    def headline(self, short: bool = False) -> str:
        """The share that decides the word, with its interval; without the noun if ``short``."""
        if self.deciding is None:
            return "–"
        if self.deciding.total < house.SHOWN:
            return too_few(self.deciding.total)
        share, interval = (
            percent_range(*ends, short=short)
            for ends in (self.deciding.bracket, self.deciding.interval)
        )
        share = f"{share} ({interval})" if short else f"{share} of problems ({interval})"
        others = {name: self.deciding.parts[name] for name in ("level", "undecided")}
        named = [f"{percent(v, short=short)} {name}" for name, v in others.items() if v]
        return "; ".join([share, *named])

    def outcomes(self, short: bool = False) -> str:
        """Shares of all problems by outcome: holds, fails, level, undecided."""
        if self.deciding is None:
            return "–"
        parts = self.deciding.parts.items()
        return ", ".join(f"{name} {percent(value, short=short)}" for name, value in parts)

    def decided_by(self) -> str:
        """The method whose tally decides the word, and contradictions between the two."""
        if self.deciding is None or self.theory is None:
            return "simulation"
        method = "theory" if self.deciding is self.theory else "simulation"
        contradictions = self.contradictions or "no"
        return f"{method}; {contradictions} contradictions"

    def how_much(self, short: bool = False) -> str:
        """Median and quartiles of the relative change; "" where no size is told."""
        if self.size is None:
            return ""
        low, median, high = self.size
        return f"{percent(median, short=short)} ({percent_range(low, high, short=short)})"

    def details(self) -> str:
        """The shares by both methods, with their intervals and numbers of problems."""
        parts = []
        if self.theory is not None:
            parts.append(f"{share_in_words(self.theory)} by theory")
        if self.simulated is not None:
            parts.append(f"{share_in_words(self.simulated)} by simulation")
        if self.contradictions:
            parts[-1] += f", {self.contradictions} contradict theory"
        return "; ".join(parts) or "–"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The relative gap between the two methods.

    Attributes:
        problems: N, those that have a gap.
        near: problems whose gap is within the tolerance; None without a tolerance.
        within: T95, the 95 % quantiles of the gap's size less two standard errors and plus two.
        within_interval: order statistics that enclose them; the end is None if N is too small.
        above_three: share of gaps beyond three standard errors.
        visible: the gap that three standard errors would show in 95 % of the problems.
    """

    kind: Literal["gap"] = "gap"
    problems: int
    tolerance: float | None = None
    near: Tally | None = None
    within: Pair | None = None
    within_interval: tuple[float, float | None] | None = None
    above_three: float | None = None
    visible: float | None = None

    @property
    def interval(self) -> Pair | None:
        """The interval of T95; None where there are too few problems for its upper end."""
        if self.within_interval is None or self.within_interval[1] is None:
            return None
        return self.within_interval[0], self.within_interval[1]

    def ends(self) -> tuple[Pair, Pair] | None:
        """The middle of T95's interval, twice, with half its width."""
        return middle_ends(self.interval)

    @property
    def answered(self) -> int:
        """Number of problems that have a gap."""
        return self.near.total if self.near else self.problems

    @property
    def word(self) -> str:
        """How often the gap is within the tolerance; "" without one."""
        return word_of(self.near)

    def decided_by(self) -> str:
        """Both methods, whose gap it is."""
        return "both"

    def headline(self, short: bool = False) -> str:
        """T95 with its interval; without the noun if ``short``."""
        if self.within is None:
            return "–"
        if self.interval is None:
            return too_few(self.problems)
        size, interval = (
            percent_range(*ends, short=short) for ends in (self.within, self.interval)
        )
        noun = "" if short else " of problems"
        share = percent(house.WITHIN, short=short)
        return f"within {size} in {share}{noun} ({interval})"

    def details(self) -> str:
        """T95, and the share within the tolerance, with intervals and numbers of problems."""
        parts = []
        if self.within is not None and self.interval is None:
            parts.append(f"T95 {too_few(self.problems)}")
        elif self.within is not None and self.interval is not None:
            interval = f"{INTERVAL} {percent_range(*self.interval)}"
            size = percent_range(*self.within)
            parts.append(f"T95 {size} ({interval}, {self.problems} problems)")
        if self.near is not None:
            inside = f"within {percent(self.tolerance)} in " if self.tolerance else ""
            parts.append(f"{inside}{share_in_words(self.near)} by simulation")
        return "; ".join(parts) or "–"


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of an estimate over problems.

    Attributes:
        problems: N, simulated ones that the question has a meaning in.
        value: the mean, by theory where it reaches; None of fewer than two problems.
        of: number of problems that it is over.
        interval: Student's.
    """

    kind: Literal["estimate"] = "estimate"
    problems: int
    value: float | None = None
    of: int = 0
    interval: Pair | None = None

    def ends(self) -> tuple[Pair, Pair] | None:
        """The middle of the interval, twice, with half its width."""
        return middle_ends(self.interval)

    @property
    def answered(self) -> int:
        """Number of problems that the mean is over."""
        return self.of or self.problems

    @property
    def word(self) -> str:
        """No word: a mean is a number."""
        return ""

    def decided_by(self) -> str:
        """No method: nothing is decided."""
        return ""

    def headline(self, short: bool = False) -> str:
        """The mean with its interval."""
        if self.value is None or self.interval is None:
            return "–"
        return f"{significant(self.value)} ({number_range(*self.interval, short=short)})"

    def details(self) -> str:
        """The mean with its interval and the number of problems."""
        if self.value is None or self.interval is None:
            return "–"
        interval = f"{INTERVAL} {number_range(*self.interval)}"
        return f"{significant(self.value)} ({interval}, {self.of} problems)"


Result = Share | Gap | Mean
"""What is known of the effects of a population of problems."""


def middle_ends(interval: Pair | None) -> tuple[Pair, Pair] | None:
    """The middle of an interval, twice, with half its width; None of none."""
    if interval is None:
        return None
    end = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
    return end, end


def word_of(counted: Tally | None) -> str:
    """The word of a tally; "" of none."""
    if counted is None:
        return ""
    level = counted.level > counted.total / 2
    return house.word(counted.interval, counted.bracket[1] > 0, counted.total, level)


def share_in_words(counted: Tally) -> str:
    """The share of a tally with its interval and the number of problems."""
    if counted.total < house.SHOWN:
        return too_few(counted.total)
    interval = f"{INTERVAL} {percent_range(*counted.interval)}"
    return f"{percent_range(*counted.bracket)} ({interval}, {counted.total} problems)"


def margins(effects: Effects, tolerance: float | None) -> np.ndarray:
    """Margins (N,) by which simulated problems hold, negative if they fail; NaN if none can."""
    if effects.kind == "share":
        return effects.value
    if effects.kind == "outcome":
        return effects.value + (tolerance or 0.0)
    off = tolerance if tolerance is not None and effects.kind == "gap" else np.nan
    return off - np.abs(effects.value)


def calls(effects: Effects, tolerance: float | None = None) -> np.ndarray:
    """1 where a problem holds by three standard errors, −1 where it fails, else 0; or NaN, (N,).

    Outcomes may be level, 2, too: :func:`sims.judgement.outcomes.outcome_calls`.
    """
    if effects.kind == "outcome":
        return outcome_calls(
            effects.value, effects.error, effects.freedom, effects.looks, tolerance or 0.0
        )
    margin, far = margins(effects, tolerance), house.CALLED * effects.error
    return np.select([np.isnan(margin), margin > far, margin <= -far], [np.nan, 1.0, -1.0])


def confirmed_failure(
    effects: Effects, selected: np.ndarray, tolerance: float | None = None
) -> tuple[int | None, float]:
    """The problem that fails most certainly in half of its draws, and the p-value of the others.

    The other half had no part in the choice, so that the p-value counts no problems. Theory alone
    has no draws: its failure is one beyond the stated error. None where no problem fails.

    Args:
        effects: of N problems.
        selected: which of them are meant, (M,), M ≥ N.
        tolerance: that gaps are held against.
    """
    first, fresh = (effects.half(number) for number in (0, 1))
    margin = margins(first, tolerance)
    margin = np.where(selected[: len(margin)].reshape(-1, *[1] * (margin.ndim - 1)), margin, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(margin / first.error, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    if not (ratio < 0).any():
        return None, 1.0
    place = np.unravel_index(ratio.argmin(), ratio.shape)
    worst = int(place[0])
    margin = margins(fresh, tolerance)[place]
    p = float(fixed_p(-margin, fresh.error[place], fresh.freedom[worst])) * effects.looks
    return worst, min(p, 1.0) if np.isfinite(p) else 1.0  # too few draws confirm nothing


def foreseen(effects: Effects) -> np.ndarray:
    """The same by theory, 0 outside its range, (M,); of no problem where it does not reach."""
    if effects.predicted is None or effects.kind != "share":
        return np.empty(0)
    theory = effects.predicted
    outside = np.zeros(len(theory), bool) if effects.valid is None else ~effects.valid
    return np.select([np.isnan(theory), outside, theory > 0], [np.nan, 0.0, 1.0], -1.0)


def summarize(effects: Effects, selected: np.ndarray, tolerance: float | None = None) -> Result:
    """The result of the effects of selected problems.

    Args:
        effects: of all problems.
        selected: which of the M are meant.
        tolerance: that gaps are held against.
    """
    meaningful = np.isfinite(effects.value)
    if meaningful.ndim > 1:
        meaningful = meaningful.all(1)
    rows = selected[: len(effects.value)] & meaningful
    if effects.kind in ("share", "outcome"):
        return _share(effects, selected, rows, tolerance)
    if effects.kind == "gap":
        return _gap(effects, rows, tolerance)
    return _mean(effects, selected, rows)


def _share(
    effects: Effects, selected: np.ndarray, rows: np.ndarray, tolerance: float | None
) -> Share:
    call, theory = calls(effects, tolerance)[rows], foreseen(effects)
    size = None
    if effects.size is not None and np.isfinite(effects.size[rows]).any():
        quartiles = np.nanquantile(effects.size[rows], (0.25, 0.5, 0.75))
        size = (float(quartiles[0]), float(quartiles[1]), float(quartiles[2]))
    if not len(theory):
        return Share(problems=int(rows.sum()), simulated=tally(call), size=size)
    products = call * theory[: len(rows)][rows]
    return Share(
        problems=int(rows.sum()),
        simulated=tally(call),
        theory=tally(theory[selected & np.isfinite(theory)]),
        contradictions=int((products < 0).sum()),
        size=size,
    )


def _gap(effects: Effects, rows: np.ndarray, tolerance: float | None) -> Gap:
    """T95 by order statistics, and what the errors would have shown."""
    size, error = np.abs(effects.value[rows]), effects.error[rows]
    call = calls(effects, tolerance)[rows]
    near = tally(call[np.isfinite(call)])
    count, tail = len(size), (1 - house.LEVEL) / 2
    if not count:
        return Gap(problems=0, tolerance=tolerance, near=near)
    low, high = np.sort(np.maximum(size - 2 * error, 0)), np.sort(size + 2 * error)
    # So many of N are below the quantile, but once in 40 fewer than r, and once s or more.
    below = bdtr(np.arange(count + 1), count, house.WITHIN)
    r, s = map(int, np.searchsorted(below, [tail, 1 - tail]))
    middle = int(np.ceil(house.WITHIN * count)) - 1
    ends = float(low[r - 1]) if r else 0.0, float(high[s]) if s < count else None
    return Gap(
        problems=count,
        tolerance=tolerance,
        near=near,
        within=(float(low[middle]), float(high[middle])),
        within_interval=ends,
        above_three=float((size > house.CALLED * error).mean()),
        visible=float(np.quantile(house.CALLED * error, house.WITHIN)),
    )


def _mean(effects: Effects, selected: np.ndarray, rows: np.ndarray) -> Mean:
    value = effects.value[rows]
    if effects.predicted is not None:
        valid = True if effects.valid is None else effects.valid
        value = effects.predicted[selected & valid & np.isfinite(effects.predicted)]
    if len(value) < 2:
        return Mean(problems=int(rows.sum()))
    half = stdtrit(len(value) - 1, (1 + house.LEVEL) / 2) * mcse(value)
    mean = float(value.mean())
    interval = (float(mean - half), float(mean + half))
    return Mean(problems=int(rows.sum()), value=mean, of=len(value), interval=interval)
