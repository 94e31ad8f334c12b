"""One style for all figures: colours, markers, and the axes they are used on.

Colours keep a contrast of at least 3:1 with white and with a margin's band, and differ in lightness
too: they can be told apart in grey and with every common kind of colour blindness
(``tests/figures`` computes all three). Markers differ as well, so colour is never the only
difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BAR = 2.0
"""Half length of an error bar, in Monte Carlo standard errors (MCSE): about 95 %."""
PALETTE = (
    "#0b6fb5", "#cb7100", "#0b4f3c", "#9c1f5f", "#3d1a6e", "#22958a", "#8a4b14", "#111111",
)  # fmt: skip
"""Colours, to be taken in this order: the first five are the easiest to tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers, to be taken in this order."""
STRONG = "#b8320a"
"""The one colour of a series that the figure is about, where all others are grey."""
GREYS = ("0.15", "0.42", "0.53", "0.3", "0.49", "0.22", "0.46")
"""Colours of the others: series are told apart by their markers, to be taken in this order."""
GREY = "0.4"
"""Colour of references and remarks."""
BAND = "0.94"
"""Fill of a margin's band; its edges are drawn in :data:`GREY`, since the fill alone is faint."""
SMALL = 7.0
"""Size of remarks, in points: nothing that is to be read is smaller at the size of print."""

STYLE: dict[str, object] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
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
    # Letters stay text in a PDF, which carries its font: they can be searched and edited. An SVG
    # carries none, and in another font words would run into the data: there they are drawn.
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    # Names of clip paths in an SVG would be random otherwise.
    "svg.hashsalt": "sims",
    "savefig.dpi": 300,
    "figure.dpi": 150,
}


def style() -> AbstractContextManager[None]:
    """The style, for the ``with`` block that makes a figure's axes."""
    import matplotlib as mpl
    import seaborn as sns
    from cycler import cycler

    base = {**sns.axes_style("ticks"), **sns.plotting_context("paper")}
    own = {**base, **STYLE, "axes.prop_cycle": cycler(color=PALETTE)}
    return mpl.rc_context(own)  # type: ignore[arg-type]


def log_axes(ax: Axes, x: bool = False, y: bool = False, plain: bool = False) -> None:
    """Logarithmic axes with minor ticks; ``plain`` writes 1000 rather than 10³."""
    from matplotlib.ticker import (
        LogFormatterSciNotation,
        LogLocator,
        NullFormatter,
        ScalarFormatter,
    )

    for chosen, axis, scale in ((x, ax.xaxis, ax.set_xscale), (y, ax.yaxis, ax.set_yscale)):
        if chosen:
            scale("log")
            axis.set_major_locator(LogLocator(10, numticks=12))
            axis.set_minor_locator(LogLocator(10, subs=tuple(range(2, 10)), numticks=12))
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(ScalarFormatter() if plain else LogFormatterSciNotation())


def ticks(axis: Axis, values: Iterable[float], percent: bool = False) -> None:
    """Ticks at these values alone, written plainly: 1,000 rather than 10³, 0.05 as 5 in percent."""
    places = [float(value) for value in values]
    axis.set_ticks(places, labels=[number(place, percent) for place in places])
    axis.set_ticks([], minor=True)


def percent_axis(axis: Axis) -> None:
    """Tick labels in percent of data that are fractions; the axis' label has to say "(%)"."""
    axis.set_major_formatter(lambda value, _: number(value, percent=True))


def number(value: float, percent: bool = False, signed: bool = False) -> str:
    """A number as figures write it: few digits, a real minus sign, 1,000 with its comma."""
    value = round(100 * value, 12) if percent else value
    text = f"{value:{'+' if signed else ''},.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return text.replace("-", "−")
