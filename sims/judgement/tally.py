"""Tallies of the calls of problems: how many hold, fail, are level or undecided. No JAX."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from sims.judgement import conventions
from sims.judgement.outcomes import FAILS, HOLDS, LEVEL, UNDECIDED
from sims.judgement.wording import INTERVAL, percent, percent_range, too_few

Pair = tuple[float, float]
MANY = 0.05
"""Share of undecided problems above which an answer names the reason."""
OUTSIDE = "outside theory's range"
"""The reason of theory's undecided problems."""


@dataclass(frozen=True)
class Tally:
    """Number of problems in which a claim holds, and its share.

    Attributes:
        holds: number of problems in which it holds.
        fails: number in which it fails.
        undecided: number of undecided problems.
        level: number of problems without a relevant difference; they are in no share.
        bracket: the share, counting none and all of the undecided problems.
        interval: Clopper–Pearson interval around the bracket.
        reason: of undecided problems: theory's range, or Monte Carlo error.
    """

    holds: int
    fails: int
    undecided: int
    bracket: Pair
    interval: Pair
    level: int = 0
    reason: str = ""

    @property
    def total(self) -> int:
        """Number of problems, including level ones."""
        return self.holds + self.fails + self.undecided + self.level

    @property
    def parts(self) -> dict[str, float]:
        """Shares of all problems by outcome."""
        names = ("holds", "fails", "level", "undecided")
        return {name: getattr(self, name) / self.total for name in names}

    @property
    def why_undecided(self) -> str:
        """The reason of undecided problems if they are many, of enough for a word; else ""."""
        many = self.total >= conventions.FEWEST and self.undecided > MANY * self.total
        return self.reason if many else ""

    def undecided_in_words(self) -> str:
        """The share of undecided problems, with its reason, if they are many; else ""."""
        reason = self.why_undecided
        return f"{percent(self.parts['undecided'])} undecided ({reason})" if reason else ""


def tally(calls: np.ndarray, reason: str = "") -> Tally | None:
    """Tally of calls of 1 (holds), −1 (fails), 2 (level) and 0 (undecided); None without calls.

    Args:
        calls: calls of the problems.
        reason: reason of undecided problems.
    """
    if not len(calls):
        return None
    holds, fails, undecided, level = (
        int((calls == call).sum()) for call in (HOLDS, FAILS, UNDECIDED, LEVEL)
    )
    total, upper = holds + fails + undecided, holds + undecided
    if not total:
        return Tally(0, 0, 0, (0.0, 1.0), (0.0, 1.0), level, reason)
    tail = (1 - conventions.LEVEL) / 2
    low = float(betaincinv(holds, total - holds + 1, tail)) if holds else 0.0
    high = float(betaincinv(upper + 1, total - upper, 1 - tail)) if upper < total else 1.0
    bracket = (holds / total, upper / total)
    return Tally(holds, fails, undecided, bracket, (low, high), level, reason)


def word_of(counted: Tally | None) -> str:
    """Word of a tally; "" without one."""
    if counted is None:
        return ""
    level = counted.level > counted.total / 2
    return conventions.word(counted.interval, counted.bracket[1] > 0, counted.total, level)


def share_in_words(counted: Tally) -> str:
    """The share of a tally with its interval and the number of problems."""
    if counted.total < conventions.SHOWN:
        return too_few(counted.total)
    interval = f"{INTERVAL} {percent_range(*counted.interval)}"
    return f"{percent_range(*counted.bracket)} ({interval}, {counted.total} problems)"
