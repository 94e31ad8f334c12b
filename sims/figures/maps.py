"""The shared maps: verdicts, dots or values over two columns of a tidy frame."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from sims.errors import InputError
from sims.figures.layout import narrow
from sims.figures.marks import INKS, SIGNS, TINTS, explain, note, word
from sims.figures.series import levels
from sims.figures.theme import BAND, GREY, SMALL, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize


def grid_map(
    ax: Axes,
    frame: pd.DataFrame,
    rows: str,
    columns: str,
    *,
    verdict: str | None = None,
    text: str | None = None,
    value: str | None = None,
    best: str = "low",
    norm: Normalize | None = None,
    missing: str | None = None,
) -> ScalarMappable | None:
    """A map of verdicts, or of values: a cell for every pair of levels of two columns.

    *Verdicts* (``verdict``): a cell is filled by its verdict and holds its sign and text; where
    there is none it is white, its text in italics. *Values* (``value``): dark is best, and cells
    stand at the numbers of both columns on the axes, which may be made logarithmic.

    Args:
        ax: the axes.
        frame: a row a cell; pairs that do not occur stay empty.
        rows: column of the vertical axis; for verdicts the first level is on top.
        columns: column of the horizontal axis.
        verdict: column of verdicts' words, None or NaN where there is none.
        text: column of what cells of verdicts say, such as the effect with its error.
        value: column of values.
        best: "low" or "high": the end of the values that is dark.
        norm: from values to 0…1, such as a ``LogNorm``.
        missing: why cells have no value, written over them; they are hatched.

    Returns:
        What a colour bar is made for, if the map is of values.

    Raises:
        InputError: neither or both of ``verdict`` and ``value``, or an unknown ``best``.
    """
    if (verdict is None) == (value is None):
        raise InputError("verdict, value", (verdict, value), "one of the two")
    if best not in ("low", "high"):
        raise InputError("best", best, "low, high")
    if frame.duplicated([rows, columns]).any():
        raise InputError("frame", "two rows of one cell", f"one for each {rows} and {columns}")
    down, across = levels(rows, [frame]), levels(columns, [frame])
    with style():
        if value is not None:
            wide = frame.pivot(index=rows, columns=columns, values=value)
            wide = wide.reindex(index=down, columns=across).astype(float)
            return _values(ax, wide, "mako" if best == "low" else "mako_r", norm, missing)
        for row in frame.to_dict("records"):
            given = row[verdict] if isinstance(row[verdict], str) else None
            place = across.index(row[columns]), down.index(row[rows])
            _verdict_cell(ax, place, len(across), given, str(row[text]) if text else "")
        _table(ax, down, across)
        given = frame[verdict].dropna() if verdict is not None else []
        explain(ax, dict(enumerate(given)))
    return None


def dot_map(
    ax: Axes,
    frame: pd.DataFrame,
    rows: str,
    columns: str,
    *,
    verdict: str,
    size: str,
    key: Mapping[str, float] | None = None,
) -> None:
    """A map of verdicts with a dot for every pair of levels of two columns: larger is worse.

    A refuted row is a filled dot of the one strong colour, a supported one an open
    ring, an inconclusive one an open square; pairs without a verdict have a short dash, pairs that
    do not occur nothing.

    Args:
        ax: the axes.
        frame: a row a dot.
        rows: column of the vertical axis, the first level on top.
        columns: column of the horizontal axis.
        verdict: column of verdicts' words, None or NaN where there is none.
        size: column of diameters, as shares 0 to 1 of the largest.
        key: what sizes mean, words to shares, for a key below.

    Raises:
        InputError: two rows are of one pair, or a size is beyond 0 to 1.
    """
    from matplotlib.lines import Line2D

    if frame.duplicated([rows, columns]).any():
        raise InputError("frame", "two rows of one cell", f"one for each {rows} and {columns}")
    sizes = frame[size].fillna(0.0)
    if not sizes.between(0, 1).all():
        raise InputError(size, f"{sizes.min():g} to {sizes.max():g}", "0 to 1")
    down, across = levels(rows, [frame]), levels(columns, [frame])
    with style():
        for row, share in zip(frame.to_dict("records"), sizes, strict=True):
            place = across.index(row[columns]), down.index(row[rows])
            name = word(row[verdict]) if isinstance(row[verdict], str) else None
            if name is None:
                ax.plot(*place, "_", color=GREY, markersize=5)
                continue
            ink, filled = INKS[name], name == "refuted"
            ax.plot(
                *place, "s" if name == "inconclusive" else "o", color=ink, markeredgewidth=0.9,
                markersize=SMALLEST + (LARGEST - SMALLEST) * share,
                markerfacecolor=ink if filled else "white",
            )  # fmt: skip
        _table(ax, down, across)
        ax.set_axisbelow(True)
        ax.grid(color=BAND, lw=0.8)
        if key is not None:
            handles = [
                Line2D([], [], ls="none", marker="o", color=INKS["refuted"], label=text,
                       markersize=SMALLEST + (LARGEST - SMALLEST) * share)
                for text, share in key.items()
            ]  # fmt: skip
            ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 0),
                      ncols=2 if narrow(ax) else len(key))  # fmt: skip
        said = set(frame[verdict].dropna())
        for name, look in DOTS.items():
            if name in said:
                note(ax, f"{look}: {name}")


DOTS = {"refuted": "filled", "supported": "ring", "inconclusive": "square"}
"""How a dot says its verdict, without colour too."""
SMALLEST, LARGEST = 3.0, 11.0
"""Diameters of dots, points."""


def _table(ax: Axes, down: list[Hashable], across: list[Hashable]) -> None:
    """Axes of words, the horizontal one above."""
    ax.set(xlim=(-0.5, len(across) - 0.5), ylim=(len(down) - 0.5, -0.5))
    ax.set_xticks(range(len(across)), [str(level) for level in across])
    ax.set_yticks(range(len(down)), [str(level) for level in down])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _verdict_cell(
    ax: Axes, place: tuple[int, int], columns: int, verdict: str | None, text: str
) -> None:
    from matplotlib.patches import Rectangle

    # A text too long for its cell, at some 0.6 of the font's size a letter, goes below the sign.
    x, y = place
    width = ax.bbox.width / ax.figure.dpi * 72 / columns
    gap = "  " if 0.6 * SMALL * (len(text) + 3) < width else "\n"
    fill = "white" if verdict is None else TINTS[word(verdict)]
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor="0.55", lw=0.6))
    sign = "" if verdict is None else SIGNS[verdict]
    ax.text(
        x, y, gap.join(part for part in (sign, text) if part), ha="center", va="center",
        fontsize=SMALL, color=GREY if verdict is None else "black",
        fontstyle="italic" if verdict is None else "normal",
        fontweight="bold" if verdict == "refuted" else "normal",
    )  # fmt: skip


def _values(
    ax: Axes, wide: pd.DataFrame, palette: str, norm: Normalize | None, missing: str | None
) -> ScalarMappable:
    """Values at the places that rows and columns name."""
    import seaborn as sns

    x, y, values = wide.columns.to_numpy(float), wide.index.to_numpy(float), wide.to_numpy()
    hidden = np.isnan(values)
    image = ax.pcolormesh(
        x, y, np.ma.masked_array(values, hidden), cmap=sns.color_palette(palette, as_cmap=True),
        norm=norm, shading="nearest", rasterized=True,
    )  # fmt: skip
    if hidden.any():
        # The background shows where there is no value.
        ax.patch.set(hatch="////", edgecolor="0.55", linewidth=0)
        down, across = np.argwhere(hidden).mean(0).round().astype(int)
        if missing:
            ax.text(x[across], y[down], missing, ha="center", va="center", fontsize=SMALL,
                    bbox={"color": "white", "pad": 1.5})  # fmt: skip
    ax.set(xlabel=str(wide.columns.name), ylabel=str(wide.index.name))
    return image
