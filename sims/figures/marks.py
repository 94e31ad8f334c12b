"""Marks of figures: lines, points, remarks.

Theory is a line, simulation a point with its Monte Carlo error bar (:data:`~sims.figures.theme.BAR`
standard errors to either side, drawn with caps however small).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.figures.theme import BAR, GREY, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

DASHES = (0, (4, 3))
"""Line style of edges and references."""


def quartiles(ax: Axes, x: ArrayLike, values: np.ndarray, ink: str, **line: Any) -> None:
    """Draw the median over problems (the first axis) as a line, and their middle half as a band.

    Nothing is drawn without problems, which can occur in a smoke run.
    """
    if len(values):
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
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
    """Draw a prediction as a line. ``options`` are those of ``Axes.plot``."""
    ax.plot(x, y, **{"color": color, "zorder": 2, "lw": 1.2, **options})


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
        "markeredgewidth": 0.9,
        "markersize": 3.6,
        "elinewidth": 0.8,
        "capsize": 2.2,
        "zorder": 3,
    }
    ax.errorbar(x, y, **look | options)


def reference(
    ax: Axes,
    y: Any,
    text: str = "",
    x: Sequence[float] | np.ndarray | None = None,
    share: float = 0.0,
) -> None:
    """Draw a dashed grey reference line with its name.

    Args:
        ax: the axes; set scale and limits first.
        y: a constant, or values at x.
        text: the name, above the line.
        x: places of the values; None for a constant.
        share: share of the line before its name, 0 to 1.
    """
    frame = ax.transData
    if x is None:
        frame, x, y = ax.get_yaxis_transform(), (0.0, 1.0), (y, y)
    theory(ax, x, y, lw=0.8, ls=DASHES, zorder=1, transform=frame)
    place = int(share * (len(x) - 1) + 0.5)
    side, shift = ("right", -4) if 2 * place >= len(x) else ("left", 4)
    ax.annotate(
        text,
        (x[place], y[place]),
        (shift, 2),
        xycoords=frame,
        textcoords="offset points",
        fontsize=SMALL,
        color=GREY,
        ha=side,
    )


def words(ax: Axes) -> None:
    """Add the words of answers above an axis of shares in percent, with dotted limits."""
    for limit in (100 / 3, 200 / 3, 95):
        ax.axvline(limit, color=GREY, lw=0.8, ls=":")
    top = ax.secondary_xaxis("top")
    top.set_xticks([16, 50, 79, 98], ["rarely", "sometimes", "usually", "nearly\nalways"])
    top.tick_params(length=0, pad=1, labelsize=SMALL, labelcolor=GREY)
    top.spines["top"].set_visible(False)
