"""Sheets that figures are drawn on: two widths, grids of panels, letters.

A figure is written for two columns of a page and can be asked for in one (:func:`preset`, ``sims
plot NAME --width one-column``): then its panels stand one below another, each as high as before, so
that type keeps its size and lines keep their room.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from sims.errors import InputError
from sims.figures.theme import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 89 / 25.4, 183 / 25.4
"""Widths of a figure of one column and of two, inches (89 and 183 mm: most journals')."""
WIDTHS = {"one-column": COLUMN, "two-column": PAGE}
"""The widths by name."""
TITLE, LETTER, LINE = 9.0, 0.62, 0.17
"""Of a figure's title: points, mean width of a bold letter in them, height of a line in inches."""

_asked: ContextVar[float | None] = ContextVar("width", default=None)


@contextmanager
def preset(width: str) -> Iterator[None]:
    """Give figures that are made in the ``with`` block a width, whatever they were written for.

    Args:
        width: "one-column" (89 mm) or "two-column" (183 mm).

    Raises:
        InputError: it is neither.
    """
    if width not in WIDTHS:
        raise InputError("width", width, ", ".join(WIDTHS))
    token = _asked.set(WIDTHS[width])
    try:
        yield
    finally:
        _asked.reset(token)


def panels(
    rows: int = 1,
    columns: int = 1,
    width: float = PAGE,
    height: float | None = None,
    sharex: bool = False,
    sharey: bool = False,
    title: str = "",
) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes.

    Args:
        rows: number of rows of panels.
        columns: number of columns of panels.
        width: inches; :data:`COLUMN` or :data:`PAGE`, unless a :func:`preset` says otherwise.
        height: inches; None gives every panel the proportion 4:3.3.
        sharex: whether panels have one x axis in common.
        sharey: whether panels have one y axis in common.
        title: the figure's message, in a sentence, at its upper left.

    Returns:
        The figure and its axes, shape (rows, columns), wherever they stand.
    """
    if height is None:
        height = rows * width / columns * 0.82
    asked = _asked.get() or width
    stacked = columns > 1 and asked < width
    shape = (rows * columns, 1) if stacked else (rows, columns)
    with style():
        figure = _sheet(asked, height * (columns if stacked else 1), title)
        axes = figure.subplots(*shape, sharex=sharex, sharey=sharey, squeeze=False)
    return figure, axes.reshape(rows, columns)


def mosaic(
    layout: Sequence[str],
    *,
    height: float,
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
    stacked: Mapping[str, float] | None = None,
    title: str = "",
) -> tuple[Figure, Mapping[str, Axes]]:
    """A figure of two columns whose panels are of several sizes.

    Args:
        layout: a word a row, a letter a panel: ``("abc", "ddd")`` has three panels above a wide
            one. "." is left empty.
        height: inches.
        heights: of the rows, relative to each other; equal by default.
        widths: of the columns, relative to each other; equal by default.
        stacked: heights, in the unit of ``heights``, of panels that need others in one column; a
            panel keeps its height by default.
        title: as of :func:`panels`.

    Returns:
        The figure and its axes by letter; under the one-column :func:`preset` they stand one below
        another in alphabetical order.
    """
    width, rows = _asked.get() or PAGE, list(layout)
    parts = list(heights or [1.0] * len(rows))
    if width < PAGE:
        names = sorted(set("".join(rows)) - {"."})
        own = [
            (stacked or {}).get(
                name, sum(part for part, row in zip(parts, rows, strict=True) if name in row)
            )
            for name in names
        ]
        height *= sum(own) / sum(parts)
        rows, parts, widths = names, own, None
    bands = _bands(rows)
    with style():
        figure = _sheet(width, height, title)
        # Bands are laid out apart, or long names of one would leave the others no room.
        sheets = figure.subfigures(
            len(bands), 1, squeeze=False,
            height_ratios=[sum(parts[i] for i in band) for band in bands],
        )[:, 0]  # fmt: skip
        axes: dict[str, Axes] = {}
        for sheet, band in zip(sheets, bands, strict=True):
            axes |= sheet.subplot_mosaic(
                [list(rows[i]) for i in band], height_ratios=[parts[i] for i in band],
                width_ratios=widths,
            )  # fmt: skip
    return figure, axes


def narrow(ax: Axes) -> bool:
    """Whether the axes are of a figure narrower than two columns, where less can be written."""
    # The canvas knows the root figure, of which a panel's figure may be a part.
    return bool(ax.figure.canvas.figure.get_figwidth() < PAGE)


def _bands(rows: Sequence[str]) -> list[list[int]]:
    """Rows by number, those together that a panel spans."""
    bands: list[list[int]] = []
    for place, row in enumerate(rows):
        if bands and set(row) & set(rows[place - 1]) - {"."}:
            bands[-1].append(place)
        else:
            bands.append([place])
    return bands


def _sheet(width: float, height: float, title: str) -> Figure:
    """An empty figure; a title that is too long for its width makes it higher."""
    from matplotlib.figure import Figure

    lines = textwrap.wrap(title, int(72 * width / (LETTER * TITLE)))
    height += LINE * max(len(lines) - 1, 0)
    figure = Figure(figsize=(width, height), layout="constrained")
    if lines:
        figure.suptitle("\n".join(lines), x=0.005, ha="left", fontsize=TITLE, fontweight="bold")
    return figure


def letters(axes: Iterable[Axes]) -> None:
    """Panel letters a, b, … in bold at the upper left, before the panel's title if it has one.

    Call it last: a title set later would stand by itself in the middle.
    """
    for index, ax in enumerate(np.ravel(np.asarray(list(axes), dtype=object))):
        letter, title = chr(ord("a") + index), ax.get_title()
        if title:
            ax.set_title("")
            ax.set_title(rf"$\mathbf{{{letter}}}$  {title}", loc="left", fontsize=8)
        else:
            ax.set_title(letter, loc="left", fontweight="bold", fontsize=9)
