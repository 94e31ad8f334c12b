"""Residuals by layer, outcomes, powers of depth, and what is lost of heads."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned_by, outcome_bars, outcomes_of_answers
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .problems import ALONE

LOWEST = -12.0
"""log₁₀ ρ that the first panel ends at."""
QUESTIONS = {
    "collapse-order": r"attention: $\rho < 10^{-6}$",
    "collapse-positions": "the same, mask or bias",
    "residual-depth": "residual stream keeps ρ",
    "residual-depth-scaled": r"the same, branches$/\sqrt{L}$",
    "mlp-no-remedy": "summed heads lose 5 %",
    "mlp-no-remedy-projection": "projected heads lose 5 %",
    "gated-output": "gates help attended heads",
    "gated-output-free": "gates help free heads",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    word = answers["collapse-order"].word
    title = f"Attention alone loses rank within six layers: {word} without positions"
    drawing, axes = figures.mosaic(("ac", "bd"), height=5.0, heights=(1, 1.5), title=title)
    law = panels.parameters
    alone = law["block"] == ALONE
    _paths(axes["a"], panels["path"], law, alone)
    outcome_bars(axes["b"], outcomes_of_answers(answers, QUESTIONS))
    gates = answers["gated-output"].word
    axes["b"].set_title(f"Gates help heads that attend: {gates}")
    _powers(axes["c"], law[~alone].assign(power=panels["power"][~alone]))
    _lost(axes["d"], law.assign(gated=panels["gated"]))
    return drawing


def _paths(ax: Axes, path: np.ndarray, law: pd.DataFrame, alone: pd.Series) -> None:
    """log₁₀ ρ by layer: median and middle half of the problems of a kind."""
    whole = law["branches"] == "whole"
    kinds = {
        "alone": law["collapsing"] == 0,
        "mask or bias": law["collapsing"] == 1,
        "residual": ~alone & whole,
        r"residual$/\sqrt{L}$": ~alone & ~whole,
    }
    layers = range(path.shape[1])
    for place, (label, chosen) in enumerate(kinds.items()):
        look = {"marker": figures.MARKERS[place], "label": f"{label} ({chosen.sum()})"}
        figures.quartiles(ax, layers, path[chosen], figures.PALETTE[place], **look)
    ax.set(
        xlim=(0, layers[-1]),
        xticks=layers[::3],
        ylim=(LOWEST, 0.2),
        xlabel="layer",
        ylabel=r"$\log_{10}$ of relative residual $\rho$",
        title="Attention alone collapses fastest",
    )
    ax.legend(title="attention (n)", loc="lower right", bbox_to_anchor=(1.1, 0))


def _powers(ax: Axes, law: pd.DataFrame) -> None:
    """Power of depth by which ρ falls in a residual stream, by the variance of its branches."""
    figures.dotted(ax, y=conventions.TOLERANCES["slope"], label="tolerance")
    binned_by(ax, law, "variance", "power", "branches", "branches")
    figures.log_axes(ax, x=True)
    ax.set_yscale("symlog", linthresh=0.3)
    figures.ticks(ax.xaxis, (0.3, 1, 3))
    figures.ticks(ax.yaxis, (-0.1, 0.1, 0.3, 1, 3, 10))
    ax.set(
        ylim=(-0.15, 100),
        xlabel=r"variance $\sigma^2$ of a branch",
        ylabel=r"power $p$ in $\rho \propto L^{-p}$",
        title="Scaled branches keep tokens apart",
    )


def _lost(ax: Axes, law: pd.DataFrame) -> None:
    """Share of the heads' variance that is lost without gates and with, by theory."""
    for place, (kind, rows) in enumerate(law.groupby(["content", "output"])):
        label = f"{kind[0]}, {kind[1]} ({len(rows)})"
        figures.dots(ax, 100 * rows["lost"], 100 * rows["gated"], place, label)
    figures.diagonal(ax, 0, 100, "equal")
    ax.legend(title="heads (n)", loc="upper left")
    ax.set(
        ylim=(-3, 165),
        yticks=(0, 50, 100),
        xlabel="lost without gates (% of variance)",
        ylabel="lost with gates (%)",
        title="Gates recover attending heads, not free ones",
    )
