"""Three of the four shared plots, on tidy frames: a row is one point of the grid.

Each shows what a claim is judged by: the margin, the error of every estimate (± 2 Monte Carlo
standard errors, which a remark below the figure says) and the verdict. Gaps have one sign
convention everywhere, simulation/theory − 1: positive where the simulation is the larger one.
:mod:`sims.figures.maps` has the fourth, :func:`~sims.figures.maps.grid_map`.
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
    explain,
    margin_text,
    name_ends,
    note,
    row_end,
    signed,
    simulated,
    theory,
)
from sims.figures.series import Series, levels, series
from sims.figures.theme import BAND, BAR, GREY, log_axes, percent_axis
from sims.figures.theme import style as styled

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
    hue: str | None = None,
    style: str | None = None,
    lines: pd.DataFrame | None = None,
    margin: Margin | None = None,
    over: tuple[float, float] | None = None,
    verdict: Verdicts = None,
    labels: Labels = "key",
    linear: float | None = None,
    log: str = "x",
) -> None:
    """Gaps simulation/theory − 1 in percent against x, with the margin's band around 0.

    Args:
        ax: the axes.
        frame: columns x, ``simulation``, ``mcse``, ``theory`` and, where the gap is a share of
            something else, ``scale``; see :func:`relative_gap`.
        x: column of the horizontal axis, such as the effective number of keys.
        hue: column whose levels differ in colour and marker.
        style: column whose levels differ in dash and filling.
        lines: gaps known without sampling, drawn as lines: columns x, ``exact`` and ``theory``.
        margin: what gaps were held against.
        over: the range of x where they were; everywhere by default.
        verdict: of the panel, or of each level of ``hue`` or ``style``.
        labels: where the series are named.
        linear: if given, the axis of gaps is linear within ± this and logarithmic beyond.
        log: "x" if x is logarithmic, "" if not.
    """
    with styled():
        others = [] if lines is None else [lines]
        groups = list(series(frame, hue, style, others))
        for one in series(lines, hue, style, [frame]) if lines is not None else ():
            rows = one.rows.sort_values(x)
            _line(ax, one, rows[x], rows["exact"] / rows["theory"] - 1)
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
            _include(ax, margin)
            band(ax, margin, over=over)
        _finish(ax, groups, verdict, labels)
        bars_note(ax)


def curve(
    ax: Axes,
    points: pd.DataFrame,
    lines: pd.DataFrame,
    x: str,
    y: str,
    *,
    error: str | None = None,
    hue: str | None = None,
    style: str | None = None,
    margin: float | None = None,
    verdict: Verdicts = None,
    labels: Labels = "key",
    log: str = "",
) -> None:
    """Theory as lines, simulation as points with bars of ± 2 MCSE.

    Args:
        ax: the axes.
        points: simulated values: columns x, y and the error.
        lines: predicted values: columns x and y, at any places.
        x: column of the horizontal axis.
        y: column of the values.
        error: column of their Monte Carlo standard errors, ``<y>_mcse`` by default.
        hue: column whose levels differ in colour and marker.
        style: column whose levels differ in dash and filling.
        margin: relative; shades the lines' values times 1 ± margin.
        verdict: of the panel, or of each level of ``hue`` or ``style``.
        labels: where the series are named; "ends" names the levels of ``hue`` beside their lines.
        log: the logarithmic axes, "", "x", "y" or "xy".
    """
    with styled():
        log_axes(ax, x="x" in log, y="y" in log, plain=True)
        names: dict[Hashable, tuple[float, float, str]] = {}
        for one in series(lines, hue, style, [points]):
            rows = one.rows.sort_values(x)
            _line(ax, one, rows[x], rows[y])
            names.setdefault(one.hue, (rows[x].iloc[-1], rows[y].iloc[-1], one.color))
            if margin is not None:
                low, high = (rows[y] * (1 + side * margin) for side in (-1, 1))
                ax.fill_between(rows[x], low, high, color=one.color, alpha=0.2, lw=0, zorder=1)
        groups = list(series(points, hue, style, [lines]))
        for one in groups:
            _points(ax, one, one.rows[x], one.rows[y], one.rows[error or f"{y}_mcse"])
        ax.set(xlabel=x, ylabel=y)
        if labels == "ends":
            name_ends(ax, {signed(level, verdict): end for level, end in names.items()})
        _finish(ax, groups, verdict, None if labels == "ends" else labels)
        if margin is not None:
            if verdict is not None and not isinstance(verdict, Mapping):
                badge(ax, verdict, margin)
                note(ax, "shaded: margin around theory")
            else:
                note(ax, f"shaded: theory, {margin_text(margin)}")


def forest(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    label: str = "label",
    value: str = "value",
    error: str = "error",
    bound: str | None = None,
    hue: str | None = None,
    margin: Margin | Mapping[Hashable, Margin] | None = None,
    verdict: Verdicts = None,
    percent: bool = True,
    numbers: bool = False,
    labels: Labels = "key",
) -> None:
    """Effects by claim, a line each, with ± 2 MCSE, the margin and the verdict.

    A line may hold many effects, one for each point of the grid: all are drawn faintly, and the
    worst, the one with the least room inside the margin, over them with a filled marker. If every
    line has one effect, the worst of all is the filled one.

    Args:
        ax: the axes.
        frame: a row an effect.
        label: column that says what the effect is of; the first is on top. The categories of a
            categorical column are the lines, those without an effect too.
        value: column of effects.
        error: column of their Monte Carlo standard errors.
        bound: column of bounds on errors that are not random (exact theory's own), drawn as a
            pale bar to either side.
        hue: column whose levels differ in colour and marker.
        margin: what all effects, or those of each line, were held against.
        verdict: of the panel, or of each line, written at its right end.
        percent: whether effects are fractions, to be written in percent.
        numbers: whether each line's worst effect is written out at its right end.
        labels: where the levels of ``hue`` are named.
    """
    names = levels(label, [frame])
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(names, margin)
    margins = {name: ends(one) for name in names if (one := given.get(name)) is not None}
    # Without a margin the worst effect is the largest one.
    low, high = np.transpose([margins.get(name, (0.0, 0.0)) for name in frame[label]])
    effects = frame[value].to_numpy(float)
    rows = frame.reset_index(drop=True).assign(
        _line=[names.index(name) for name in frame[label]],
        _room=np.minimum(effects - low, high - effects),
    )
    single = not rows["_line"].duplicated().any()
    worst = rows.loc[
        [rows["_room"].idxmin()] if single else rows.groupby("_line")["_room"].idxmin()
    ]
    with styled():
        for one in series(rows, hue, None):
            last = one.rows.index.isin(worst.index)
            for part, bold, filled in ((~last, single, False), (last, True, True)):
                own = one.rows[part]
                pale = {} if bold else {"alpha": 0.4, "markersize": 2, "capsize": 0}
                simulated(
                    ax, own[value], own["_line"], own[error], one.color, one.marker, yerr=None,
                    xerr=BAR * own[error], markerfacecolor=one.color if filled else "white",
                    zorder=4 if filled else 3, **pale,
                )  # fmt: skip
                if bound is not None and bold:
                    ax.hlines(own["_line"], own[value] - own[bound], own[value] + own[bound],
                              color=one.color, alpha=0.3, lw=6, zorder=1)  # fmt: skip
        ax.axvline(0, color=GREY, lw=0.8, zorder=1)
        ax.set_ylim(len(names) - 0.3, -0.6)
        ax.set_yticks(range(len(names)), [str(name) for name in names])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("simulation / theory − 1 (%)" if percent else "effect")
        if percent:
            percent_axis(ax.xaxis)
        _forest_bands(ax, names, margins, percent)
        shown = rows if single else worst
        texts = dict(
            zip(shown["_line"], _estimates(shown[value], shown[error], percent), strict=True)
        )
        for place, name in enumerate(names):
            own_verdict = verdict.get(name) if isinstance(verdict, Mapping) else None
            row_end(ax, place, texts.get(place, "") if numbers else "", own_verdict)
        _finish(ax, list(series(rows, hue, None)), verdict, labels, line=False)
        bars_note(ax)
        note(ax, f"filled: {'nearest to its margin' if margins else 'the largest'}")


def _forest_bands(
    ax: Axes, names: list[Hashable], margins: Mapping[Hashable, tuple[float, float]], percent: bool
) -> None:
    """One band where all lines have the same margin, else a strip a line."""
    if not margins:
        return
    for pair in dict.fromkeys(margins.values()):
        _include(ax, pair, "x")
    if len(set(margins.values())) == 1 and len(margins) == len(names):
        band(ax, next(iter(margins.values())), percent, axis="x")
        return
    left, right = ax.get_xlim()
    for place, name in enumerate(names):
        if name in margins:
            low, high = np.clip(margins[name], left, right)
            ax.fill_betweenx([place - 0.38, place + 0.38], low, high, color=BAND, lw=0, zorder=0)
            ax.vlines([low, high], place - 0.38, place + 0.38, color=GREY, lw=0.6, zorder=0.5)
    ax.set_xlim(left, right)


def _estimates(values: ArrayLike, errors: ArrayLike, percent: bool) -> list[str]:
    """Estimates ± two standard errors, all to the second digit of the largest error."""
    scale, unit = (100, " %") if percent else (1, "")
    sizes = BAR * scale * np.asarray(errors, float)
    largest = np.max(sizes, initial=0.0)
    digits = int(np.clip(1 - np.floor(np.log10(largest)), 0, 4)) if largest > 0 else 2
    return [
        f"{scale * value:.{digits}f} ± {size:.{digits}f}{unit}".replace("-", "−")
        for value, size in zip(np.asarray(values, float), sizes, strict=True)
    ]


def _line(ax: Axes, one: Series, x: ArrayLike, y: ArrayLike) -> None:
    theory(ax, x, y, one.color, linestyle=(0, one.dash) if one.dash else "-")


def _points(ax: Axes, one: Series, x: ArrayLike, y: ArrayLike, mcse: ArrayLike) -> None:
    simulated(
        ax, x, y, mcse, one.color, one.marker, markerfacecolor=one.color if one.filled else "white"
    )


def _include(ax: Axes, margin: Margin, axis: str = "y") -> None:
    """Widen the limits, by a tenth, so that the finite ends of a margin are seen."""
    limits = ax.get_ylim() if axis == "y" else ax.get_xlim()
    finite = [1.1 * end for end in ends(margin) if np.isfinite(end)]
    (ax.set_ylim if axis == "y" else ax.set_xlim)(min(*limits, *finite), max(*limits, *finite))


def _finish(
    ax: Axes, groups: list[Series], verdict: Verdicts, labels: Labels, line: bool = True
) -> None:
    """The legend, with a sign after each series that has its own verdict; the panel's badge."""
    from matplotlib.lines import Line2D

    if labels is not None and (len(groups) > 1 or isinstance(labels, Mapping)):
        handles = []
        for one in groups:
            parts = [signed(level, verdict) for level in (one.hue, one.style)]
            handles.append(
                Line2D(
                    [], [], color=one.color, marker=one.marker, markersize=3.6,
                    markerfacecolor=one.color if one.filled else "white",
                    linestyle=((0, one.dash) if one.dash else "-") if line else "none",
                    label=", ".join(part for part in parts if part != "None"),
                )
            )  # fmt: skip
        options = {} if isinstance(labels, str) else dict(labels)
        ax.legend(handles=handles, **options)  # type: ignore[call-overload]
    explain(ax, verdict)
    if verdict is not None and not isinstance(verdict, Mapping):
        badge(ax, verdict)
