"""Two of the shared plots, on tidy frames: a row is one point of the grid.

Each shows what a claim is judged by: the margin, the error of every estimate (± 2 Monte Carlo
standard errors, which a remark below the figure says) and the verdict. Gaps have one sign
convention everywhere, simulation/theory − 1: positive where the simulation is the larger one.
:mod:`sims.figures.forests` has the third.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sims.figures.marks import (
    Margin,
    Verdicts,
    badge,
    band,
    bars_note,
    ends,
    margin_text,
    note,
    signed,
    simulated,
    theory,
)
from sims.figures.series import levels, series
from sims.figures.theme import GREY, log_axes, percent_axis, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Labels = str | Mapping[str, object] | None
"""Where series are named: "key" (a legend), options of a legend, or nowhere."""


def gap(
    ax: Axes,
    frame: pd.DataFrame,
    x: str,
    *,
    hue: str | None = None,
    margin: Margin | None = None,
    over: tuple[float, float] | None = None,
    verdict: Verdicts = None,
    labels: Labels = "key",
    log: str = "x",
) -> None:
    """Gaps simulation/theory − 1 in percent against x, with the margin's band around 0.

    Args:
        ax: the axes.
        frame: columns x, ``simulation``, ``mcse`` and ``theory``.
        x: column of the horizontal axis, such as the effective number of keys.
        hue: column whose levels differ in colour and marker.
        margin: what gaps were held against.
        over: the range of x where they were; everywhere by default.
        verdict: of the panel, or of each level of ``hue``.
        labels: where the series are named.
        log: "x" if x is logarithmic, "" if not.
    """
    with style():
        law, y = frame["theory"], "simulation / theory − 1 (%)"
        value, error = frame["simulation"] / law - 1, frame["mcse"] / law.abs()
        points = frame.assign(simulation=value, mcse=error)
        curve(ax, points, points[:0], x, y, hue=hue, verdict=verdict, labels=labels, log=log)
        ax.axhline(0, color=GREY, lw=0.8, zorder=1)
        percent_axis(ax.yaxis)
        if margin is not None:
            seen = [1.1 * end for end in ends(margin) if np.isfinite(end)]
            ax.set_ylim(min(*ax.get_ylim(), *seen), max(*ax.get_ylim(), *seen))
            band(ax, margin, over=over)


def curve(
    ax: Axes,
    points: pd.DataFrame,
    lines: pd.DataFrame | None,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    margin: float | None = None,
    verdict: Verdicts = None,
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
        margin: relative; shades the lines' values times 1 ± margin.
        verdict: of the panel, or of each level of ``hue``, or of each word of x.
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
            at, law, color = places(level, rows), rows[predicted], look["color"]
            if words:
                ax.hlines(law, at - 0.4 * step, at + 0.4 * step, color=color, lw=1.6)
            else:
                theory(ax, at, law, color)
            if margin is not None:
                low, high = law * (1 - margin), law * (1 + margin)
                ax.fill_between(at, low, high, color=color, alpha=0.2, lw=0, zorder=1)
        for level, rows, look in series(points, hue, frames):
            at, label = places(level, rows), signed(level, verdict)
            simulated(ax, at, rows[value], rows[error], label=label, **look)
        ax.set(xlabel="" if words else x, ylabel=y)
        if words:
            ax.set_xticks(range(len(words)), [signed(word, verdict, "\n") for word in words])
        if isinstance(labels, Mapping) or (labels and len(ax.containers) > 1):
            ax.legend(**{} if isinstance(labels, str) else labels)
        badge(ax, verdict)
        bars_note(ax)
        if margin is not None:
            note(ax, f"shaded: theory, {margin_text(margin)}")
