"""Figures: one style, a few marks, and shared plots on tidy frames.

========================= =====================================================================
:func:`forest`            effects by claim, a line each, with the margin's band
:func:`gap`               gaps simulation/theory − 1 against a variable, with the margin's band
:func:`curve`             theory as lines, simulation as points
:func:`overview`          a sweep of one's own, of its file
========================= =====================================================================

Each shows the margin, ± 2 Monte Carlo standard errors and the verdict, given as a word or as a row
of the ledger. They draw on axes (:func:`panels` and :func:`mosaic` make some, 183 mm wide) and know
neither road: frames are all they see. Matplotlib and seaborn, slow to start, are imported when
something is drawn.
"""

from sims.figures.forests import forest
from sims.figures.layout import COLUMN, letters, mosaic, panels
from sims.figures.marks import (
    INKS,
    badge,
    band,
    bars_note,
    note,
    reference,
    signed,
    simulated,
    theory,
)
from sims.figures.output import save
from sims.figures.overview import overview
from sims.figures.plots import curve, gap
from sims.figures.series import tidy
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
    "INKS",
    "MARKERS",
    "PALETTE",
    "SMALL",
    "badge",
    "band",
    "bars_note",
    "curve",
    "forest",
    "gap",
    "letters",
    "log_axes",
    "mosaic",
    "note",
    "number",
    "overview",
    "panels",
    "percent_axis",
    "reference",
    "save",
    "signed",
    "simulated",
    "style",
    "theory",
    "ticks",
    "tidy",
]
