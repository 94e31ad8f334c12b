"""Tallies of the calls of problems: how many hold, fail, are level or undecided. No JAX."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from sims.judgement import conventions
from sims.judgement.outcomes import FAILS, HOLDS, LEVEL, UNDECIDED
from sims.judgement.wording import INTERVAL, percent, percent_range, too_few

Pair = tuple[float, float]
OUTSIDE = "outside theory's range"
"""The reason of theory's undecided problems."""


@dataclass(frozen=True)
class Tally:
    """Number of problems in which a claim holds, and its share of all of them.

    Attributes:
        holds: number of problems in which it holds.
        fails: number in which it fails.
        undecided: number of undecided problems.
        level: number of problems without a relevant difference.
        reason: of undecided problems: theory's range, or Monte Carlo error.
        level_holds: whether level problems count as ones that hold, as for "never rises by more
            than 1 %"; else they count as ones that do not.
    """

    holds: int
    fails: int
    undecided: int
    level: int = 0
    reason: str = ""
    level_holds: bool = False

    @property
    def total(self) -> int:
        """Number of problems."""
        return self.holds + self.fails + self.undecided + self.level

    @property
    def certain(self) -> int:
        """Number of problems that count as ones in which the claim holds."""
        return self.holds + self.level if self.level_holds else self.holds

    @property
    def bracket(self) -> Pair:
        """Share of all problems, counting none and all of the undecided ones."""
        return self.certain / self.total, (self.certain + self.undecided) / self.total

    @property
    def interval(self) -> Pair:
        """Clopper–Pearson interval around the bracket."""
        tail = (1 - conventions.LEVEL) / 2
        least, most = self.certain, self.certain + self.undecided
        low, high = 0.0, 1.0
        if least:
            low = float(betaincinv(least, self.total - least + 1, tail))
        if most < self.total:
            high = float(betaincinv(most + 1, self.total - most, 1 - tail))
        return low, high

    @property
    def most_failing(self) -> float:
        """Upper 95 % bound of the share of failures among decided problems."""
        decided = self.total - self.undecided
        if self.fails >= decided:
            return 1.0
        return float(betaincinv(self.fails + 1, decided - self.fails, conventions.LEVEL))

    @property
    def parts(self) -> dict[str, float]:
        """Shares of all problems by outcome."""
        names = ("holds", "fails", "level", "undecided")
        return {name: getattr(self, name) / self.total for name in names}


def tally(calls: np.ndarray, reason: str = "", level_holds: bool = False) -> Tally | None:
    """Tally of calls of 1 (holds), −1 (fails), 2 (level) and 0 (undecided); None without calls.

    Args:
        calls: calls of the problems.
        reason: reason of undecided problems.
        level_holds: whether level problems count as ones that hold.
    """
    if not len(calls):
        return None
    kinds = np.array([HOLDS, FAILS, UNDECIDED, LEVEL])
    holds, fails, undecided, level = (calls == kinds[:, None]).sum(1).tolist()
    return Tally(holds, fails, undecided, level, reason, level_holds)


def word_of(counted: Tally | None) -> str:
    """Word of a tally; "" without one."""
    if counted is None:
        return ""
    middle = sum(counted.bracket) / 2
    return conventions.word(middle, counted.interval, counted.total)


def share_in_words(counted: Tally) -> str:
    """Predicate on a claim: in which shares of the problems it holds, fails, is level or open."""
    if counted.total < conventions.SHOWN:
        return f"has {too_few(counted.total)}"
    notes = {"level": "counted as holding" * counted.level_holds, "undecided": counted.reason}
    interval = f"{INTERVAL} {percent_range(*counted.interval)}"
    told = [f"holds in {percent(counted.bracket[0])} of {counted.total} problems ({interval})"]
    for name, part in [*counted.parts.items()][1:]:
        if part:
            verb = name if name == "fails" else f"is {name}"
            note = f" ({notes[name]})" if notes.get(name) else ""
            told.append(f"{verb} in {percent(part)}{note}")
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
