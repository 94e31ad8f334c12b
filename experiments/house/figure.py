"""The house sample in four panels: sizes over selectivity, outcomes, what the fall is made of."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .reach import first_order_panel
from .sets import OWN_BEST
from .statistic import READINGS

QUESTIONS = {
    "hdi-monotone": "error falls, as drawn",
    "hdi-monotone-law": "error falls, equally good",
    "hdi": "variance falls, as drawn",
    "hdi-law": "variance falls, equally good",
    "extremes": "orthogonal keep less",
    "adding-heads": "doubling pays if random",
}
LABELS = ("as drawn", "equally good alone")
"""The readings in words."""
BINS = 6
"""Groups of problems along n_eff/n, of equal size."""
FINDING = "Random heads err less than nearly aligned ones, mostly by less bias"
NEUTRAL = "The error of random and of nearly aligned heads"
"""Titles: the first one where the medians of heads as drawn show it."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the first round of simulation."""
    shown, drawn = panels.arrays, panels.parameters
    medians = shown[["error", "bias", "variance"]].isel(reading=0, temperature=OWN_BEST).median()
    found = medians["error"] < 0 and medians["bias"] < 2 * min(float(medians["variance"]), 0.0)
    title = FINDING if found else NEUTRAL
    drawing, axes = figures.mosaic(("ab", "cd", "ee"), height=6.6, title=title)
    _sizes(axes["a"], shown, drawn)
    outcome_bars(axes["b"], outcomes_of_answers(answers, QUESTIONS))
    axes["b"].set_title("Variance falls more often than the error")
    _parts(axes["c"], shown, drawn)
    _ladder(axes["d"], shown)
    first_order_panel(axes["e"], shown, drawn)
    return drawing


def headline(panels: Panels) -> Figure:
    """The figure of the README: the change of the error over n_eff/n, in both readings."""
    drawing, axes = figures.panels(height=2.4)
    _sizes(axes[0, 0], panels.arrays, panels.parameters)
    count = len(panels.parameters)
    axes[0, 0].set_title(f"Random heads err less than nearly aligned ones ({count} problems)")
    return drawing


def _groups(drawn: pd.DataFrame) -> tuple[pd.Series, np.ndarray]:
    """Groups of problems of equal size along n_eff/n, and the median of each."""
    count = max(1, min(BINS, len(drawn) // 3))
    groups = pd.qcut(drawn["selectivity"], count, labels=False, duplicates="drop")
    return groups, drawn["selectivity"].groupby(groups).median().to_numpy()


def _sizes(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Change of the error at own best temperatures: bins of problems, and the model."""
    groups, x = _groups(drawn)
    sizes = shown["error"].isel(temperature=OWN_BEST)
    for place, label in enumerate(LABELS):
        values = pd.Series(100 * sizes.isel(reading=place).values, index=drawn.index)
        summary = values.groupby(groups).quantile(np.array([0.25, 0.5, 0.75])).unstack()
        ink = figures.PALETTE[place]
        beside = x * (0.97, 1.03)[place]
        middle = summary[0.5]
        bars = np.array([middle - summary[0.25], summary[0.75] - middle])
        ax.errorbar(beside, middle, bars, color=ink, fmt=figures.MARKERS[place], label=label)
        if "curve" in shown:
            at, low, median, high = shown["curve"].isel(reading=place).values
            ax.fill_between(at, low, high, color=ink, alpha=0.18, lw=0)
            ax.plot(at, median, color=ink)
    _selectivity_axis(ax)
    ax.plot([], [], color=figures.GREY, label="model")
    ax.set_ylim(bottom=1.7 * ax.get_ylim()[0])
    ax.set(ylabel="change of the error (%)", title="From aligned to random, the error falls")
    ax.legend(loc="lower right")


def _selectivity_axis(ax: Axes) -> None:
    figures.dotted(ax)
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
    ax.set_xlabel(figures.SELECTIVITY)


def _parts(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Median changes of bias and variance, mean head and diversity, of heads as drawn."""
    groups, x = _groups(drawn)
    sizes = shown.isel(reading=0, temperature=OWN_BEST)
    names = {
        "bias": "squared bias",
        "variance": "variance",
        "mean_head": "mean head's error",
        "diversity": "minus diversity",
    }
    for place, (name, label) in enumerate(names.items()):
        values = pd.Series(100 * sizes[name].values, index=drawn.index)
        median = values.groupby(groups).median()
        style = "-" if place < 2 else "--"
        ax.plot(x, median, color=figures.PALETTE[place], ls=style, marker="o", label=label)
    _selectivity_axis(ax)
    ax.set(ylabel="median change over the error (%)", title="Bias falls; variance hardly changes")
    ax.set_ylim(top=45)
    ax.legend(loc="upper left")


def _ladder(ax: Axes, shown: xr.Dataset) -> None:
    """Error of each rung over the first one's, median and quartiles, at own best temperatures."""
    x = np.array([5, 25, 50, 75, 100])
    for place in range(len(READINGS)):
        relative = 100 * shown["ladder"].isel(reading=place).values
        figures.quartiles(ax, x, relative, figures.PALETTE[place], marker="o", label=LABELS[place])
    ax.set(
        xlabel="index / random heads' (%)",
        ylabel="error / first rung's (%)",
        title=f"Every rung lowers the median error (n = {len(relative)})",
    )
    ax.legend(loc="lower left")
