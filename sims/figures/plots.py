"""Two of the shared plots, on tidy frames: a row is one point of the grid.

Each shows what a claim is judged by: the margin, the error of every estimate (± 2 Monte Carlo
standard errors, which a remark below the figure says) and the verdict. Gaps have one sign
convention everywhere, simulation/theory − 1: positive where the simulation is the larger one.
:mod:`sims.figures.forests` and :mod:`sims.figures.maps` have the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Unpack

import numpy as np

from sims.figures.marks import (
    Margin,
    Verdicts,
    badge,
    band,
    bars_note,
    explain,
    margin_text,
    note,
    signed,
    simulated,
    theory,
    widen,
)
from sims.figures.names import name_ends
from sims.figures.series import Look, Series, levels, series
from sims.figures.theme import GREY, log_axes, percent_axis, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

Labels = str | Mapping[str, object] | None
"""Where series are named: "ends" of lines, "key" (a legend), options of a legend, or nowhere."""


def relative_gap(
    simulation: ArrayLike, mcse: ArrayLike, theory: ArrayLike, scale: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The gap simulation/theory − 1, and its Monte Carlo standard error.

    Args:
        simulation: estimates.
        mcse: their Monte Carlo standard errors.
        theory: predictions, of the same shape, without error of their own.
        scale: what the gap (simulation − theory)/scale is a share of; theory by default. For a
            term that may vanish, such as a covariance, another one is the natural unit.
    """
    predicted = np.asarray(theory, float)
    unit = predicted if scale is None else np.asarray(scale, float)
    gaps = (np.asarray(simulation, float) - predicted) / unit
    return gaps, np.asarray(mcse, float) / np.abs(unit)


def gap(
    ax: Axes,
    frame: pd.DataFrame,
    x: str,
    *,
    lines: pd.DataFrame | None = None,
    margin: Margin | None = None,
    over: tuple[float, float] | None = None,
    verdict: Verdicts = None,
    labels: Labels = "key",
    linear: float | None = None,
    log: str = "x",
    **look: Unpack[Look],
) -> None:
    """Gaps simulation/theory − 1 in percent against x, with the margin's band around 0.

    Args:
        ax: the axes.
        frame: columns x, ``simulation``, ``mcse``, ``theory`` and, where the gap is a share of
            something else, ``scale``; see :func:`relative_gap`.
        x: column of the horizontal axis, such as the effective number of keys.
        lines: gaps known without sampling, drawn as lines: columns x, ``exact`` and ``theory``.
        margin: what gaps were held against.
        over: the range of x where they were; everywhere by default.
        verdict: of the panel, or of each level of ``hue``.
        labels: where the series are named.
        linear: if given, the axis of gaps is linear within ± this and logarithmic beyond.
        log: "x" if x is logarithmic, "" if not.
        look: how series are told apart.
    """
    with style():
        frames = [frame] if lines is None else [frame, lines]
        groups = list(series(frame, beside=frames, **look))
        for one in series(lines, beside=frames, **look) if lines is not None else ():
            rows = one.rows.sort_values(x)
            theory(ax, rows[x], rows["exact"] / rows["theory"] - 1, one.color)
        for one in groups:
            parts = [one.rows[k] for k in ("simulation", "mcse", "theory")]
            value, error = relative_gap(parts[0], parts[1], parts[2], one.rows.get("scale"))
            _points(ax, one, one.rows[x], value, error)
        ax.axhline(0, color=GREY, lw=0.8, zorder=1)
        if linear is not None:
            ax.set_yscale("symlog", linthresh=linear, linscale=0.6)
        log_axes(ax, x=log == "x")
        percent_axis(ax.yaxis)
        ax.set(xlabel=x, ylabel="simulation / theory − 1 (%)")
        if margin is not None:
            widen(ax, margin)
            band(ax, margin, over=over)
        _finish(ax, groups, verdict, labels)
        bars_note(ax)


def curve(
    ax: Axes,
    points: pd.DataFrame,
    lines: pd.DataFrame | None,
    x: str,
    y: str,
    *,
    error: str | None = None,
    margin: float | None = None,
    verdict: Verdicts = None,
    labels: Labels = "key",
    log: str = "",
    **look: Unpack[Look],
) -> None:
    """Theory as lines, simulation as points with bars of ± 2 MCSE.

    If x holds words, the series of a word stand side by side and theory is a dash at each place.

    Args:
        ax: the axes.
        points: simulated values: columns x, y and the error, or ``simulation`` and ``mcse``.
        lines: predicted values at any places: columns x and ``<y>_theory`` (as a run's table has
            them), y or ``theory``; None: those of ``points``.
        x: column of the horizontal axis.
        y: what the values are: their column, if there is one of that name, and the axis' label.
        error: column of their Monte Carlo standard errors, ``<y>_mcse`` or ``mcse`` by default.
        margin: relative; shades the lines' values times 1 ± margin.
        verdict: of the panel, or of each level of ``hue``, or of each word of x.
        labels: where the series are named; "ends" names the levels of ``hue`` beside their lines.
        log: the logarithmic axes, "", "x", "y" or "xy".
        look: how series are told apart.
    """
    lines = points if lines is None else lines
    value = y if y in points else "simulation"
    error = error or (f"{y}_mcse" if f"{y}_mcse" in points else "mcse")
    predicted = next((name for name in (f"{y}_theory", y) if name in lines), "theory")
    frames = [lines, points]
    words = [place for place in levels(x, frames) if isinstance(place, str)]
    hues = levels(look.get("hue"), frames)
    step = 0.8 / len(hues)

    def places(one: Series, rows: pd.DataFrame) -> np.ndarray:
        if not words:
            return rows[x].to_numpy()
        aside = step * (hues.index(one.hue) - (len(hues) - 1) / 2)
        return aside + np.array([words.index(word) for word in rows[x]], float)

    with style():
        log_axes(ax, x="x" in log, y="y" in log, plain=True)
        names: dict[Hashable, tuple[float, float, str]] = {}
        for one in series(lines, beside=frames, **look):
            rows = one.rows.sort_values(x)
            at, law = places(one, rows), rows[predicted]
            if words:
                ax.hlines(law, at - 0.4 * step, at + 0.4 * step, color=one.color, lw=1.6)
            else:
                theory(ax, at, law, one.color)
            names.setdefault(one.hue, (at[-1], law.iloc[-1], one.color))
            if margin is not None:
                low, high = law * (1 - margin), law * (1 + margin)
                ax.fill_between(at, low, high, color=one.color, alpha=0.2, lw=0, zorder=1)
        groups = list(series(points, beside=frames, **look))
        for one in groups:
            _points(ax, one, places(one, one.rows), one.rows[value], one.rows[error])
        ax.set(xlabel="" if words else x, ylabel=y)
        if words:
            ax.set_xticks(range(len(words)), [signed(word, verdict, "\n") for word in words])
        if labels == "ends":
            name_ends(ax, {signed(level, verdict): end for level, end in names.items()})
        _finish(ax, groups, verdict, None if labels == "ends" else labels)
        bars_note(ax)
        if margin is not None:
            if verdict is not None and not isinstance(verdict, Mapping):
                badge(ax, verdict, margin)
                note(ax, "shaded: margin around theory")
            else:
                note(ax, f"shaded: theory, {margin_text(margin)}")


def _points(ax: Axes, one: Series, x: ArrayLike, y: ArrayLike, mcse: ArrayLike) -> None:
    simulated(ax, x, y, mcse, one.color, one.marker, markerfacecolor=one.fill)


def _finish(ax: Axes, groups: list[Series], verdict: Verdicts, labels: Labels) -> None:
    """The legend, with a sign after each series that has its own verdict; the panel's badge."""
    from matplotlib.lines import Line2D

    if labels is not None and (len(groups) > 1 or isinstance(labels, Mapping)):
        handles = [
            Line2D([], [], color=one.color, marker=one.marker, markersize=3.6,
                   markerfacecolor=one.fill, label=signed(one.hue, verdict))
            for one in groups
        ]  # fmt: skip
        options = {} if isinstance(labels, str) else dict(labels)
        ax.legend(handles=handles, **options)  # type: ignore[call-overload]
    explain(ax, verdict)
    if verdict is not None and not isinstance(verdict, Mapping):
        badge(ax, verdict)
