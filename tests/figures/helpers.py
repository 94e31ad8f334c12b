"""Frames to draw, and what was drawn."""

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from sims import figures
from sims.judgement import Verdict

SUPPORTED = Verdict("c", "e", "r", "s", "supported", 0.0, (-0.01, 0.01), 0.05, 0.95, 9, "why")


def axes_of(count=1):
    return figures.panels(1, count)[1][0]


def bars(ax):
    """Centres and half lengths of all error bars, and whether their markers are filled."""
    out = []
    for container in ax.containers:
        line, _, (bar,) = container.lines
        halves = [np.ptp(np.asarray(segment), axis=0).max() / 2 for segment in bar.get_segments()]
        filled = to_hex(line.get_markerfacecolor()) != "#ffffff"
        out += [(x, y, h, filled) for (x, y), h in zip(line.get_xydata(), halves, strict=True)]
    return out


def words(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def note_of(ax):
    return ax.figure.get_supxlabel()


EFFECTS = pd.DataFrame(
    {
        "label": ["first", "second", "second", "second"],
        "value": [0.01, 0.02, -0.04, 0.03],
        "error": [0.001, 0.002, 0.003, 0.004],
        "bound": [0.0, 0.0, 0.005, 0.0],
    }
)


GAPS = pd.DataFrame(
    {
        "n": [10, 100, 10, 100],
        "kernel": ["b", "b", "a", "a"],
        "simulation": [1.1, 0.99, 2.0, -1.0],
        "mcse": [0.01, 0.02, 0.03, 0.04],
        "theory": [1.0, 1.0, 2.0, -1.25],
    }
)


CURVE = pd.DataFrame({"H": [4, 1, 2], "kept": [0.4, 1.0, 0.6], "kept_mcse": [0.01, 0.02, 0.03]})
