"""Layouts of figures: grids of panels, and their letters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sims.figures.theme import TITLE, log_axes, style

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 89 / 25.4
"""Width of a figure of one column, inches (89 mm: most journals')."""
LETTER, MARK, TICKS = 0.05, 5, 0.35
"""Width of a letter (inches), of a legend's mark (letters), and of ticks and their label (inches).
"""


def panels(
    rows: int = 1,
    columns: int = 1,
    width: float = COLUMN,
    height: float | None = None,
    title: str = "",
) -> tuple[Figure, np.ndarray]:
    """Figure with a grid of axes.

    Args:
        rows: number of rows of panels.
        columns: number of columns of panels.
        width: inches; one column of a page by default.
        height: inches; None gives every panel the proportion 4:3.3.
        title: the figure's message in a sentence, at its upper left.

    Returns:
        The figure and its axes, shape (rows, columns).
    """
    with style():
        figure = _sheet(width, height or rows * width / columns * 0.82, title)
        return figure, figure.subplots(rows, columns, squeeze=False)


def pairs(
    count: int, width: float = COLUMN, title: str = "", height: float | None = None
) -> tuple[Figure, list[Axes]]:
    """Figure of this many panels, two in a row, and its axes; arguments as in :func:`panels`."""
    figure, axes = panels(-(-count // 2), min(count, 2), width, height, title=title)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:count])


def mosaic(
    layout: Sequence[str],
    *,
    height: float,
    heights: Sequence[float] | None = None,
    width: float = COLUMN,
    title: str = "",
) -> tuple[Figure, Mapping[str, Axes]]:
    """Figure with panels of different sizes.

    Args:
        layout: one word per row, one letter per panel: ``("abc", "ddd")`` has three panels above a
            wide one.
        height: inches.
        heights: heights of the rows, relative to each other; equal by default.
        width: inches; one column of a page by default.
        title: as in :func:`panels`.

    Returns:
        The figure and its axes by letter.
    """
    bands: list[list[tuple[str, float]]] = []
    for row, part in zip(layout, heights or [1.0] * len(layout), strict=True):
        if not (bands and set(row) & set(bands[-1][-1][0])):
            bands.append([])
        bands[-1].append((row, part))
    axes: dict[str, Axes] = {}
    with style():
        figure = _sheet(width, height, title)
        # Bands are laid out apart, or long names of one would leave the others no room.
        ratios = [sum(part for _, part in band) for band in bands]
        sheets = figure.subfigures(len(bands), height_ratios=ratios, squeeze=False)
        for sheet, band in zip(sheets.flat, bands, strict=True):
            rows, parts = zip(*band, strict=True)
            axes |= sheet.subplot_mosaic("\n".join(rows), height_ratios=parts)
    return figure, axes


def _sheet(width: float, height: float, title: str) -> Figure:
    """Empty figure, whose height grows with the lines of its title."""
    from matplotlib.figure import Figure

    # A bold letter of 7 points is 0.062 inches wide, a line of them 0.13 inches high.
    title = textwrap.fill(title, int(width / 0.062))
    figure = Figure(figsize=(width, height + 0.13 * title.count("\n")), layout="constrained")
    if title:
        figure.suptitle(title, x=0.005, ha="left", fontsize=7, fontweight="bold")
    return figure


def describe(ax: Axes, x: str, y: str, title: str = "", log: str = "", legend: str = "") -> None:
    """Name a panel and its axes, and put its legend below; call it after all marks.

    Args:
        ax: the axes.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        title: the panel's finding.
        log: the logarithmic axes, "", "x", "y" or "xy".
        legend: title of the legend, which is there if a mark has a label.
    """
    log_axes(ax, x="x" in log, y="y" in log)
    ax.set(xlabel=x, ylabel=y, title=title)
    longest = max(map(len, ax.get_legend_handles_labels()[1]), default=0)
    if longest:
        columns = max(1, int(_width(ax) / LETTER / (longest + MARK)))
        ax.legend(
            title=legend,
            ncols=columns,
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            borderaxespad=3.6,
        )


def _width(ax: Axes) -> float:
    """Width of a panel with its labels, inches."""
    place = ax.get_subplotspec()
    share = len(place.colspan) / place.get_gridspec().ncols if place else 1.0
    return float(ax.figure.canvas.figure.get_figwidth() * share)


def letters(axes: Iterable[Axes]) -> None:
    """Panel letters a, b, … in bold before the panels' titles, which are wrapped to their panels.

    Call it last: a title set later would be centred separately.
    """
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", axes, strict=False):
        room = int((_width(ax) - TICKS) / LETTER)
        title = f"{letter}  {ax.get_title()}".replace(" = ", "\xa0=\xa0").replace(" %", "\xa0%")
        title = textwrap.fill(title, room, break_on_hyphens=False)
        ax.set_title("")
        ax.set_title(rf"$\mathbf{{{letter}}}${title[1:]}".strip(), loc="left", fontsize=TITLE)
