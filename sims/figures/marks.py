"""The marks that figures are made of: lines, points, margins, verdicts, remarks.

Theory is a line, simulation a point with its Monte Carlo error bar (:data:`~sims.figures.theme.BAR`
standard errors to either side, drawn with caps however small). A margin is a grey band with edges;
a verdict is a word with a sign of its own, so that neither needs colour to be read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sims.errors import InputError
from sims.figures.theme import BAND, BAR, GREY, MARKERS, PALETTE, SMALL, STRONG, number, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from matplotlib.transforms import Transform
    from numpy.typing import ArrayLike

SIGNS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
INKS = {"supported": "#0b4f3c", "refuted": STRONG, "inconclusive": "#5c5c5c"}
"""Colours of a verdict's word: at least 4.5:1 on white, as text should have."""
TINTS = {"supported": "#dcebe4", "refuted": "#f3b79c", "inconclusive": "#efefef"}
"""Fills of a verdict's cell of a map: the refuted one is the darkest, in grey as well."""


DOT = "  ·  "
"""Between remarks."""


class Judged(Protocol):
    """What a figure reads off a row of the ledger, :class:`sims.judgement.Verdict`."""

    @property
    def verdict(self) -> str:
        """One of the keys of :data:`SIGNS`."""

    @property
    def margin(self) -> float:
        """What the effect was held against, fixed before the run."""


Verdict = str | Judged
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


def explain(ax: Axes, verdicts: Verdicts) -> None:
    """The remark that says what the signs of these verdicts mean."""
    if isinstance(verdicts, Mapping):
        words = {word(verdict) for verdict in verdicts.values()}
        for name in (name for name in SIGNS if name in words):
            note(ax, f"{SIGNS[name]} {name}")


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
    if np.isinf(low) or np.isinf(high):
        side, end = ("above", low) if np.isinf(high) else ("below", high)
        return f"margin: {side} {number(end, percent)}{unit}"
    if low == -high:
        return f"margin ± {number(high, percent)}{unit}"
    return f"margin {number(round(low, 3), percent)} to {number(round(high, 3), percent)}{unit}"


def widen(ax: Axes, margin: Margin, axis: str = "y") -> None:
    """Widen the limits, by a tenth, so that the finite ends of a margin are seen."""
    limits = ax.get_ylim() if axis == "y" else ax.get_xlim()
    finite = [1.1 * end for end in ends(margin) if np.isfinite(end)]
    (ax.set_ylim if axis == "y" else ax.set_xlim)(min(*limits, *finite), max(*limits, *finite))


def band(
    ax: Axes,
    margin: Margin,
    percent: bool = True,
    axis: str = "y",
    over: tuple[float, float] | None = None,
    at: float | None = 1.0,
) -> None:
    """The range that a margin allows, as a grey band with dashed edges.

    A level band says its size in words, inside if it is wide enough and above it otherwise: draw
    the data, and set scale and limits, first.

    Args:
        ax: the axes.
        margin: see :data:`Margin`.
        percent: whether the words are in percent.
        axis: "y" for a level band of values of y, "x" for an upright one.
        over: of a level band, the range of x that the claim is about; all by default.
        at: at which end of a level band the words stand, 0 (left) or 1; None: there are none.
    """
    low, high = ends(margin)
    level = axis == "y"
    limits = sorted(ax.get_ylim() if level else ax.get_xlim())
    bottom, top = max(low, limits[0]), min(high, limits[1])
    # Along the band places are shares of the axes, unless the claim is about a range of x.
    frame = ax.get_yaxis_transform() if level else ax.get_xaxis_transform()
    first, last = 0.0, 1.0
    if over is not None:
        left, right = sorted(ax.get_xlim())
        frame, first, last = ax.transData, max(left, over[0]), min(right, over[1])
    fill, line = (ax.fill_between, ax.hlines) if level else (ax.fill_betweenx, ax.vlines)
    before = ax.get_xlim(), ax.get_ylim()
    fill([first, last], bottom, top, color=BAND, lw=0, zorder=0, transform=frame)
    finite = [end for end in (low, high) if np.isfinite(end)]
    line(finite, first, last, color=GREY, lw=0.6, ls=(0, (4, 3)), zorder=0.5, transform=frame)
    ax.set(xlim=before[0], ylim=before[1])
    if not level or at is None:
        return
    height = np.ptp(ax.get_yaxis_transform().transform([(0.0, bottom), (0.0, top)])[:, 1])
    below = height >= 0.3 * ax.bbox.height
    # Under the data, which are never hidden by words.
    ax.annotate(
        margin_text(margin, percent), (last if at else first, top), xycoords=frame,
        xytext=(-2 if at else 2, -2 if below else 2), textcoords="offset points",
        ha="right" if at else "left", va="top" if below else "bottom", fontsize=SMALL,
        color=GREY, zorder=0.9,
    )  # fmt: skip


def badge(ax: Axes, verdict: Verdict, margin: Margin | None = None, percent: bool = True) -> None:
    """A panel's verdict, and its margin if given, above the upper right corner.

    A row of kind ``program``, which no draw can turn, says that it comes out so by algebra.
    """
    known = getattr(verdict, "kind", None) == "program"
    lines = [f"{SIGNS[word(verdict)]} {'by algebra' if known else word(verdict)}"]
    if margin is not None:
        lines.append(margin_text(margin, percent))
    ink(ax.set_title("\n".join(lines), loc="right", fontsize=SMALL), verdict)


def row_end(
    ax: Axes, row: float, text: str = "", verdict: Verdict | None = None, short: bool = False
) -> None:
    """The verdict of a row and its numbers, at its right end outside the axes.

    Beside numbers, or if ``short``, the verdict is its sign alone.
    """
    sign = ""
    if verdict is not None:
        sign, text = SIGNS[word(verdict)], text or ("" if short else word(verdict))
    whole = ax.annotate(
        f"{sign}  {text}".strip(), (1, row), xytext=(5, 0), xycoords=ax.get_yaxis_transform(),
        textcoords="offset points", va="center", fontsize=SMALL, color=GREY, annotation_clip=False,
    )  # fmt: skip
    if verdict is not None:
        ink(whole, verdict)


def ink(text: Text, verdict: Verdict) -> None:
    """Give a text the colours of a verdict: refuted is white on the one strong colour."""
    colour = INKS[word(verdict)]
    if word(verdict) == "refuted":
        text.set(color="white", bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.2})
    else:
        text.set_color(colour)


def note(ax: Axes, text: str) -> None:
    """A remark on the whole figure, below it; said once however many panels say it.

    What the signs of verdicts mean comes first. Remarks go on in a new line where one is full.
    """
    # The canvas knows the root figure, of which a panel's figure may be a part.
    figure = ax.figure.canvas.figure
    said = [one for line in figure.get_supxlabel().split("\n") for one in line.split(DOT) if one]
    if text in said:
        return
    signs = list(SIGNS.values())
    said = sorted([*said, text], key=lambda one: signs.index(one[0]) if one[0] in signs else 9)
    full = figure.get_figwidth() * 72 / (0.56 * SMALL)
    lines = [said[0]]
    for one in said[1:]:
        whole = f"{lines[-1]}{DOT}{one}"
        lines[-1:] = [whole] if len(whole) <= full else [lines[-1], one]
    figure.supxlabel("\n".join(lines), x=0.995, ha="right", fontsize=SMALL, color=GREY)


def bars_note(ax: Axes) -> None:
    """The remark that says what error bars are."""
    note(ax, f"bars: ± {BAR:g} MCSE (Monte Carlo standard errors)")


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, color: str = GREY, **options: object) -> None:
    """A prediction: a line. ``options`` are those of ``Axes.plot``."""
    ax.plot(x, y, **{"color": color, "zorder": 2, "lw": 1.2, **options})  # type: ignore[arg-type]


def simulated(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    mcse: ArrayLike,
    color: str = GREY,
    marker: str = "o",
    **options: object,
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
    ax.errorbar(
        x,
        y,
        **{  # type: ignore[arg-type]
            "yerr": BAR * np.asarray(mcse, float),
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


def reference(
    ax: Axes, y: ArrayLike, text: str = "", x: ArrayLike | None = None, at: float = 0.0
) -> None:
    """A dashed grey line to compare with, and its name beside it.

    Args:
        ax: the axes; set scale and limits first.
        y: a constant, or values at x.
        text: the name: above a level line, below another.
        x: places of the values; None for a constant.
        at: where along the line the name stands, 0 to 1.
    """
    values = np.atleast_1d(np.asarray(y, float))
    frame: Transform = ax.transData
    if x is None:
        ax.axhline(values[0], color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
        place, frame = (at, float(values[0])), ax.get_yaxis_transform()
        side, base, shift = "left" if at < 0.5 else "right", "bottom", (3 if at < 0.5 else -3, 2)
    else:
        places = np.asarray(x, float)
        theory(ax, places, values, lw=0.8, ls=(0, (4, 3)), zorder=1)
        index = round(at * (len(places) - 1))
        place = (float(places[index]), float(values[index]))
        falls = values[-1] < values[0]
        side, base, shift = "right" if falls else "left", "top", (-4 if falls else 4, 0)
    ax.annotate(
        text, place, xytext=shift, xycoords=frame, ha=side, va=base, textcoords="offset points",
        fontsize=SMALL, color=GREY,
    )  # fmt: skip


def key(
    ax: Axes,
    labels: Sequence[str],
    colors: Sequence[str] = PALETTE,
    markers: Sequence[str] = MARKERS,
    **options: object,
) -> None:
    """A legend with one entry a series: its line (theory) through its point (simulation)."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=c, marker=m, markerfacecolor="white", lw=1.2, markersize=3.6, label=t)
        for t, c, m in zip(labels, colors, markers, strict=False)
    ]
    with style():
        ax.legend(handles=handles, **options)  # type: ignore[call-overload]
