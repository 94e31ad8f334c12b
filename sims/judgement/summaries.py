"""Summaries of effects: shares of problems, T95 of gaps and means of estimates. No JAX."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import bdtr, betaincinv, stdtrit

from sims.estimates import mcse
from sims.judgement import house
from sims.judgement.intervals import fixed_p

Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of one question: one number per problem.

    Attributes:
        value: (N,) simulated effects: positive where the claim holds ("share"), relative gaps of
            the two roads ("gap") or any number ("estimate"). NaN where the question has no meaning.
        error: (N,) their Monte Carlo standard errors.
        kind: how they are summed up.
        predicted: (M,) theory's effects of M ≥ N problems, the first N the simulated ones; None
            where theory does not reach.
        valid: (M,) where theory is in its range and surer of the sign than its error; None:
            everywhere.
        draws: (N, B) whose means are the values and whose spread gives the errors: independent of
            each other, given the problem; None of theory alone, whose error is stated.
    """

    value: np.ndarray
    error: np.ndarray
    kind: Literal["share", "gap", "estimate"] = "share"
    predicted: np.ndarray | None = None
    valid: np.ndarray | None = None
    draws: np.ndarray | None = None

    def half(self, number: int) -> "Effects":
        """The effects by every second draw, from the first (0) or the second one (1)."""
        if self.draws is None:
            return self
        draws = self.draws[:, number::2]
        return replace(self, value=draws.mean(1), error=mcse(draws.T), draws=draws)


@dataclass(frozen=True)
class Share:
    """The share of problems in which a claim holds.

    Attributes:
        holds: in how many it does.
        fails: in how many it does not.
        unresolved: of how many this is not known.
        bracket: the share if it holds in none, and in all, of the unresolved ones.
        interval: Clopper–Pearson's, outward from the bracket.
    """

    holds: int
    fails: int
    unresolved: int
    bracket: Pair
    interval: Pair

    @property
    def total(self) -> int:
        """Number of problems that the share is of."""
        return self.holds + self.fails + self.unresolved


def share(calls: np.ndarray) -> Share | None:
    """The share of ones among calls of 1 (holds), −1 (fails) and 0; None of none."""
    holds, fails, open_ = (int((calls == k).sum()) for k in (1, -1, 0))
    upper, total, tail = holds + open_, len(calls), (1 - house.LEVEL) / 2
    if not total:
        return None
    low = float(betaincinv(holds, total - holds + 1, tail)) if holds else 0.0
    high = float(betaincinv(upper + 1, total - upper, 1 - tail)) if upper < total else 1.0
    return Share(holds, fails, open_, (holds / total, upper / total), (low, high))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of the effects of a population of problems.

    Attributes:
        problems: N, simulated ones that the question has a meaning in.
        simulated: the share of them by simulation, which calls each at three standard errors.
        theory: the share of the M by theory; unresolved are problems outside its range.
        contradictions: called problems in theory's range of which theory says the opposite.
        within: T95, the 95 % quantiles of the gap's size less two standard errors and plus two.
        within_interval: order statistics that enclose them; the end is None if N is too small.
        above_three: share of gaps beyond three standard errors.
        visible: the gap that three standard errors would show in 95 % of the problems.
        mean: of an estimate, over ``mean_of`` problems.
        mean_interval: Student's.
        word: as :func:`sims.judgement.house.word` has it; "" where no share is asked for.
    """

    problems: int
    simulated: Share | None = None
    theory: Share | None = None
    contradictions: int | None = None
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

    @property
    def answered(self) -> int:
        """Number of problems that the number which decides is of."""
        return self.share.total if self.share else self.mean_of or self.problems


def margins(effects: Effects, tolerance: float | None) -> np.ndarray:
    """Margins (N,) by which simulated problems hold, negative if they fail; NaN if none can."""
    if effects.kind == "share":
        return effects.value
    off = tolerance if tolerance is not None and effects.kind == "gap" else np.nan
    return off - np.abs(effects.value)


def calls(effects: Effects, tolerance: float | None = None) -> np.ndarray:
    """1 where a problem holds by three standard errors, −1 where it fails, else 0; or NaN, (N,)."""
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
    margin = np.where(selected[: len(effects.value)], margins(first, tolerance), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(margin / first.error, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    if not (ratio < 0).any():
        return None, 1.0
    worst = int(ratio.argmin())
    freedom = np.inf if fresh.draws is None else fresh.draws.shape[1] - 1
    margin = margins(fresh, tolerance)[worst]
    p = float(fixed_p(-margin, fresh.error[worst], freedom))
    return worst, p if np.isfinite(p) else 1.0  # too few draws confirm nothing


def foreseen(effects: Effects) -> np.ndarray:
    """The same by theory, 0 outside its range, (M,); of no problem where it does not reach."""
    if effects.predicted is None or effects.kind != "share":
        return np.empty(0)
    theory = effects.predicted
    outside = np.zeros(len(theory), bool) if effects.valid is None else ~effects.valid
    return np.select([np.isnan(theory), outside, theory > 0], [np.nan, 0.0, 1.0], -1.0)


def summary(
    effects: Effects, selected: np.ndarray, tolerance: float | None = None, smoke: bool = False
) -> Summary:
    """The summary of the effects of selected problems.

    Args:
        effects: of all problems.
        selected: which of the M are meant.
        tolerance: that gaps are held against.
        smoke: whether there are too few problems to say anything.
    """
    rows = selected[: len(effects.value)] & np.isfinite(effects.value)
    value, error = effects.value[rows], effects.error[rows]
    call, theory, fields = calls(effects, tolerance)[rows], foreseen(effects), dict[str, Any]()
    if len(theory):
        products = call * theory[: len(rows)][rows]
        fields = {"contradictions": int((products < 0).sum())}
    if effects.kind == "gap" and len(value):
        fields = _within(np.abs(value), error)
    if effects.kind == "estimate" and effects.predicted is not None:
        valid = True if effects.valid is None else effects.valid
        value = effects.predicted[selected & valid & np.isfinite(effects.predicted)]
    if effects.kind == "estimate" and len(value) > 1:
        half = stdtrit(len(value) - 1, (1 + house.LEVEL) / 2) * mcse(value)
        interval = float(value.mean() - half), float(value.mean() + half)
        fields = {"mean": float(value.mean()), "mean_of": len(value), "mean_interval": interval}
    result = Summary(
        problems=int(rows.sum()),
        simulated=share(call[np.isfinite(call)]),
        theory=share(theory[selected & np.isfinite(theory)]) if len(theory) else None,
        **fields,
    )
    if (decided := result.share) is None:
        return result
    problems = 0 if smoke else decided.total
    return replace(result, word=house.word(decided.interval, decided.bracket[1] > 0, problems))


def _within(gap: np.ndarray, error: np.ndarray) -> dict[str, Any]:
    """T95 of gaps (N,) with errors, by order statistics; and what the errors would have shown."""
    low, high = np.sort(np.maximum(gap - 2 * error, 0)), np.sort(gap + 2 * error)
    count, tail = len(gap), (1 - house.LEVEL) / 2
    # So many of N are below the quantile, but once in 40 fewer than r, and once s or more.
    below = bdtr(np.arange(count + 1), count, house.WITHIN)
    r, s = map(int, np.searchsorted(below, [tail, 1 - tail]))
    middle = int(np.ceil(house.WITHIN * count)) - 1
    ends = float(low[r - 1]) if r else 0.0, float(high[s]) if s < count else None
    return {
        "within": (float(low[middle]), float(high[middle])),
        "within_interval": ends,
        "above_three": float((gap > house.CALLED * error).mean()),
        "visible": float(np.quantile(house.CALLED * error, house.WITHIN)),
    }
