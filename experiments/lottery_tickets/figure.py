"""Errors by width, items needed, constants of the theorem's widths, and scales of weights."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.study.results import Results

from .problems import ITEMS
from .statistic import PRINTED, growth, simulated

PRINTED_SIZE = 0.8
"""Error at no width of the printed fit."""
SCALES = {1: "√(6|w|√d)", 2: "Xavier's"}
"""Scales beside n_K^¼, by their places."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure, by the numbers that the answers count."""
    drawing, axes = figures.panels(
        2, 2, height=5.4, title="Errors of pruned heads fall by half with every item an entry"
    )
    _widths(axes[0, 0], results)
    _items(axes[0, 1], results)
    _constants(axes[1, 0], results)
    _scales(axes[1, 1], results)
    figures.letters(axes.flat)
    return drawing


def _widths(ax: Axes, results: Results) -> None:
    law, error = results.predictions["law"], simulated(results, "mean_output").mean(1)
    plane, width = law["dimension"].values == 2, 2 * ITEMS
    groups = {"norm up to 1": law["norm"].values <= 1, "norm above 1": law["norm"].values > 1}
    for ink, (name, rows) in zip(figures.PALETTE, groups.items(), strict=False):
        figures.quartiles(ax, width, error[plane & rows], ink, marker="o", ms=4, label=name)
    line = np.linspace(width[0], width[-1])
    figures.theory(ax, line, PRINTED_SIZE * np.exp(-PRINTED * line), label="printed fit")
    steep = 0.1 * 2.0 ** ((width[0] - line) / 2)
    figures.theory(ax, line, steep, ls="--", label="rate ln 2/d")
    figures.log_axes(ax, y=True)
    ax.legend(loc="lower left")
    ax.set(
        xlabel="width $n_K$ of the source, d = 2",
        ylabel="mean error of outputs",
        title="Within the assumption far faster than printed",
    )


def _items(ax: Axes, results: Results) -> None:
    norm = results.predictions["law"]["norm"].values
    names = {"entries": "doubling of the entries", "accuracies": "halving of ε"}
    for place, (name, label) in enumerate(names.items()):
        ink, marker = figures.PALETTE[place], figures.MARKERS[place]
        ax.plot(norm, growth(results)[name], marker, ms=3, ls="", color=ink, label=label)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    ax.axvline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True)
    ax.legend()
    title = "Up to norm 1 about an item or less for each"
    ax.set(xlabel="norm of the target", ylabel="items added", title=title)


def _constants(ax: Axes, results: Results) -> None:
    law, failed = results.predictions["law"], simulated(results, "failed").mean(1)[:, 1]
    rows = law["norm"].values <= 1
    ax.plot(law["constant"][rows], failed[rows] / law["accuracy"][rows], ".", ms=4)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (1, 2, 3, 4, 8))
    ax.set_yscale("symlog", linthresh=1)
    ax.set(
        ylim=(-0.2, None),
        xlabel="constant C of the theorem's widths",
        ylabel="share of misses / ε",
        title="A constant of 4 is enough",
    )


def _scales(ax: Axes, results: Results) -> None:
    norm = results.predictions["law"]["norm"].values
    error = simulated(results, "log_scaled").mean(1)
    for place, label in SCALES.items():
        ink, marker = figures.PALETTE[place], figures.MARKERS[place]
        over = np.exp(error[:, place] - error[:, 0])
        ax.plot(norm, over, marker, ms=3, ls="", color=ink, label=label)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True, y=True)
    ax.legend(title="scale")
    ax.set(
        xlabel="norm of the target",
        ylabel="error of entries / at $n_K^{1/4}$",
        title="Small targets want smaller weights",
    )
