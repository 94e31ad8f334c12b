"""The shared plot of effects by claim: one line each, beside its margin and verdict."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.figures.marks import (
    DASHES,
    INKS,
    SIGNS,
    Margin,
    Verdicts,
    badge,
    bars_note,
    ends,
    margin_text,
    note,
    simulated,
    word,
)
from sims.figures.series import levels
from sims.figures.theme import BAND, BAR, GREY, PALETTE, SMALL, percent_axis, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def forest(
    ax: Axes,
    frame: pd.DataFrame,
    *,
    margin: Margin | Mapping[Any, Margin] | None = None,
    verdict: Verdicts = None,
    percent: bool = True,
    numbers: bool = False,
) -> None:
    """Effects by claim, a line each, with ± 2 MCSE, the margin and the verdict.

    A line may hold many effects, one for each point of the grid: all are drawn small and grey, and
    the worst, the one with the least room inside the margin, over them with a filled marker. If
    every line has one effect, the worst of all (of each group) is the filled one.

    Args:
        ax: the axes.
        frame: a row an effect: ``value``, ``error`` (its Monte Carlo standard error) and ``label``,
            what it is of; the first is on top. The categories of a categorical column are the
            lines, those without an effect too. Lines of one ``group``, where there is such a
            column, stand below its name. A bound on errors that are not random (exact theory's
            own), ``bound``, is drawn as a grey bar to either side.
        margin: what all effects, or those of each line, were held against: by label, or by the
            pair of group and label.
        verdict: of the panel, of each line (as for margins) or of a group by its name, written at
            the right end.
        percent: whether effects are fractions, to be written in percent.
        numbers: whether each line's worst effect is written out at its right end.
    """
    lines = _lines(frame)
    places = {key: place for place, key in enumerate(lines)}
    grouped = "group" in frame
    keys = list(zip(frame["group"], frame["label"], strict=True)) if grouped else frame["label"]
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(keys, margin)
    margins = {places[k]: ends(one) for k, one in given.items() if k in places and one is not None}
    rows = frame.reset_index(drop=True).assign(line=[places[key] for key in keys])
    # Without a margin the worst effect is the largest one.
    low, high = np.transpose([margins.get(line, (0.0, 0.0)) for line in rows["line"]])
    rows["room"] = np.minimum(rows["value"] - low, high - rows["value"])
    single = not rows["line"].duplicated().any()
    among = "line" if not single else "group" if grouped else [0] * len(rows)
    worst = rows.loc[rows.groupby(among, observed=True)["room"].idxmin()]
    own: Mapping[Any, Any] = verdict if isinstance(verdict, Mapping) else {}
    scale, unit = (100, " %") if percent else (1, "")
    with style():
        _effects(ax, rows.drop(worst.index), single, "white")
        _effects(ax, worst, True, PALETTE[0])
        ax.axvline(0, color=GREY, lw=0.8, zorder=1)
        ax.set_ylim(len(lines) - 0.4, -0.6)
        names = [key[1] if isinstance(key, tuple) else "" if grouped else key for key in lines]
        ax.set_yticks(range(len(lines)), map(str, names))
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("simulation / theory − 1 (%)" if percent else "effect")
        if percent:
            percent_axis(ax.xaxis)
        _margins(ax, margins)
        shown = (rows if single else worst).set_index("line")
        for key, place in places.items():
            if grouped and not isinstance(key, tuple):
                _write(ax, str(key), 0, place).set(fontweight="bold", color="black")
            name = text = word(own[key]) if key in own else ""
            if numbers and place in shown.index:
                value, error = scale * shown.loc[place, ["value", "error"]].to_numpy(float)
                text = f"{value:.3g} ± {BAR * error:.2g}{unit}".replace("-", "−")
            text = f"{SIGNS[name]}  {text}" if name else text
            _write(ax, text, 1, place).set_color(INKS.get(name, GREY))
        if isinstance(margin, Mapping):
            note(ax, "grey: margins")
        one = None if isinstance(margin, Mapping) else margin
        badge(ax, verdict, "" if one is None else margin_text(one, percent))
        bars_note(ax)
        note(ax, f"filled: {'nearest to its margin' if margins else 'the largest'}")


def _lines(frame: pd.DataFrame) -> list[Hashable]:
    """The lines from the top: labels, or names of groups and after each its pairs with labels."""
    if "group" not in frame:
        return levels("label", [frame])
    lines: list[Hashable] = []
    for group in levels("group", [frame]):
        labels = dict.fromkeys(frame.loc[frame["group"] == group, "label"])
        lines += [group, *((group, label) for label in labels)]
    return lines


def _effects(ax: Axes, rows: pd.DataFrame, bold: bool, fill: str) -> None:
    """Effects of some lines with their bars: one of many small, one of few or the worst large."""
    small = {} if bold else {"markersize": 2, "capsize": 0, "elinewidth": 0.5}
    look: dict[str, Any] = {"color": PALETTE[0] if bold else GREY, "markerfacecolor": fill, **small}
    bars = BAR * rows["error"]
    simulated(ax, rows["value"], rows["line"], bars, **look, xerr=bars, yerr=None)
    if bold and "bound" in rows:
        low, high = rows["value"] - rows["bound"], rows["value"] + rows["bound"]
        ax.hlines(rows["line"], low, high, color="0.53", lw=3.5, zorder=2)


def _margins(ax: Axes, margins: Mapping[int, tuple[float, float]]) -> None:
    """A strip a line with dashed edges; one under another they are a band."""
    finite = [1.1 * end for end in np.ravel([*margins.values()]) if np.isfinite(end)]
    left, right = min([*ax.get_xlim(), *finite]), max([*ax.get_xlim(), *finite])
    for place, pair in margins.items():
        foot, top, edges = place + 0.5, place - 0.5, [end for end in pair if np.isfinite(end)]
        ax.fill_betweenx([foot, top], *np.clip(pair, left, right), color=BAND, lw=0, zorder=0)
        ax.vlines(edges, foot, top, color=GREY, lw=0.8, ls=DASHES, zorder=0.5)
    ax.set_xlim(left, right)


def _write(ax: Axes, text: str, at: float, place: int) -> Any:
    """Words on a line, inside at its left end (0) or outside at its right end (1)."""
    return ax.annotate(
        text,
        (at, place),
        xytext=(5 * at, 0),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        color=GREY,
        annotation_clip=False,
    )
