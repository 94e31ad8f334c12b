"""Figures: one style, a few marks, and four shared plots on tidy frames.

========================= =====================================================================
:func:`forest`            effects by claim, a line each, with the margin's band
:func:`gap`               gaps simulation/theory − 1 against a variable, with the margin's band
:func:`curve`             theory as lines, simulation as points
:func:`grid_map`          a map of verdicts or of values over two variables
:func:`overview`          a sweep of one's own, of its file
========================= =====================================================================

Each shows the margin, ± 2 Monte Carlo standard errors and the verdict, given as a word or as a row
of the ledger. They draw on axes (:func:`panels` makes some) and know neither road: frames are all
they see. Matplotlib and seaborn, slow to start, are imported when something is drawn.
"""

from sims.figures.maps import grid_map
from sims.figures.marks import (
    badge,
    band,
    key,
    note,
    reference,
    signed,
    simulated,
    theory,
)
from sims.figures.output import save
from sims.figures.overview import overview
from sims.figures.plots import curve, forest, gap, relative_gap
from sims.figures.series import series, tidy
from sims.figures.theme import (
    BAND,
    COLUMN,
    GREY,
    MARKERS,
    PAGE,
    PALETTE,
    letters,
    log_axes,
    number,
    panels,
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
    "badge",
    "band",
    "curve",
    "forest",
    "gap",
    "grid_map",
    "key",
    "letters",
    "log_axes",
    "note",
    "number",
    "overview",
    "panels",
    "percent_axis",
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
