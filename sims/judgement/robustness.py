"""Robustness of an answer's word to alternative choices. No JAX."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.judgement import house
from sims.judgement.summaries import Share
from sims.judgement.wording import percent

MOST_CONTRADICTING = 0.25
"""Largest share of contradicting cells under which a word needs no qualification."""


@dataclass(frozen=True)
class Cell:
    """Share of problems under one value of every choice."""

    choices: dict[str, str]
    share: Share


@dataclass(frozen=True)
class Robustness:
    """Robustness of an answer's word over a table of specifications.

    Attributes:
        cells: cells with enough problems.
        contradicting: cells whose interval allows none of the words that the answer's allows.
        choice: the choice that changes the share most, with all others equal.
        shares: its values, each with the mean share; undecided problems count as half.
    """

    cells: int
    contradicting: int
    choice: str
    shares: dict[str, float]

    @property
    def holds(self) -> bool:
        """True if the word needs no qualification by a choice."""
        return self.contradicting <= MOST_CONTRADICTING * self.cells

    def in_words(self) -> str:
        """Sentence on the number of contradicting cells and the most influential choice."""
        values = ", ".join(f"{value} {percent(share)}" for value, share in self.shares.items())
        return (
            f"{self.contradicting} of {self.cells} specifications contradict the word; the share "
            f"depends most on {self.choice} ({values})"
        )


def robustness(answer: Share, cells: Sequence[Cell]) -> Robustness | None:
    """Robustness of an answer's word over cells; None if fewer than two have enough problems."""
    told = [cell for cell in cells if cell.share.deciding and cell.share.answered >= house.SHOWN]
    if answer.interval is None or len(told) < 2:
        return None
    allowed = set(house.words_of(answer.interval))
    contradicting = sum(
        allowed.isdisjoint(house.words_of(cell.share.interval or (0.0, 1.0))) for cell in told
    )
    differences = {name: _differences(told, name) for name in told[0].choices}
    choice = max(differences, key=lambda name: abs(differences[name]))
    grouped: dict[str, list[float]] = {}
    for cell in told:
        grouped.setdefault(cell.choices[choice], []).append(_middle(cell))
    shares = {value: float(np.mean(middles)) for value, middles in grouped.items()}
    return Robustness(len(told), contradicting, choice, shares)


def _differences(cells: Sequence[Cell], choice: str) -> float:
    """Mean difference of the share between cells that differ in one choice only."""
    found = []
    for one, other in itertools.combinations(cells, 2):
        apart = [name for name in one.choices if one.choices[name] != other.choices[name]]
        if apart == [choice]:
            found.append(_middle(other) - _middle(one))
    return float(np.mean(found)) if found else 0.0


def _middle(cell: Cell) -> float:
    deciding = cell.share.deciding
    return float(np.mean(deciding.bracket)) if deciding else np.nan
