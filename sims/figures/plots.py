"""Three of the four shared plots, on tidy frames: a row is one point of the grid.

Each shows what a claim is judged by: the margin, the error of every estimate (± 2 Monte Carlo
standard errors, which a remark below the figure says) and the verdict. Gaps have one sign
convention everywhere, simulation/theory − 1: positive where the simulation is the larger one.
:mod:`sims.figures.maps` has the fourth, :func:`~sims.figures.maps.grid_map`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

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
from sims.figures.series import Look, Series, levels, series
from sims.figures.theme import BAND, BAR, GREY, PALETTE, log_axes, percent_axis, style

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
            _include(ax, margin)
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


def forest(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    margin: Margin | Mapping[Hashable, Margin] | None = None,
    verdict: Verdicts = None,
    percent: bool = True,
    numbers: bool = False,
) -> None:
    """Effects by claim, a line each, with ± 2 MCSE, the margin and the verdict.

    A line may hold many effects, one for each point of the grid: all are drawn faintly, and the
    worst, the one with the least room inside the margin, over them with a filled marker. If every
    line has one effect, the worst of all is the filled one.

    Args:
        ax: the axes.
        frame: a row an effect: ``value``, ``error`` (its Monte Carlo standard error) and ``label``,
            what it is of; the first is on top. The categories of a categorical column are the
            lines, those without an effect too. A bound on errors that are not random (exact
            theory's own), ``bound``, is drawn as a pale bar to either side.
        margin: what all effects, or those of each line, were held against.
        verdict: of the panel, or of each line, written at its right end.
        percent: whether effects are fractions, to be written in percent.
        numbers: whether each line's worst effect is written out at its right end.
    """
    names = levels("label", [frame])
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(names, margin)
    margins = {name: ends(one) for name in names if (one := given.get(name)) is not None}
    # Without a margin the worst effect is the largest one.
    low, high = np.transpose([margins.get(name, (0.0, 0.0)) for name in frame["label"]])
    effects = frame["value"].to_numpy(float)
    rows = frame.reset_index(drop=True).assign(
        line=[names.index(name) for name in frame["label"]],
        room=np.minimum(effects - low, high - effects),
    )
    single = not rows["line"].duplicated().any()
    worst = rows.loc[[rows["room"].idxmin()] if single else rows.groupby("line")["room"].idxmin()]
    last = rows.index.isin(worst.index)
    with style():
        for own, bold, filled in ((rows[~last], single, False), (rows[last], True, True)):
            pale: dict[str, Any] = {} if bold else {"alpha": 0.4, "markersize": 2, "capsize": 0}
            simulated(
                ax, own["value"], own["line"], own["error"], PALETTE[0], yerr=None,
                xerr=BAR * own["error"], markerfacecolor=PALETTE[0] if filled else "white",
                zorder=4 if filled else 3, **pale,
            )  # fmt: skip
            if bold and "bound" in own:
                ax.hlines(own["line"], own["value"] - own["bound"], own["value"] + own["bound"],
                          color=PALETTE[0], alpha=0.3, lw=6, zorder=1)  # fmt: skip
        ax.axvline(0, color=GREY, lw=0.8, zorder=1)
        ax.set_ylim(len(names) - 0.1, -0.6)
        ax.set_yticks(range(len(names)), [str(name) for name in names])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("simulation / theory − 1 (%)" if percent else "effect")
        if percent:
            percent_axis(ax.xaxis)
        _forest_bands(ax, names, margins, percent)
        shown = rows if single else worst
        texts = _estimates(shown["value"], shown["error"], percent) if numbers else []
        ends_of = dict(zip(shown["line"], texts, strict=numbers))
        for place, name in enumerate(names):
            own_verdict = verdict.get(name) if isinstance(verdict, Mapping) else None
            row_end(ax, place, ends_of.get(place, ""), own_verdict)
        _finish(ax, [], verdict, None)
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


def _points(ax: Axes, one: Series, x: ArrayLike, y: ArrayLike, mcse: ArrayLike) -> None:
    simulated(ax, x, y, mcse, one.color, one.marker, markerfacecolor=one.fill)


def _include(ax: Axes, margin: Margin, axis: str = "y") -> None:
    """Widen the limits, by a tenth, so that the finite ends of a margin are seen."""
    limits = ax.get_ylim() if axis == "y" else ax.get_xlim()
    finite = [1.1 * end for end in ends(margin) if np.isfinite(end)]
    (ax.set_ylim if axis == "y" else ax.set_xlim)(min(*limits, *finite), max(*limits, *finite))


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
