"""Shared plots of tidy frames, in which a row is one point or problem."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sims.figures.layout import COLUMN, letters, pairs
from sims.figures.marks import bars_note, simulated, theory
from sims.figures.series import levels, series
from sims.figures.theme import GREY, log_axes, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Labels = str | Mapping[str, object] | None
"""Place of the series' names: "key" (a legend), options of a legend, or none."""


def scatter(parameters: pd.DataFrame, value: np.ndarray, error: np.ndarray, title: str) -> Figure:
    """Figure of effects with bars of ± 2 MCSE, with one panel per parameter of their problems.

    Args:
        parameters: (N, K), one column per panel.
        value: (N,), the effects.
        error: (N,), their Monte Carlo standard errors.
        title: title of the figure.
    """
    count = parameters.shape[1]
    drawing, axes = pairs(count, min(count, 2) * COLUMN, title)
    for ax, name in zip(axes, parameters, strict=True):
        simulated(ax, parameters[name], value, error)
        ax.axhline(0, color=GREY, lw=0.8, zorder=1)
        ax.set(xlabel=name, ylabel="effect")
    bars_note(axes[0])
    letters(axes)
    return drawing


class _Places:
    """Positions of points along an axis; series of a word are side by side.

    Attributes:
        x: column of the axis.
        words: the words along it, if it contains words.
        hues: levels of the series.
        step: between the series of a word.
    """

    def __init__(self, x: str, values: list[Hashable], hues: list[Hashable]) -> None:
        self.x = x
        self.words = [place for place in values if isinstance(place, str)]
        self.hues = hues
        self.step = 0.8 / len(hues)

    def of(self, level: Hashable, rows: pd.DataFrame) -> np.ndarray:
        """Positions of the rows of a series."""
        if not self.words:
            return rows[self.x].to_numpy()
        aside = self.step * (self.hues.index(level) - (len(self.hues) - 1) / 2)
        return aside + rows[self.x].map(self.words.index).to_numpy(float)


def curve(
    ax: Axes,
    points: pd.DataFrame,
    lines: pd.DataFrame | None,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    labels: Labels = "key",
    log: str = "",
) -> None:
    """Draw theory as lines, and simulation as points with bars of ± 2 MCSE.

    If x contains words, the series of a word are side by side and theory is a dash at each place.

    Args:
        ax: the axes.
        points: simulated values: columns x, y or ``simulation``, and ``<y>_mcse`` or ``mcse``.
        lines: predicted values at any places: columns x and ``<y>_theory`` (as in a run's
            table), y or ``theory``; None uses ``points``.
        x: column of the horizontal axis.
        y: name of the values: their column, if it exists, and the label of the axis.
        hue: column whose levels differ in colour and marker.
        labels: place of the series' names.
        log: the logarithmic axes, "", "x", "y" or "xy".
    """
    lines = points if lines is None else lines
    value = y if y in points else "simulation"
    error = f"{y}_mcse" if f"{y}_mcse" in points else "mcse"
    predicted = next((name for name in (f"{y}_theory", y) if name in lines), "theory")
    frames = [lines, points]
    places = _Places(x, levels(x, frames), levels(hue, frames))
    with style():
        log_axes(ax, x="x" in log, y="y" in log, plain=True)
        for level, rows, look in series(lines, hue, frames):
            rows = rows.sort_values(x)
            positions = places.of(level, rows)
            color = look["color"]
            if places.words:
                ends = (positions - 0.4 * places.step, positions + 0.4 * places.step)
                ax.hlines(rows[predicted], *ends, color=color, lw=1.6)
            else:
                theory(ax, positions, rows[predicted], color)
        for level, rows, look in series(points, hue, frames):
            positions = places.of(level, rows)
            simulated(ax, positions, rows[value], rows[error], label=str(level), **look)
        ax.set(xlabel="" if places.words else x, ylabel=y)
        if places.words:
            ax.set_xticks(range(len(places.words)), places.words)
        if isinstance(labels, Mapping) or (labels and len(ax.containers) > 1):
            ax.legend(**{} if isinstance(labels, str) else labels)
        bars_note(ax)
