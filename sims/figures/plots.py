"""Shared plots of tidy frames, in which a row is one point or problem."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sims.base.errors import InputError
from sims.figures.layout import COLUMN, letters, pairs
from sims.figures.marks import bars_note, simulated, theory
from sims.figures.theme import GREY, MARKERS, PALETTE, log_axes, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def curve(
    ax: Axes,
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    lines: bool = True,
    legend: Mapping[str, object] | None = None,
    log: str = "",
) -> None:
    """Draw theory as lines, and simulation as points with bars of ± 2 MCSE.

    If x contains words, the series of a word are side by side and theory is a dash at each place.

    Args:
        ax: the axes.
        frame: one row per point: columns x, y, ``<y>_mcse`` and, for the lines, ``<y>_theory``.
        x: column of the horizontal axis.
        y: column of the simulated values.
        hue: column whose levels differ in colour and marker.
        lines: whether theory is drawn.
        legend: options of a legend of the levels; None for no legend.
        log: the logarithmic axes, "", "x", "y" or "xy".

    Raises:
        InputError: the frame has no such column, or more levels than there are distinct colours.
    """
    words = [place for place in levels(x, frame) if isinstance(place, str)]
    hues = levels(hue, frame)
    step = 0.8 / len(hues)
    with style():
        for level, rows, look in series(frame.sort_values(x), hue, hues):
            if words:
                aside = step * (hues.index(level) - (len(hues) - 1) / 2)
                places = aside + rows[x].map(words.index).to_numpy(float)
            else:
                places = rows[x].to_numpy()
            if lines and words:
                ends = (places - 0.4 * step, places + 0.4 * step)
                ax.hlines(rows[f"{y}_theory"], *ends, color=look["color"], lw=1.6)
            elif lines:
                theory(ax, places, rows[f"{y}_theory"], look["color"])
            simulated(ax, places, rows[y], rows[f"{y}_mcse"], label=str(level), **look)
        log_axes(ax, x="x" in log, y="y" in log)
        if words:
            ax.set_xticks(range(len(words)), words)
        if legend is not None:
            ax.legend(**legend)
        bars_note(ax)


def levels(column: str | None, frame: pd.DataFrame) -> list[Hashable]:
    """Levels of a column: its categories, else its values, sorted if numeric; [None] without one.

    Raises:
        InputError: the frame lacks the column.
    """
    if column is None:
        return [None]
    if column not in frame:
        raise InputError("hue", column, f"a column: {', '.join(map(str, frame))}")
    if hasattr(frame[column], "cat"):
        return list(frame[column].cat.categories)
    values = list(dict.fromkeys(frame[column]))
    return sorted(values) if frame[column].dtype.kind in "biuf" else values


def series(
    frame: pd.DataFrame, hue: str | None, hues: Sequence[Hashable]
) -> Iterator[tuple[Hashable, pd.DataFrame, dict[str, str]]]:
    """Groups of a frame with rows: level of ``hue``, rows, colour and marker.

    Raises:
        InputError: there are more levels than distinct colours.
    """
    if len(hues) > len(PALETTE):
        raise InputError(f"levels of {hue}", len(hues), f"at most {len(PALETTE)}")
    for level, color, marker in zip(hues, PALETTE, MARKERS, strict=False):
        rows = frame if hue is None else frame[frame[hue] == level]
        if len(rows):
            yield level, rows, {"color": color, "marker": marker}
