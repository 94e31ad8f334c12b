"""One style for all figures, and the few marks they are made of.

Theory is a line, simulation a point with its Monte Carlo error bar (:data:`BAR` standard errors to
either side, drawn with caps however small). Colours are seaborn's colour-blind-safe palette.
Files are the same bytes for the same data: no time stamps, only fonts that come with matplotlib.

Analyses import this module to judge too: seaborn, slow to start, waits until something is drawn.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.5, 7.2
"""Widths of one and of two columns, inches (89 and 183 mm)."""
BAR = 2.0
"""Half length of an error bar, in Monte Carlo standard errors."""
PALETTE = (
    "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc",
    "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9",
)  # fmt: skip
"""Colours, to be taken in this order: seaborn's ``colorblind``."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers, to be taken in this order: colour is never the only difference."""
GREY = "0.45"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.8,
    "ytick.minor.size": 1.8,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    # Letters stay text in a vector file: they can be searched and edited.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "savefig.dpi": 300,
    "figure.dpi": 150,
}


def style() -> AbstractContextManager[None]:
    """The style, for the ``with`` block that makes a figure's axes."""
    import matplotlib as mpl
    import seaborn as sns
    from cycler import cycler

    base: dict[Any, Any] = {**sns.axes_style("ticks"), **sns.plotting_context("paper")}
    return mpl.rc_context({**base, **STYLE, "axes.prop_cycle": cycler(color=PALETTE)})


def panels(
    rows: int = 1,
    columns: int = 1,
    width: float = PAGE,
    height: float | None = None,
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes.

    Args:
        rows: of panels.
        columns: of panels.
        width: inches; :data:`COLUMN` or :data:`PAGE`.
        height: inches; None gives every panel the proportion 4:3.3.
        options: of ``Figure.subplots``, such as ``sharey``.

    Returns:
        The figure and its axes, shape (rows, columns).
    """
    from matplotlib.figure import Figure

    if height is None:
        height = rows * width / columns * 0.82
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def theory(ax: Axes, x: Any, y: Any, color: Any = GREY, **options: Any) -> None:
    """A prediction: a line."""
    ax.plot(x, y, **{"color": color, "zorder": 2, "lw": 1.2, **options})


def simulated(
    ax: Axes, x: Any, y: Any, mcse: Any, color: Any = GREY, marker: str = "o", **options: Any
) -> None:
    """Estimates: points with error bars of ± :data:`BAR` Monte Carlo standard errors."""
    ax.errorbar(
        x,
        y,
        yerr=BAR * np.asarray(mcse, float),
        **{
            "color": color,
            "marker": marker,
            "linestyle": "none",
            "markerfacecolor": "white",
            "markeredgewidth": 0.9,
            "markersize": 3.6,
            "elinewidth": 0.8,
            "capsize": 2.2,
            "capthick": 0.8,
            "zorder": 3,
            **options,
        },
    )


def log_axes(ax: Axes, x: bool = False, y: bool = False, plain: bool = False) -> None:
    """Logarithmic axes with minor ticks; ``plain`` writes 1000 rather than 10³."""
    from matplotlib.ticker import (
        LogFormatterSciNotation,
        LogLocator,
        NullFormatter,
        ScalarFormatter,
    )

    for wanted, axis, scale in ((x, ax.xaxis, ax.set_xscale), (y, ax.yaxis, ax.set_yscale)):
        if wanted:
            scale("log")
            axis.set_major_locator(LogLocator(10, numticks=12))
            axis.set_minor_locator(LogLocator(10, subs=tuple(range(2, 10)), numticks=12))
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(ScalarFormatter() if plain else LogFormatterSciNotation())


def letters(axes: Iterable[Axes]) -> None:
    """Panel letters a, b, … in bold at the upper left."""
    for index, ax in enumerate(np.ravel(np.asarray(list(axes), dtype=object))):
        ax.set_title(chr(ord("a") + index), loc="left", fontweight="bold", fontsize=9)


def key(
    ax: Axes,
    labels: Sequence[str],
    colors: Sequence[Any] = PALETTE,
    markers: Sequence[str] = MARKERS,
    **options: Any,
) -> None:
    """A legend with one entry a series: its line (theory) through its point (simulation)."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=c, marker=m, markerfacecolor="white", lw=1.2, markersize=3.6, label=t)
        for t, c, m in zip(labels, colors, markers, strict=False)
    ]
    with style():
        ax.legend(handles=handles, **options)


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure as PDF and PNG beside each other, atomically.

    Args:
        figure: made with :func:`panels`, or within :func:`style`.
        path: of either file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # It remarks on the dates in matplotlib's fonts, which nobody here can mend.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    stamps: dict[str, dict[str, None]] = {
        ".png": {"Software": None},
        ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    }
    for suffix, metadata in stamps.items():
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".figure.", suffix=suffix)
        os.close(handle)
        try:
            with style():
                figure.savefig(name, metadata=metadata)
            os.chmod(name, 0o644)
            os.replace(name, path.with_suffix(suffix))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
