"""Figures: one style, a few marks, and shared plots on tidy frames.

========================= =====================================================================
:func:`forest`            effects by claim, a line each, with the margin's band
:func:`gap`               gaps simulation/theory − 1 against a variable, with the margin's band
:func:`curve`             theory as lines, simulation as points
:func:`grid_map`          a map of verdicts or of values over two variables, dark is best
:func:`dot_map`           a map of verdicts, a dot each, larger where it is worse
:func:`overview`          a sweep of one's own, of its file
========================= =====================================================================

Each shows the margin, ± 2 Monte Carlo standard errors and the verdict, given as a word or as a row
of the ledger. They draw on axes (:func:`panels` and :func:`mosaic` make some, 183 mm wide;
:func:`preset` asks for 89 mm) and know neither road: frames are all they see. Matplotlib and
seaborn, slow to start, are imported when something is drawn.
"""

from sims.figures.forests import forest
from sims.figures.layout import COLUMN, PAGE, WIDTHS, letters, mosaic, narrow, panels, preset
from sims.figures.maps import dot_map, grid_map
from sims.figures.marks import (
    badge,
    band,
    bars_note,
    explain,
    key,
    note,
    reference,
    signed,
    simulated,
    theory,
)
from sims.figures.output import save
from sims.figures.overview import overview
from sims.figures.plots import curve, gap, relative_gap
from sims.figures.series import series, tidy
from sims.figures.theme import (
    BAND,
    GREY,
    MARKERS,
    PALETTE,
    SMALL,
    log_axes,
    number,
    percent_axis,
    style,
    ticks,
)

__all__ = [
    "BAND",
    "COLUMN",
    "GREY",
    "MARKERS",
    "PAGE",
    "PALETTE",
    "SMALL",
    "WIDTHS",
    "badge",
    "band",
    "bars_note",
    "curve",
    "dot_map",
    "explain",
    "forest",
    "gap",
    "grid_map",
    "key",
    "letters",
    "log_axes",
    "mosaic",
    "narrow",
    "note",
    "number",
    "overview",
    "panels",
    "percent_axis",
    "preset",
    "reference",
    "relative_gap",
    "save",
    "series",
    "signed",
    "simulated",
    "style",
    "theory",
    "ticks",
    "tidy",
]
