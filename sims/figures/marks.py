"""The marks that figures are made of: lines, points, margins, verdicts, remarks.

Theory is a line, simulation a point with its Monte Carlo error bar (:data:`~sims.figures.theme.BAR`
standard errors to either side, drawn with caps however small). A margin is a grey band with edges;
a verdict is a word with a sign of its own, so that neither needs colour to be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.errors import InputError
from sims.figures.theme import BAND, BAR, GREY, SMALL, number
from sims.judgement import Verdict as Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

SIGNS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
INKS = {"supported": "#0b4f3c", "refuted": "#b8320a", "inconclusive": "#5c5c5c"}
"""Colours of a verdict's word: at least 4.5:1 on white, as text should have."""
DASHES = (0, (4, 3))
"""Line style of edges and references."""

Verdict = str | Row
Verdicts = Verdict | Mapping[Any, Verdict] | None
"""One verdict for a whole panel, or one for each of its series (levels of ``hue``) or lines."""
Margin = float | tuple[float, float]
"""δ for effects within ±δ, or the two ends of the range allowed, of which one may be infinite."""


def word(verdict: Verdict) -> str:
    """The word of a verdict, given as such or as a row of the ledger.

    Raises:
        InputError: it is none of supported, refuted and inconclusive.
    """
    text = verdict if isinstance(verdict, str) else verdict.verdict
    if text not in SIGNS:
        raise InputError("verdict", text, ", ".join(SIGNS))
    return text


def signed(label: Hashable, verdicts: Verdicts, gap: str = " ") -> str:
    """A label, a gap and the sign of its verdict, if ``verdicts`` has one for it."""
    if isinstance(verdicts, Mapping) and label in verdicts:
        return f"{label}{gap}{SIGNS[word(verdicts[label])]}"
    return str(label)


def ends(margin: Margin) -> tuple[float, float]:
    """Both ends of the range that a margin allows.

    Raises:
        InputError: the lower end is not below the upper one.
    """
    low, high = (-margin, margin) if isinstance(margin, (int, float)) else margin
    if not low < high:
        raise InputError("margin", margin, "a positive number, or a lower and an upper end")
    return float(low), float(high)


def margin_text(margin: Margin, percent: bool = True) -> str:
    """A margin in words: "margin ± 5 %", "margin −4.8 to 5.3 %", "margin: above 0 %"."""
    low, high = ends(margin)
    unit = " %" if percent else ""
    if np.isinf(high):
        return f"margin: above {number(low, percent)}{unit}"
    if np.isinf(low):
        return f"margin: below {number(high, percent)}{unit}"
    if low == -high:
        return f"margin ± {number(high, percent)}{unit}"
    return f"margin {number(round(low, 3), percent)} to {number(round(high, 3), percent)}{unit}"


def band(
    ax: Axes,
    margin: Margin,
    percent: bool = True,
    over: tuple[float, float] | None = None,
    words: bool = True,
) -> None:
    """The range of y that a margin allows, as a grey band with dashed edges.

    Draw the data, and set scale and limits, first.

    Args:
        ax: the axes.
        margin: see :data:`Margin`.
        percent: whether the words are in percent.
        over: the range of x that the claim is about; all by default.
        words: whether the band says its size.
    """
    low, high = ends(margin)
    limits = ax.get_xlim(), ax.get_ylim()
    bottom, top = max(low, limits[1][0]), min(high, limits[1][1])
    # Along the band places are shares of the axes, unless the claim is about a range of x.
    frame, left, right = ax.get_yaxis_transform(), 0.0, 1.0
    if over is not None:
        frame, left, right = ax.transData, max(over[0], limits[0][0]), min(over[1], limits[0][1])
    ax.fill_between([left, right], bottom, top, color=BAND, lw=0, zorder=0, transform=frame)
    finite = [end for end in (low, high) if np.isfinite(end)]
    ax.hlines(finite, left, right, color=GREY, lw=0.6, ls=DASHES, zorder=0.5, transform=frame)
    ax.set(xlim=limits[0], ylim=limits[1])
    if words:
        # Under the data, which are never hidden by words.
        ax.annotate(
            margin_text(margin, percent),
            (right, top),
            xycoords=frame,
            xytext=(-2, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=SMALL,
            color=GREY,
            zorder=0.9,
        )


def badge(ax: Axes, verdict: Verdicts, below: str = "") -> None:
    """A panel's verdict, with a line of text below it, above the upper right corner.

    A row of kind ``program``, which no draw can turn, says that it comes out so by algebra. Of
    several verdicts, which stand at their series, the remark below the figure explains the signs.
    """
    text, color = below, GREY
    if isinstance(verdict, Mapping):
        for name in {word(one) for one in verdict.values()}:
            note(ax, f"{SIGNS[name]} {name}")
    elif verdict is not None:
        name, known = word(verdict), getattr(verdict, "kind", None) == "program"
        text = f"{SIGNS[name]} {'by algebra' if known else name}\n{below}".strip()
        color = INKS[name]
    ax.set_title(text, loc="right", fontsize=SMALL, color=color)


def note(ax: Axes, text: str) -> None:
    """A remark on the whole figure, below it; said once however many panels say it.

    What the signs of verdicts mean comes first.
    """
    # The canvas knows the root figure, of which a panel's figure may be a part.
    figure = ax.figure.canvas.figure
    said = vars(figure).setdefault("remarks", {})
    said[text] = "✓✗?".find(text[0]) % 9
    remarks = "  ·  ".join(sorted(said, key=said.get))
    lines = textwrap.wrap(remarks, int(figure.get_figwidth() * 72 / (0.56 * SMALL)))
    figure.supxlabel("\n".join(lines), x=0.995, ha="right", fontsize=SMALL, color=GREY)


def bars_note(ax: Axes) -> None:
    """The remark that says what error bars are."""
    note(ax, f"bars: ± {BAR:g} MCSE (Monte Carlo standard errors)")


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, color: str = GREY, **options: Any) -> None:
    """A prediction: a line. ``options`` are those of ``Axes.plot``."""
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
    """Estimates: points with error bars of ± :data:`~sims.figures.theme.BAR` MCSE.

    Args:
        ax: the axes.
        x: the points' places.
        y: their values.
        mcse: Monte Carlo standard errors of the values.
        color: of points and bars.
        marker: of the points, white inside unless ``markerfacecolor`` says otherwise.
        options: of ``Axes.errorbar``.
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
    ax: Axes, y: Any, text: str = "", x: Sequence[float] | np.ndarray | None = None, at: float = 0.0
) -> None:
    """A dashed grey line to compare with, and its name beside it.

    Args:
        ax: the axes; set scale and limits first.
        y: a constant, or values at x.
        text: the name, above the line.
        x: places of the values; None for a constant.
        at: where along the line the name stands, 0 to 1.
    """
    frame = ax.transData
    if x is None:
        frame, x, y = ax.get_yaxis_transform(), (0.0, 1.0), (y, y)
    theory(ax, x, y, lw=0.8, ls=DASHES, zorder=1, transform=frame)
    place = int(at * (len(x) - 1) + 0.5)
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
