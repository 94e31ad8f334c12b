"""Robustness of an answer's word to the choices that a reader could have made. No JAX."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.judgement import house
from sims.judgement.summaries import Share
from sims.judgement.wording import percent

MOST_CONTRADICTING = 0.25
"""Share of the cells that may contradict a word that stands alone."""


@dataclass(frozen=True)
class Cell:
    """The share of problems under one value of every choice."""

    choices: dict[str, str]
    share: Share


@dataclass(frozen=True)
class Robustness:
    """How an answer's word fares over a table of specifications.

    Attributes:
        cells: cells of enough problems to be shown.
        contradicting: those whose interval allows none of the words that the answer's allows.
        choice: the choice that changes the share most, all others alike.
        shares: its values, each with the mean share, undecided problems counted as halves.
    """

    cells: int
    contradicting: int
    choice: str
    shares: dict[str, float]

    @property
    def holds(self) -> bool:
        """True if the word may stand without the choice that decides it."""
        return self.contradicting <= MOST_CONTRADICTING * self.cells

    def in_words(self) -> str:
        """The number of cells that contradict, and what changes the share most."""
        values = ", ".join(f"{value} {percent(share)}" for value, share in self.shares.items())
        return (
            f"{self.contradicting} of {self.cells} specifications contradict the word; the share "
            f"depends most on {self.choice} ({values})"
        )


def robustness(answer: Share, cells: Sequence[Cell]) -> Robustness | None:
    """The fate of an answer's word over cells; None where fewer than two have enough problems."""
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
    """Mean difference of the share between two cells that differ in one choice alone."""
    found = []
    for one, other in itertools.combinations(cells, 2):
        apart = [name for name in one.choices if one.choices[name] != other.choices[name]]
        if apart == [choice]:
            found.append(_middle(other) - _middle(one))
    return float(np.mean(found)) if found else 0.0


def _middle(cell: Cell) -> float:
    deciding = cell.share.deciding
    return float(np.mean(deciding.bracket)) if deciding else np.nan
