"""Figures: one style, a few marks, and shared plots on tidy frames.

========================= =====================================================================
:func:`curve`             theory as lines, simulation as points
:func:`scatter`           effects of problems against their parameters
:func:`overview`          a sweep, from its file
========================= =====================================================================

Each shows ± 2 Monte Carlo standard errors. They draw on axes (from :func:`panels` and
:func:`mosaic`, 89 mm wide) and use only frames. Matplotlib, slow to start, is imported on demand.
"""

from sims.figures.layout import COLUMN, describe, letters, mosaic, pairs, panels
from sims.figures.marks import (
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
    log_axes,
    style,
)

__all__ = [
    "BAND",
    "COLUMN",
    "GREY",
    "MARKERS",
    "PALETTE",
    "SELECTIVITY",
    "curve",
    "describe",
    "dots",
    "dotted",
    "letters",
    "log_axes",
    "mosaic",
    "note",
    "overview",
    "pairs",
    "panels",
    "quartiles",
    "save",
    "scatter",
    "simulated",
    "style",
    "theory",
    "words",
]
