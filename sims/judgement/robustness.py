"""Robustness of an answer's word to alternative choices. No JAX."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sims.judgement import conventions
from sims.judgement.summaries import Share
from sims.judgement.wording import percent


@dataclass(frozen=True)
class Cell:
    """Share of problems under one value of every choice."""

    choices: dict[str, str]
    share: Share


@dataclass(frozen=True)
class Robustness:
    """Robustness of an answer's word over all combinations of other choices.

    Attributes:
        cells: cells with enough problems for a word.
        same: cells with the answer's word.
        contradicting: cells whose interval allows none of the words that the answer's allows.
        choice: the choice that changes the share most, with all others equal.
        shares: its values, each with the mean share; undecided problems count as half.
    """

    cells: int
    same: int
    contradicting: int
    choice: str
    shares: dict[str, float]

    def in_words(self) -> str:
        """Sentence on the number of contradicting cells and the most influential choice."""
        values = ", ".join(f"{percent(share)} for {value}" for value, share in self.shares.items())
        words = "no combination of choices has enough problems for a word"
        if self.cells:
            words = f"the word is the same in {self.same} of {self.cells} combinations"
            if self.contradicting:
                words += f", and contradicted in {self.contradicting}"
        return f"{words}; the share depends most on the choice of {self.choice} ({values})"


def robustness(answer: Share, cells: Sequence[Cell]) -> Robustness | None:
    """Robustness of an answer's word over cells; None if fewer than two have enough problems."""
    told = []
    for cell in cells:
        if cell.share.deciding and cell.share.answered >= conventions.SHOWN:
            told.append(cell)
    if answer.interval is None or len(told) < 2:
        return None
    worded = [cell.share for cell in told if cell.share.answered >= conventions.FEWEST]
    same = sum(share.word == answer.word for share in worded)
    allowed = set(conventions.words_of(answer.interval))
    contradicting = 0
    for share in worded:
        contradicting += allowed.isdisjoint(conventions.words_of(share.interval or (0.0, 1.0)))
    differences = {name: _differences(told, name) for name in told[0].choices}
    choice = max(differences, key=lambda name: abs(differences[name]))
    grouped: dict[str, list[float]] = {}
    for cell in told:
        grouped.setdefault(cell.choices[choice], []).append(_middle(cell))
    shares = {value: float(np.mean(middles)) for value, middles in grouped.items()}
    return Robustness(len(worded), same, contradicting, choice, shares)


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
