"""Style of all figures: colours, markers and axes.

Colours keep a contrast of at least 3:1 with white and with a margin's band (``tests/figures``
computes it), and differ in lightness too: they stay distinct in grey and with every common kind
of colour blindness. Markers differ as well, so colour is never the only difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 2.0
"""Half length of an error bar, in Monte Carlo standard errors (MCSE): about 95 %."""
PALETTE = (
    "#0b6fb5",
    "#cb7100",
    "#0b4f3c",
    "#9c1f5f",
    "#3d1a6e",
    "#22958a",
    "#8a4b14",
    "#111111",
)
"""Colours, to be used in this order: the first five are the easiest to distinguish."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers, to be used in this order."""
GREY = "0.4"
"""Colour of references and remarks."""
BAND = "0.94"
"""Fill of a margin's band; its edges are drawn in :data:`GREY`, since the fill alone is faint."""
SMALL = 6.0
"""Size of text in points: nothing is smaller at the size of print."""
SELECTIVITY = r"effective share of keys, $n_\mathrm{eff}/n$"
"""Label of the axis along which most figures show their problems."""
SHORT, LONG = 60, 500
"""Ratios of the ends of a logarithmic axis up to which ticks are at 1, 2 and 5, and at 1 and 3."""
TITLE = 6.5
"""Size of a panel's title, in points."""
STYLE = Path(__file__).with_name("sims.mplstyle")
"""All else of the style, in Matplotlib's form."""
SIZES = ("axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")


@contextmanager
def style() -> Iterator[None]:
    """Style, for the ``with`` block that creates a figure's axes."""
    from cycler import cycler
    from matplotlib import style as styles

    look = {
        "font.size": SMALL,
        "axes.titlesize": TITLE,
        **dict.fromkeys(SIZES, SMALL),
        "axes.prop_cycle": cycler(color=PALETTE),
    }
    # Matplotlib's copy of the style: importing seaborn takes half a second.
    # After a reset, since a matplotlibrc of the user's is not ours.
    looks: list[str | Path | dict[str, Any]] = ["seaborn-v0_8-ticks", STYLE, look]
    with styles.context(looks, after_reset=True), warnings.catch_warnings():
        # Seaborn 0.13 gives Matplotlib's boxes this argument.
        warnings.filterwarnings("ignore", "vert: bool was deprecated")
        yield


def log_axes(ax: Axes, x: bool = False, y: bool = False) -> None:
    """Logarithmic axes with ticks for what is drawn: between powers of 10 on a short one."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for selected, axis, scale in ((x, ax.xaxis, ax.set_xscale), (y, ax.yaxis, ax.set_yscale)):
        if selected:
            scale("log")
            low, high = axis.get_view_interval()
            if high < LONG * low:
                steps = (1, 2, 5) if high < SHORT * low else (1, 3)
                axis.set_major_locator(LogLocator(10, subs=steps))
                axis.set_major_formatter(lambda value, _: number(value))
            axis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=12))
            axis.set_minor_formatter(NullFormatter())


def number(value: float) -> str:
    """Number in the style of figures: few digits, a true minus sign, 1,000 with its comma."""
    text = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return text.replace("-", "−")
