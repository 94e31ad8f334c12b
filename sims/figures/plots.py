"""The shared plots, on tidy frames: a row is one point or problem."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sims.figures.layout import COLUMN, letters, panels
from sims.figures.marks import bars_note, simulated, theory
from sims.figures.series import levels, series
from sims.figures.theme import GREY, log_axes, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Labels = str | Mapping[str, object] | None
"""Where series are named: "key" (a legend), options of a legend, or nowhere."""


def scatter(parameters: pd.DataFrame, value: np.ndarray, error: np.ndarray, title: str) -> Figure:
    """A figure of effects with bars of ± 2 MCSE, a panel for each parameter of their problems.

    Args:
        parameters: (N, K), a column a panel.
        value: (N,), the effects.
        error: (N,), their Monte Carlo standard errors.
        title: of the figure.
    """
    count = parameters.shape[1]
    columns = min(count, 2)
    drawing, axes = panels(-(-count // columns), columns, columns * COLUMN, title=title)
    for ax, name in zip(axes.flat, parameters, strict=False):
        simulated(ax, parameters[name], value, error)
        ax.axhline(0, color=GREY, lw=0.8, zorder=1)
        ax.set(xlabel=name, ylabel="effect")
    bars_note(axes.flat[0])
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    letters(axes.flat[:count])
    return drawing


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
    """Theory as lines, simulation as points with bars of ± 2 MCSE.

    If x holds words, the series of a word stand side by side and theory is a dash at each place.

    Args:
        ax: the axes.
        points: simulated values: columns x, y or ``simulation``, and ``<y>_mcse`` or ``mcse``.
        lines: predicted values at any places: columns x and ``<y>_theory`` (as a run's table has
            them), y or ``theory``; None: those of ``points``.
        x: column of the horizontal axis.
        y: what the values are: their column, if there is one of that name, and the axis' label.
        hue: column whose levels differ in colour and marker.
        labels: where the series are named.
        log: the logarithmic axes, "", "x", "y" or "xy".
    """
    lines = points if lines is None else lines
    value = y if y in points else "simulation"
    error = f"{y}_mcse" if f"{y}_mcse" in points else "mcse"
    predicted = next((name for name in (f"{y}_theory", y) if name in lines), "theory")
    frames = [lines, points]
    words = [place for place in levels(x, frames) if isinstance(place, str)]
    hues = levels(hue, frames)
    step = 0.8 / len(hues)

    def places(level: Hashable, rows: pd.DataFrame) -> np.ndarray:
        if not words:
            return rows[x].to_numpy()
        aside = step * (hues.index(level) - (len(hues) - 1) / 2)
        return aside + rows[x].map(words.index).to_numpy(float)

    with style():
        log_axes(ax, x="x" in log, y="y" in log, plain=True)
        for level, rows, look in series(lines, hue, frames):
            rows = rows.sort_values(x)
            positions, law, color = places(level, rows), rows[predicted], look["color"]
            if words:
                ax.hlines(law, positions - 0.4 * step, positions + 0.4 * step, color=color, lw=1.6)
            else:
                theory(ax, positions, law, color)
        for level, rows, look in series(points, hue, frames):
            positions = places(level, rows)
            simulated(ax, positions, rows[value], rows[error], label=str(level), **look)
        ax.set(xlabel="" if words else x, ylabel=y)
        if words:
            ax.set_xticks(range(len(words)), words)
        if isinstance(labels, Mapping) or (labels and len(ax.containers) > 1):
            ax.legend(**{} if isinstance(labels, str) else labels)
        bars_note(ax)
