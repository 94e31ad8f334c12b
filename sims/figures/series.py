"""How the groups of a tidy frame get their colours and markers.

``hue`` names the column whose levels differ in both. The order of levels is that of a categorical
column (so that a level keeps its colour in every panel), else numbers ascend and words keep the
order in which they come. With ``emphasis`` one level is in the one strong colour, its markers
filled, and all others are in greys, told apart by their markers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from sims.errors import InputError
from sims.estimates import mcse
from sims.figures.theme import GREYS, MARKERS, PALETTE, STRONG

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Look(TypedDict, total=False):
    """How the groups of a frame are told apart: keywords that the shared plots have in common.

    Attributes:
        hue: column whose levels differ in colour and marker.
        emphasis: the level of ``hue`` that the figure is about.
    """

    hue: str | None
    emphasis: Hashable


@dataclass(frozen=True)
class Series:
    """One group of a frame and how it looks.

    Attributes:
        hue: its level of the hue column, None without one.
        rows: its rows of the frame.
        color: of its line, points and bars.
        marker: of its points.
        fill: colour of its markers' inside.
    """

    hue: Hashable
    rows: pd.DataFrame
    color: str
    marker: str
    fill: str


def tidy(batches: xr.DataArray, **columns: Any) -> pd.DataFrame:
    """Estimates as a tidy frame: a row a place, ``simulation`` and its ``mcse``.

    Args:
        batches: along ``batch`` and the dimensions of the places, whose coordinates are columns.
        columns: further ones, constant or of a value a row.
    """
    values = batches.astype(float).transpose("batch", ...)
    frame = values.mean("batch").to_dataframe("simulation")
    return frame.assign(mcse=mcse(values.values).ravel(), **columns).reset_index()


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
    for frame in frames:
        if hasattr(frame[column], "cat"):
            return list(frame[column].cat.categories)
    values = list(dict.fromkeys(value for frame in frames for value in frame[column]))
    numeric = all(isinstance(value, (int, float, np.number)) for value in values)
    return sorted(values) if numeric else values


def series(
    frame: pd.DataFrame,
    hue: str | None = None,
    beside: Sequence[pd.DataFrame] = (),
    emphasis: Hashable = None,
) -> Iterator[Series]:
    """The groups of a frame that have rows, each with its look.

    Args:
        frame: tidy, a row an observation.
        hue: as in :class:`Look`, like ``emphasis``.
        beside: all frames drawn on the same axes, if there are others, whose levels count too.
        emphasis: a level of ``hue``.

    Raises:
        InputError: more levels than there are looks to tell them apart.
    """
    hues = levels(hue, beside or [frame])
    if len(hues) > len(PALETTE):
        raise InputError(f"levels of {hue}", len(hues), f"at most {len(PALETTE)}")
    colors = iter(PALETTE if emphasis is None else GREYS)
    for level, marker in zip(hues, MARKERS, strict=False):
        strong = emphasis is not None and level == emphasis
        color = STRONG if strong else next(colors)
        rows = frame if hue is None else frame[frame[hue] == level]
        if len(rows):
            yield Series(level, rows, color, marker, STRONG if strong else "white")
