"""Marks of figures: lines, points, remarks.

Theory is a line, simulation a point with its Monte Carlo error bar (:data:`~sims.figures.theme.BAR`
standard errors to either side, drawn with caps however small).
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.figures.theme import BAR, GREY, MARKERS, PALETTE, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

MANY = 200
"""Points of a group beyond which a vector file has them as a picture."""
QUARTILES = (0.25, 0.5, 0.75)
"""Shares of problems below the median and the ends of a band."""


def quartiles(ax: Axes, x: ArrayLike, values: np.ndarray, ink: str, **line: Any) -> None:
    """Draw the median over problems (the first axis) as a line, and their middle half as a band.

    Nothing is drawn without problems, which can occur in a smoke run.
    """
    if len(values):
        band(ax, x, np.quantile(values, QUARTILES, axis=0), ink, **line)


def band(ax: Axes, x: ArrayLike, parts: np.ndarray, ink: str, **line: Any) -> None:
    """Draw quartiles (3, X) that are known: the median as a line, the middle half as a band."""
    low, median, high = parts
    ax.fill_between(x, low, high, color=ink, alpha=0.2, lw=0)
    ax.plot(x, median, color=ink, **line)


def note(ax: Axes, text: str) -> None:
    """Add a remark below the figure, once even if several panels request it."""
    # The canvas knows the root figure, of which a panel's figure may be a part.
    figure = ax.figure.canvas.figure
    registry = vars(figure).setdefault("remarks", {})
    registry[text] = None
    remarks = "  ·  ".join(registry)
    lines = textwrap.wrap(remarks, int(figure.get_figwidth() * 72 / (0.56 * SMALL)))
    figure.supxlabel("\n".join(lines), x=0.995, ha="right", fontsize=SMALL, color=GREY)


def bars_note(ax: Axes) -> None:
    """Add the remark that defines error bars."""
    note(ax, f"bars: ± {BAR:g} MCSE (Monte Carlo standard errors)")


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, color: str = GREY, **options: Any) -> None:
    """A prediction: a line. ``options`` are those of ``Axes.plot``."""
    ax.plot(x, y, **{"color": color, "zorder": 2, "lw": 0.9, **options})


def simulated(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    mcse: ArrayLike,
    color: str = GREY,
    marker: str = "o",
    **options: Any,
) -> None:
    """Draw estimates as points with error bars of ± :data:`~sims.figures.theme.BAR` MCSE.

    Args:
        ax: the axes.
        x: positions of the points.
        y: values of the points.
        mcse: Monte Carlo standard errors of the values.
        color: colour of points and bars.
        marker: marker of the points, white inside unless ``markerfacecolor`` is given.
        options: options of ``Axes.errorbar``.
    """
    look: dict[str, Any] = {
        "yerr": BAR * np.asarray(mcse, float),
        "color": color,
        "marker": marker,
        "linestyle": "none",
        "markerfacecolor": "white",
        "markeredgewidth": 0.7,
        "markersize": 2.6,
        "elinewidth": 0.6,
        "capsize": 1.5,
        "zorder": 3,
    }
    ax.errorbar(x, y, **look | options)


def dotted(ax: Axes, x: float | None = None, y: float = 0.0, label: str | None = None) -> None:
    """A dotted grey line to compare with, at x if given and else at y."""
    look: dict[str, Any] = {"color": GREY, "lw": 0.7, "ls": ":", "zorder": 1, "label": label}
    if x is None:
        ax.axhline(y, **look)
    else:
        ax.axvline(x, **look)


def dots(ax: Axes, x: ArrayLike, y: ArrayLike, place: int, label: str, **options: Any) -> None:
    """Problems as points in the colour and marker of this place, many of them as a picture.

    ``options`` are those of ``Axes.plot``.
    """
    look: dict[str, Any] = {
        "color": PALETTE[place],
        "marker": MARKERS[place],
        "label": label,
        "ls": "",
        "ms": 2.2,
        "mew": 0.4,
        "rasterized": len(np.asarray(x)) > MANY,
    }
    ax.plot(x, y, **look | options)


def words(ax: Axes) -> None:
    """Add the words of answers above an axis of shares in percent, with dotted limits."""
    for limit in (100 / 3, 200 / 3, 95):
        dotted(ax, x=limit)
    top = ax.secondary_xaxis("top")
    top.set_xticks([16, 50, 79, 98], ["rarely", "sometimes", "usually", "nearly\nalways"])
    top.tick_params(length=0, pad=1, labelcolor=GREY)
    top.spines["top"].set_visible(False)
