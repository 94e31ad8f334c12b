"""Errors over the law of subset sums, items needed, and scales of weights."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import dots_by, quartiles_by
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .problems import ITEMS
from .statistic import FIRST

ADDED = {"entries": "entries doubled", "accuracies": "ε halved"}
"""Effects of what asks for further items."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure, by the numbers that the answers count."""
    subject = "Up to norm 1, each further candidate weight"
    title = answers["slt-rate"].sentence(subject, "halves the pruning error")
    drawing, (left, right) = figures.pairs(2, title=title, height=2.6)
    _rates(left, panels)
    _items(right, panels)
    return drawing


def _rates(ax: Axes, panels: Panels) -> None:
    """Errors over √n′ 2^(−n′), which is 1 at the items from which rates are fitted."""
    items = ITEMS[FIRST:]
    steps = items * np.log(2) - np.log(items) / 2
    error = panels["log_output"][:, FIRST:] + steps
    kinds = panels.parameters["norm"].le(1).map({True: "norm up to 1", False: "norm above 1"})
    quartiles_by(ax, items, np.exp(error - error[:, :1]), kinds)
    slower = np.exp(conventions.TOLERANCES["slope"] * (steps - steps[0]))
    ax.fill_between(items, 0.3, slower, color=figures.BAND, zorder=0, label="as fast")
    figures.describe(
        ax,
        "candidates per entry, n′ = $n_K$/d",
        "error / √n′ 2$^{-n′}$, scaled to 1",
        "Errors fall at the law's rate or faster",
        log="y",
    )


def _items(ax: Axes, panels: Panels) -> None:
    """Items added, with the tolerance as a band, a point a problem."""
    most = 1 + conventions.TOLERANCES["slope"]
    frame = panels.parameters[["norm"]].copy()
    for name, title in ADDED.items():
        frame[title] = most - np.asarray(panels.effects[name].predicted)
    frame = frame.melt("norm")
    dots_by(ax, frame, "norm", "value", "variable")
    ax.axhspan(0, most, color=figures.BAND, zorder=0, label="at most one")
    figures.describe(
        ax,
        "norm of the target",
        "further candidates per entry",
        "Up to norm 1, one more candidate is enough",
        log="x",
    )
