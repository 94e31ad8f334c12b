"""Errors over the law of subset sums, items needed, constants of the widths, scales of weights."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.wording import percent
from sims.study.panels import Panels

from .problems import ITEMS
from .statistic import FIRST, PRINTED

SCALES = {1: "√(6|w|√d)", 2: "Xavier's"}
"""Scales compared with n_K^¼, by their places."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure, by the numbers that the answers count."""
    word = answers["slt-rate"].word
    title = f"Norm up to 1: each further candidate weight halves the pruning error ({word})"
    drawing, axes = figures.panels(2, 2, height=4.2, title=title)
    _rates(axes[0, 0], panels)
    _items(axes[0, 1], panels)
    _constants(axes[1, 0], panels)
    _scales(axes[1, 1], panels)
    return drawing


def _rates(ax: Axes, panels: Panels) -> None:
    """Errors over √n′ 2^(−n′), which is 1 at the items from which rates are fitted."""
    items = ITEMS[FIRST:]
    steps = items * np.log(2) - np.log(items) / 2
    steps -= steps[0]
    error = panels["log_output"][:, FIRST:]
    ratio = np.exp(error - error[:, :1] + steps)
    above = panels.parameters["norm"].to_numpy() > 1
    for place, name in enumerate(("norm up to 1", "norm above 1")):
        rows = ratio[above == place]
        label = f"{name}, n = {len(rows)}"
        figures.quartiles(ax, items, rows, figures.PALETTE[place], marker="o", label=label)
    tolerance = conventions.TOLERANCES["slope"]
    fast = np.exp(tolerance * steps)
    ax.fill_between(items, 0 * steps, fast, color=figures.BAND, zorder=0, label="as fast")
    printed = np.exp(steps - PRINTED * 2 * (items - items[0]))
    figures.theory(ax, items, printed, label="printed fit, d = 2")
    figures.log_axes(ax, y=True)
    figures.ticks(ax.xaxis, items)
    ax.legend(loc="upper left")
    ax.set(
        ylim=(0.3, 2000),
        xlabel="candidates per entry, n′ = $n_K$/d",
        ylabel="error / √n′ 2$^{-n′}$, 1 at first",
        title="Errors fall at the law's rate or faster",
    )


def _items(ax: Axes, panels: Panels) -> None:
    """Items added, with the tolerance as a band, a point a problem."""
    norm = panels.parameters["norm"].to_numpy()
    most = 1 + conventions.TOLERANCES["slope"]
    names = {"entries": "entries doubled", "accuracies": "ε halved"}
    inside = []
    for place, (name, label) in enumerate(names.items()):
        room = np.asarray(panels.effects[name].predicted)
        if (norm <= 1).any():
            inside.append(percent((room[norm <= 1] >= 0).mean()))
        figures.dots(ax, norm, most - room, place, label, rasterized=False)
    ax.axhspan(0, most, color=figures.BAND, zorder=0, label="at most one")
    figures.dotted(ax, x=1)
    figures.log_axes(ax, x=True, plain=True)
    ax.legend(loc="upper left")
    ax.set(
        ylim=(0, None),
        xlabel="norm of the target",
        ylabel="further candidates per entry",
        title=f"Up to norm 1, one is enough: {' and '.join(inside)}",
    )


def _constants(ax: Axes, panels: Panels) -> None:
    missed = 1 - panels.effects["constant"].value / panels.parameters["accuracy"]
    law = panels.parameters.assign(missed=missed).query("norm <= 1")
    enough = np.ceil(10 * max([1, *law["constant"][law["missed"] > 1]])) / 10
    figures.dots(ax, law["constant"], law["missed"], 0, "source")
    ax.axhspan(-1, 1, color=figures.BAND, zorder=0, label="promise kept")
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (1, 2, 3, 4, 8))
    ax.set_yscale("symlog", linthresh=1)
    ax.set(
        ylim=(-0.2, None),
        xlabel="constant C of the theorem's widths",
        ylabel="share of misses / ε",
        title=f"Promise kept from C = {enough:.2g} on (n = {len(law)})",
    )
    ax.legend(loc="upper right")


def _scales(ax: Axes, panels: Panels) -> None:
    """Errors of W_QK's entries over those at n_K^¼: medians and quartiles by norm."""
    norm = panels.parameters["norm"].to_numpy()
    error = panels["log_scaled"]
    for place, label in SCALES.items():
        over = np.exp(error[:, place] - error[:, 0])
        binned(ax, norm, over, figures.PALETTE[place], label=label)
    figures.dotted(ax, y=1)
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.legend(title="scale")
    ax.set(
        xlabel="norm of the target",
        ylabel="error of entries / at $n_K^{1/4}$",
        title=f"Xavier's scale fails large targets (n = {len(norm)})",
    )
