"""Colours and markers of the groups of a tidy frame.

``hue`` names the column whose levels differ in both. The order of levels is that of a categorical
column (so that a level keeps its colour in every panel), otherwise numbers ascend and words keep
their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sims.base.errors import InputError
from sims.figures.theme import MARKERS, PALETTE

if TYPE_CHECKING:
    import pandas as pd


def levels(column: str | None, frames: Sequence[pd.DataFrame]) -> list[Hashable]:
    """Levels of a column of several frames, in the order described above; [None] without one.

    Raises:
        InputError: a frame lacks the column.
    """
    if column is None:
        return [None]
    for frame in frames:
        if column not in frame:
            raise InputError("hue", column, f"a column: {', '.join(map(str, frame))}")
        if hasattr(frame[column], "cat"):
            return list(frame[column].cat.categories)
    values = list(dict.fromkeys(value for frame in frames for value in frame[column]))
    numeric = all(isinstance(value, (int, float, np.number)) for value in values)
    return sorted(values) if numeric else values


def series(
    frame: pd.DataFrame, hue: str | None, frames: Sequence[pd.DataFrame]
) -> Iterator[tuple[Hashable, pd.DataFrame, dict[str, str]]]:
    """Groups of a frame with rows: level of ``hue``, rows, colour and marker.

    Args:
        frame: tidy frame, one row per observation.
        hue: column of the levels.
        frames: all frames on the same axes, including this one, whose levels count.

    Raises:
        InputError: there are more levels than distinct colours.
    """
    hues = levels(hue, frames)
    if len(hues) > len(PALETTE):
        raise InputError(f"levels of {hue}", len(hues), f"at most {len(PALETTE)}")
    for level, color, marker in zip(hues, PALETTE, MARKERS, strict=False):
        rows = frame if hue is None else frame[frame[hue] == level]
        if len(rows):
            yield level, rows, {"color": color, "marker": marker}
