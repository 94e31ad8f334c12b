"""The shared plot of effects by claim: one line each, beside its margin and verdict."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.figures.layout import narrow
from sims.figures.marks import (
    Margin,
    Verdicts,
    badge,
    band,
    bars_note,
    ends,
    explain,
    margin_text,
    note,
    row_end,
    simulated,
    widen,
)
from sims.figures.series import levels
from sims.figures.theme import BAND, BAR, GREY, GREYS, PALETTE, SMALL, percent_axis, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


@dataclass
class Lines:
    """Where the lines of a forest stand, and under which headings.

    Attributes:
        places: each line's height, from 0 at the top downwards by 1; of a line in a group the key
            is the pair of group and label.
        names: what each line is called.
        headings: heights of the headings to their words.
    """

    places: dict[Hashable, int] = field(default_factory=dict)
    names: dict[Hashable, str] = field(default_factory=dict)
    headings: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many lines and headings there are."""
        return len(self.places) + len(self.headings)


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
            pair of group and label. One for all is a band, others are a strip a line.
        verdict: of the panel, of each line (as for margins) or of a group by its name, written at
            the right end; in a figure of one column its sign alone.
        percent: whether effects are fractions, to be written in percent.
        numbers: whether each line's worst effect is written out at its right end; not in a figure
            of one column, where there is no room.
    """
    lines = _lines(frame)
    keys = _keys(frame)
    given = margin if isinstance(margin, Mapping) else dict.fromkeys(lines.places, margin)
    margins = {key: ends(one) for key in lines.places if (one := given.get(key)) is not None}
    # Without a margin the worst effect is the largest one.
    low, high = np.transpose([margins.get(key, (0.0, 0.0)) for key in keys])
    effects = frame["value"].to_numpy(float)
    rows = frame.reset_index(drop=True).assign(
        line=[lines.places[key] for key in keys], room=np.minimum(effects - low, high - effects)
    )
    single = not rows["line"].duplicated().any()
    among = "line" if not single else "group" if "group" in rows else [0] * len(rows)
    worst = rows.loc[rows.groupby(among, observed=True)["room"].idxmin()]
    last = rows.index.isin(worst.index)
    with style():
        _effects(ax, rows[~last], bold=single)
        _effects(ax, rows[last], bold=True, filled=True)
        ax.axvline(0, color=GREY, lw=0.8, zorder=1)
        _name(ax, lines)
        ax.set_xlabel("simulation / theory − 1 (%)" if percent else "effect")
        if percent:
            percent_axis(ax.xaxis)
        one = _bands(ax, lines, margins)
        shown = rows if single else worst
        ends_of: dict[int, str] = {}
        short = narrow(ax)
        if numbers and not short:
            groups = shown.groupby("group" if "group" in shown else [0] * len(shown), sort=False)
            for _, own in groups:
                texts = _estimates(own["value"], own["error"], percent)
                ends_of |= dict(zip(own["line"], texts, strict=True))
        headed = {word: place for place, word in lines.headings.items()}
        for key, place in (headed | lines.places).items():
            judged = verdict.get(key) if isinstance(verdict, Mapping) else None
            row_end(ax, place, ends_of.get(place, ""), judged, short=short)
        explain(ax, verdict)
        if verdict is not None and not isinstance(verdict, Mapping):
            badge(ax, verdict, one, percent)
        elif one is not None:
            _head(ax, margin_text(one, percent), aside=verdict is not None)
        bars_note(ax)
        note(ax, f"filled: {'nearest to its margin' if margins else 'the largest'}")


def _keys(frame: pd.DataFrame) -> list[Hashable]:
    """The line of each row."""
    if "group" in frame:
        return list(zip(frame["group"], frame["label"], strict=True))
    return list(frame["label"])


def _lines(frame: pd.DataFrame) -> Lines:
    lines = Lines()
    if "group" not in frame:
        for name in levels("label", [frame]):
            lines.places[name], lines.names[name] = len(lines.places), str(name)
        return lines
    for group in levels("group", [frame]):
        lines.headings[lines.count] = str(group)
        for label in dict.fromkeys(frame.loc[frame["group"] == group, "label"]):
            lines.names[group, label] = str(label)
            lines.places[group, label] = lines.count
    return lines


def _effects(ax: Axes, rows: pd.DataFrame, bold: bool, filled: bool = False) -> None:
    """Effects of some lines with their bars: one of many small, one of few or the worst large."""
    color = PALETTE[0] if bold else GREY
    small: dict[str, Any] = (
        {} if bold else {"markersize": 2, "capsize": 0, "elinewidth": 0.5, "markeredgewidth": 0.6}
    )
    simulated(
        ax, rows["value"], rows["line"], rows["error"], color, yerr=None,
        xerr=BAR * rows["error"], markerfacecolor=color if filled else "white",
        zorder=4 if filled else 3, **small,
    )  # fmt: skip
    if bold and "bound" in rows:
        low, high = rows["value"] - rows["bound"], rows["value"] + rows["bound"]
        ax.hlines(rows["line"], low, high, color=GREYS[2], lw=3.5, zorder=2)


def _name(ax: Axes, lines: Lines) -> None:
    """Names and headings of the lines, at the left."""
    ax.set_ylim(lines.count - 0.4, -0.6)
    ax.set_yticks(list(lines.places.values()), [lines.names[key] for key in lines.places])
    for place, text in lines.headings.items():
        # Inside the axes, whose line is free there: names at the left may be short then.
        ax.annotate(
            text, (0, place), xycoords=ax.get_yaxis_transform(), xytext=(2, 0), va="center",
            textcoords="offset points", fontsize=SMALL, fontweight="bold", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _bands(
    ax: Axes, lines: Lines, margins: Mapping[Hashable, tuple[float, float]]
) -> tuple[float, float] | None:
    """One band where all lines have the same margin, which is returned; else a strip a line."""
    pairs = list(dict.fromkeys(margins.values()))
    for pair in pairs:
        widen(ax, pair, "x")
    if len(pairs) == 1 and len(margins) == len(lines.places) and not lines.headings:
        band(ax, pairs[0], axis="x")
        return pairs[0]
    left, right = ax.get_xlim()
    for key, (low, high) in margins.items():
        foot, top = lines.places[key] + 0.36, lines.places[key] - 0.36
        ax.fill_betweenx([foot, top], max(low, left), min(high, right), color=BAND, lw=0, zorder=0)
        finite = [end for end in (low, high) if np.isfinite(end)]
        ax.vlines(finite, foot, top, color=GREY, lw=0.8, zorder=0.5)
    ax.set_xlim(left, right)
    if margins:
        note(ax, "grey: margins")
    return None


def _head(ax: Axes, text: str, aside: bool) -> None:
    """Words over the column of verdicts, or where there is none at the upper right."""
    if not aside:
        ax.set_title(text, loc="right", fontsize=SMALL, color=GREY)
        return
    ax.annotate(
        text, (1, 1), xytext=(5, 1), xycoords="axes fraction", textcoords="offset points",
        va="bottom", fontsize=SMALL, color=GREY, annotation_clip=False,
    )  # fmt: skip


def _estimates(values: ArrayLike, errors: ArrayLike, percent: bool) -> list[str]:
    """Estimates ± two standard errors, all to the second digit of the largest error."""
    scale, unit = (100, " %") if percent else (1, "")
    sizes = BAR * scale * np.asarray(errors, float)
    largest = np.max(sizes, initial=0.0)
    digits = int(np.clip(1 - np.floor(np.log10(largest)), 0, 4)) if largest > 0 else 2
    return [
        # No sign where all digits are 0.
        f"{round(scale * value, digits) + 0.0:.{digits}f} ± {size:.{digits}f}{unit}".replace(
            "-", "−"
        )
        for value, size in zip(np.asarray(values, float), sizes, strict=True)
    ]
