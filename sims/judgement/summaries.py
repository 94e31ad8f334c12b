"""Summaries of effects: shares of problems, T95 of gaps and means over problems. No JAX."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.special import bdtr, stdtrit

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.effects import Effects
from sims.judgement.outcomes import UNDECIDED
from sims.judgement.tally import OUTSIDE, Pair, Tally, share_in_words, tally, word_of
from sims.judgement.wording import (
    number_range,
    percent,
    percent_range,
    significant,
    too_few,
)

Quartiles = tuple[float, float, float]
NOISY = 0.2
"""Monte Carlo error of a size, relative to its quartile range, above which it is reported."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """Share of problems in which a claim holds, by both methods.

    Attributes:
        problems: number N of simulated problems in which the question has a meaning.
        simulated: tally by simulation, which calls each problem at three standard errors, or of
            outcomes by theory alone.
        theory: tally by theory of M ≥ N problems; problems outside its range are undecided.
        contradictions: decided problems in theory's range for which theory has the opposite call.
        size: lower quartile, median and upper quartile of the relative change.
        components: the same quartiles for parts of the change, by name.
        size_noise: median Monte Carlo error of a problem's change over the range of the quartiles.
        beyond: of outcomes, wider tolerances to the tallies by which they hold by more.
    """

    kind: Literal["share"] = "share"
    problems: int
    simulated: Tally | None = None
    theory: Tally | None = None
    contradictions: int | None = None
    size: Quartiles | None = None
    components: dict[str, Quartiles] = field(default_factory=dict)
    size_noise: float | None = None
    beyond: dict[str, Tally | None] = field(default_factory=dict)

    @property
    def deciding(self) -> Tally | None:
        """Tally that decides the word, with the narrower interval of theory and simulation."""
        both = [tally for tally in (self.theory, self.simulated) if tally is not None]
        return min(both, key=lambda tally: tally.interval[1] - tally.interval[0], default=None)

    @property
    def interval(self) -> Pair | None:
        """The interval of the share."""
        return self.deciding.interval if self.deciding else None

    def ends(self) -> tuple[Pair, Pair] | None:
        """Both ends of the bracket, each with its distance to the end of the interval."""
        if self.deciding is None:
            return None
        (low, high), (least, most) = self.deciding.bracket, self.deciding.interval
        return (low, low - least), (high, most - high)

    @property
    def answered(self) -> int:
        """Number of problems in the share."""
        return self.deciding.total if self.deciding else self.problems

    @property
    def word(self) -> str:
        """Word for how often the claim holds, from :func:`sims.judgement.conventions.word`."""
        return word_of(self.deciding)

    def headline(self) -> str:
        """The share that holds, of so many problems, with its interval."""
        if self.deciding is None:
            return "–"
        if self.deciding.total < conventions.SHOWN:
            return too_few(self.deciding.total)
        share = percent(self.deciding.bracket[0])
        return (
            f"{share} of {self.deciding.total} problems ({percent_range(*self.deciding.interval)})"
        )

    def others(self) -> str:
        """Shares that fail, are level, and undecided; in brackets level ones that hold, too."""
        if self.deciding is None or self.deciding.total < conventions.SHOWN:
            return ""
        fails, level, undecided = map(percent, [*self.deciding.parts.values()][1:])
        level = f"({level})" if self.deciding.level_holds else level
        return f"{fails} / {level} / {undecided}"

    def decided_by(self) -> str:
        """The method whose tally decides the word, and the number of contradictions."""
        if self.deciding is None:
            return "simulation"
        method = self._method(self.deciding)
        if self.theory is None:
            return method
        return f"{method}; {self.contradictions or 'no'} contradictions"

    def _method(self, counted: Tally) -> str:
        """The method of a tally: outcomes may be theory's alone."""
        by_theory = counted is self.theory or counted.reason == OUTSIDE
        return "theory" if by_theory else "simulation"

    def how_much(self) -> str:
        """Median and quartiles of the relative change; "" where no size is reported."""
        return quartiles_in_words(self.size) if self.size else ""

    def made_of(self) -> str:
        """Parts of the change, and its Monte Carlo error if that is large; or ""."""
        parts = []
        for name, quartiles in self.components.items():
            parts.append(f"{name} {quartiles_in_words(quartiles)}")
        if self.size_noise is not None and self.size_noise > NOISY:
            share = percent(self.size_noise)
            parts.append(f"Monte Carlo error of one problem is {share} of the quartiles' range")
        return "; ".join(parts)

    def details(self) -> str:
        """Sentences on the outcomes of problems by both methods, and at wider tolerances."""
        parts = []
        for counted in (self.theory, self.simulated):
            if counted is not None:
                parts.append(f"By {self._method(counted)} the claim {share_in_words(counted)}.")
        if self.contradictions:
            parts.append(f"Simulation contradicts theory in {self.contradictions} problems.")
        for tolerance, counted in self.beyond.items():
            if counted:
                parts.append(
                    f"With a threshold of {percent(float(tolerance))} it holds in "
                    f"{percent(counted.parts['holds'])} and fails in "
                    f"{percent(counted.parts['fails'])}."
                )
        return " ".join(parts) or "–"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Relative gap between the two methods.

    Attributes:
        problems: number N of problems with a gap.
        near: problems whose gap is within the tolerance; None without a tolerance.
        within: T95, the 95 % quantiles of the absolute gap minus and plus two standard errors.
        within_interval: order statistics that enclose them; the end is None if N is too small.
        above_three: share of gaps beyond three standard errors.
        visible: the gap that is detectable at three standard errors in 95 % of the problems.
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
        """Interval of T95; None if there are too few problems for its upper end."""
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
        """Word for how often the gap is within the tolerance; "" without a tolerance."""
        return word_of(self.near)

    def decided_by(self) -> str:
        """The methods that are compared."""
        return "both"

    def headline(self) -> str:
        """T95, of so many problems, with its interval."""
        if self.within is None:
            return "–"
        if self.interval is None:
            return too_few(self.problems)
        share = f"{percent(conventions.WITHIN)} of {self.problems} problems"
        return f"within {percent_range(*self.within)} in {share} ({percent_range(*self.interval)})"

    def details(self) -> str:
        """Sentences on T95, and on the problems whose gap is within the tolerance."""
        parts = []
        if self.within is not None:
            few = "There are too few problems to bound the gap."
            parts.append(f"The gap is {self.headline()}." if self.interval else few)
        if self.near is not None and self.tolerance:
            told = share_in_words(self.near)
            parts.append(f"Agreement within {percent(self.tolerance)} {told}.")
        return " ".join(parts) or "–"


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of an estimate over problems.

    Attributes:
        problems: N, simulated ones that the question has a meaning in.
        value: the mean, by theory if available; None with fewer than two problems.
        of: number of problems in the mean.
        interval: Student's t interval.
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
        """Number of problems in the mean."""
        return self.of or self.problems

    @property
    def word(self) -> str:
        """Empty word, since a mean is a number."""
        return ""

    def decided_by(self) -> str:
        """Empty text, since nothing is decided."""
        return ""

    def headline(self) -> str:
        """The mean with its interval."""
        if self.value is None or self.interval is None:
            return "–"
        return f"{significant(self.value)} ({number_range(*self.interval)})"

    def details(self) -> str:
        """Sentence on the mean, with its interval and the number of problems."""
        return f"The mean of {self.of} problems is {self.headline()}."


Result = Share | Gap | Mean
"""Summary of the effects of a population of problems."""


def middle_ends(interval: Pair | None) -> tuple[Pair, Pair] | None:
    """Middle of an interval, twice, with half its width; None without an interval."""
    if interval is None:
        return None
    end = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2
    return end, end


def quartiles_in_words(quartiles: Quartiles) -> str:
    """Median of a relative change, with its quartiles."""
    low, median, high = quartiles
    return f"{percent(median)} ({percent_range(low, high)})"


def summarize(effects: Effects, selected: np.ndarray) -> Result:
    """Summary of the effects of selected problems.

    Args:
        effects: effects of all problems.
        selected: mask of the M problems.
    """
    meaningful = np.isfinite(effects.value)
    if meaningful.ndim > 1:
        meaningful = meaningful.all(1)
    rows = selected[: len(effects.value)] & meaningful
    if effects.kind in ("share", "outcome"):
        return _share(effects, selected, rows)
    if effects.kind == "gap":
        return _gap(effects, rows)
    return _mean(effects, selected, rows)


def _share(effects: Effects, selected: np.ndarray, rows: np.ndarray) -> Share:
    call = effects.call[rows]
    counted = tally(call, _reason(effects, rows, call), effects.level_holds)
    share = replace(_sizes(effects, rows), problems=int(rows.sum()), simulated=counted)
    for tolerance in conventions.WIDER if effects.kind == "outcome" else ():
        share.beyond[significant(tolerance)] = tally(effects.within(tolerance).call[rows])
    theory = effects.predicted_call
    if not len(theory):
        return share
    products = call * theory[: len(rows)][rows]
    return replace(
        share,
        theory=tally(theory[selected & np.isfinite(theory)], OUTSIDE),
        contradictions=int((products < 0).sum()),
    )


def _reason(effects: Effects, rows: np.ndarray, call: np.ndarray) -> str:
    """What leaves problems undecided: theory's range, or the error after so many batches."""
    if effects.batches is None:
        return OUTSIDE
    batches = effects.batches[rows][call == UNDECIDED]
    return f"Monte Carlo error after {batches.max():,.0f} batches" if len(batches) else ""


def _sizes(effects: Effects, rows: np.ndarray) -> Share:
    """Sizes of the changes of a share."""
    share = Share(problems=0)
    if effects.size is None or not np.isfinite(effects.size[rows]).any():
        return share
    size = _quartiles(effects.size[rows])
    components = {name: _quartiles(part[rows]) for name, part in effects.components.items()}
    noise = None
    if effects.size_error is not None and size[2] > size[0]:
        noise = float(np.nanmedian(effects.size_error[rows]) / (size[2] - size[0]))
    return replace(share, size=size, components=components, size_noise=noise)


def _quartiles(values: np.ndarray) -> Quartiles:
    low, median, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    return float(low), float(median), float(high)


def _gap(effects: Effects, rows: np.ndarray) -> Gap:
    """T95 by order statistics, and the detectable gap."""
    size, error = np.abs(effects.value[rows]), effects.error[rows]
    call = effects.call[rows]
    tolerance = effects.tolerance
    near = tally(call[np.isfinite(call)], _reason(effects, rows, call))
    count, tail = len(size), (1 - conventions.LEVEL) / 2
    if not count:
        return Gap(problems=0, tolerance=tolerance, near=near)
    low, high = np.sort(np.maximum(size - 2 * error, 0)), np.sort(size + 2 * error)
    # So many of N are below the quantile, but once in 40 fewer than r, and once s or more.
    below = bdtr(np.arange(count + 1), count, conventions.WITHIN)
    r, s = map(int, np.searchsorted(below, [tail, 1 - tail]))
    middle = int(np.ceil(conventions.WITHIN * count)) - 1
    ends = float(low[r - 1]) if r else 0.0, float(high[s]) if s < count else None
    return Gap(
        problems=count,
        tolerance=tolerance,
        near=near,
        within=(float(low[middle]), float(high[middle])),
        within_interval=ends,
        above_three=float((size > conventions.CALLED * error).mean()),
        visible=float(np.quantile(conventions.CALLED * error, conventions.WITHIN)),
    )


def _mean(effects: Effects, selected: np.ndarray, rows: np.ndarray) -> Mean:
    value = effects.value[rows]
    if effects.predicted is not None:
        valid = True if effects.valid is None else effects.valid
        value = effects.predicted[selected & valid & np.isfinite(effects.predicted)]
    if len(value) < 2:
        return Mean(problems=int(rows.sum()))
    half = stdtrit(len(value) - 1, (1 + conventions.LEVEL) / 2) * mcse(value)
    mean = float(value.mean())
    interval = (float(mean - half), float(mean + half))
    return Mean(problems=int(rows.sum()), value=mean, of=len(value), interval=interval)
