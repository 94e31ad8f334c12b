"""The house sample: sizes over selectivity, outcomes, what the fall is made of, first order."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .reach import first_order_panel
from .sets import COMMON, DRAWN, EQUAL, LADDER, OWN_BEST

QUESTIONS = {
    "random-aligned": "random beat aligned, as drawn",
    "random-aligned-law": "random beat aligned, equally good",
    "hdi-monotone": "error never rises, as drawn",
    "hdi-monotone-law": "error never rises, equally good",
    "hdi-law": "variance never rises, equally good",
    "adding-heads-law": "doubling gains more if random",
}
TITLE = "The error of random and of nearly aligned heads"


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the first round of simulation."""
    shown, drawn = panels.arrays, panels.parameters
    drawing, axes = figures.mosaic(("ab", "cd", "ee"), height=6.9, title=TITLE)
    _sizes(axes["a"], shown, drawn)
    outcome_bars(axes["b"], outcomes_of_answers(answers, QUESTIONS))
    axes["b"].set_title("How often diversity helps")
    _parts(axes["c"], shown, drawn)
    _ladder(axes["d"], shown, drawn)
    first_order_panel(axes["e"], shown, drawn)
    return drawing


def headline(panels: Panels) -> Figure:
    """The figure of the README: the change of the error over n_eff/n, in both readings."""
    drawing, axes = figures.panels(height=2.4)
    _sizes(axes[0, 0], panels.arrays, panels.parameters)
    count = len(panels.parameters)
    axes[0, 0].set_title(f"Random heads err less than nearly aligned ones ({count} problems)")
    return drawing


def _sizes(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Change of the error in both readings, and from one random set to another, along n_eff/n."""
    lines = {
        "as drawn": (shown["error"][:, DRAWN, OWN_BEST], figures.PALETTE[0]),
        "equally good": (shown["error"][:, EQUAL, COMMON], figures.PALETTE[1]),
        "two random sets": (shown["yardstick"][:, DRAWN, OWN_BEST], figures.GREY),
    }
    for label, (change, ink) in lines.items():
        binned(ax, drawn["selectivity"], 100 * change, ink, label=label)
    _selectivity_axis(ax)
    ax.set(ylabel="change of the error (%)", title="From aligned to random, the error falls")
    ax.legend(loc="lower right")


def _selectivity_axis(ax: Axes) -> None:
    figures.dotted(ax)
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
    ax.set_xlabel(figures.SELECTIVITY)


def _parts(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Median changes of bias and variance, mean head and diversity, of heads as drawn."""
    sizes = shown.isel(reading=DRAWN, temperature=OWN_BEST)
    names = {
        "bias": "squared bias",
        "variance": "variance",
        "mean_head": "mean head's error",
        "diversity": "minus diversity",
    }
    for (name, label), ink in zip(names.items(), figures.PALETTE, strict=False):
        binned(ax, drawn["selectivity"], 100 * sizes[name], ink, label=label)
    _selectivity_axis(ax)
    ax.set(ylabel="change over the error (%)", title="Parts of the change, as drawn")
    ax.legend(loc="lower right")


def _ladder(ax: Axes, shown: xr.Dataset, drawn: pd.DataFrame) -> None:
    """Error of each rung over the first one's by H, median and quartiles, equally good."""
    errors = 100 * shown["ladder"].values
    x = 100 * np.array(LADDER)
    known = np.isfinite(errors).all(1)
    for place, heads in enumerate(sorted(drawn["heads"].unique())):
        rows = errors[known & (drawn["heads"] == heads).to_numpy()]
        if len(rows):
            label = f"H = {heads} (n = {len(rows)})"
            figures.quartiles(ax, x, rows, figures.PALETTE[place], marker="o", label=label)
    ax.set(
        xlabel="index / random heads' (%)",
        ylabel="error / first rung's (%)",
        title="More heads gain more (equally good)",
    )
    ax.legend(loc="lower left")
