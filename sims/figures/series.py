"""How the groups of a tidy frame get their colours, markers and dashes.

``hue`` names the column whose levels differ in colour and marker, ``style`` the one whose levels
differ in dash and in whether a marker is filled. The order of levels is that of a categorical
column (so that a level keeps its colour in every panel), else numbers ascend and words keep the
order in which they come.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sims.errors import InputError
from sims.figures.theme import DASHES, MARKERS, PALETTE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Series:
    """One group of a frame and how it looks.

    Attributes:
        hue: its level of the hue column, None without one.
        style: its level of the style column, None without one.
        rows: its rows of the frame.
        color: of its line, points and bars.
        marker: of its points.
        dash: pattern of its line, in line widths; empty is solid.
        filled: whether its markers are.
    """

    hue: Hashable
    style: Hashable
    rows: pd.DataFrame
    color: str
    marker: str
    dash: tuple[float, ...]
    filled: bool


def levels(column: str | None, frames: Sequence[pd.DataFrame]) -> list[Hashable]:
    """Levels of a column of several frames, in the order described above; [None] without one.

    Raises:
        InputError: a frame lacks the column.
    """
    if column is None:
        return [None]
    for frame in frames:
        if column not in frame:
            raise InputError("hue or style", column, f"a column: {', '.join(map(str, frame))}")
    for frame in frames:
        if hasattr(frame[column], "cat"):
            return list(frame[column].cat.categories)
    values = list(dict.fromkeys(value for frame in frames for value in frame[column]))
    numeric = all(isinstance(value, (int, float, np.number)) for value in values)
    return sorted(values) if numeric else values


def series(
    frame: pd.DataFrame,
    hue: str | None,
    style: str | None,
    beside: Sequence[pd.DataFrame] = (),
) -> Iterator[Series]:
    """The groups of a frame that have rows, each with its look.

    Args:
        frame: tidy, a row an observation.
        hue: column of colours and markers.
        style: column of dashes and fills.
        beside: frames drawn on the same axes, whose levels count too.

    Raises:
        InputError: more levels than there are looks to tell them apart.
    """
    frames = [frame, *beside]
    hues, styles = levels(hue, frames), levels(style, frames)
    for column, found, most in ((hue, hues, len(PALETTE)), (style, styles, len(DASHES))):
        if len(found) > most:
            raise InputError(f"levels of {column}", len(found), f"at most {most}")
    for i, level in enumerate(hues):
        for k, kind in enumerate(styles):
            chosen = np.ones(len(frame), bool)
            if hue is not None:
                chosen &= (frame[hue] == level).to_numpy()
            if style is not None:
                chosen &= (frame[style] == kind).to_numpy()
            if chosen.any():
                yield Series(
                    level, kind, frame[chosen], PALETTE[i],
                    MARKERS[i], DASHES[k], k > 0,
                )  # fmt: skip
