"""Figures: one style, a few marks, and shared plots on tidy frames.

========================= =====================================================================
:func:`curve`             theory as lines, simulation as points
:func:`scatter`           effects of problems against their parameters
:func:`overview`          a sweep, from its file
========================= =====================================================================

Each shows ± 2 Monte Carlo standard errors. They draw on axes (from :func:`panels` and
:func:`mosaic`, 89 mm wide) and use only frames. Matplotlib, slow to start, is imported on demand.
"""

from sims.figures.layout import COLUMN, PAGE, letters, mosaic, panels
from sims.figures.marks import (
    diagonal,
    dots,
    dotted,
    note,
    quartiles,
    simulated,
    theory,
    words,
)
from sims.figures.output import save
from sims.figures.overview import overview
from sims.figures.plots import curve, scatter
from sims.figures.theme import (
    BAND,
    GREY,
    MARKERS,
    PALETTE,
    SELECTIVITY,
    SMALL,
    log_axes,
    number,
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
    "SELECTIVITY",
    "SMALL",
    "curve",
    "diagonal",
    "dots",
    "dotted",
    "letters",
    "log_axes",
    "mosaic",
    "note",
    "number",
    "overview",
    "panels",
    "quartiles",
    "save",
    "scatter",
    "simulated",
    "style",
    "theory",
    "ticks",
    "words",
]
