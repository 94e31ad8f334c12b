"""Residuals by layer, outcomes, powers of depth, and what is lost of heads."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement import house
from sims.judgement.answers import Answer, by_id
from sims.study.batches import stack_batches
from sims.study.results import Results

from .problems import ALONE
from .statistic import exponents, parameters

LOWEST = -12.0
"""log₁₀ ρ that the first panel ends at."""
QUESTIONS = {
    "collapse-order": r"attention alone: $\rho < 10^{-6}$",
    "collapse-positions": "the same, mask or bias",
    "residual-depth": "residual stream keeps ρ",
    "residual-depth-scaled": r"the same, branches$/\sqrt{L}$",
    "mlp-no-remedy": "5 % lost of summed heads",
    "mlp-no-remedy-projection": "5 % lost of projected heads",
    "gated-output": "gates help attended heads",
    "gated-output-free": "gates help free heads",
}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; outcomes are those of the answers."""
    answered = by_id(answers)
    word = answered["collapse-order"].word
    title = f"Attention alone loses rank within six layers: {word} without positions"
    drawing, axes = figures.mosaic(("ab", "cd"), height=6.2, title=title)
    law = parameters(results)
    alone = law["block"] == ALONE
    path = stack_batches(results, "path").mean(1) / np.log(10)
    power = exponents(stack_batches(results, "ends")).mean(1)
    _paths(axes["a"], path, law, alone)
    _outcomes(axes["b"], answered)
    _powers(axes["c"], law[~alone].assign(power=power[~alone]))
    _lost(axes["d"], law.assign(gated=results.predictions["law"]["lost"].values[:, 1]))
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _paths(ax: Axes, path: np.ndarray, law: pd.DataFrame, alone: pd.Series) -> None:
    """log₁₀ ρ by layer: median and middle half of the problems of a kind."""
    whole = law["branches"] == "whole"
    kinds = {
        "attention alone": law["collapsing"] == 0,
        "with a mask or bias": law["collapsing"] == 1,
        "residual stream": ~alone & whole,
        r"branches$/\sqrt{L}$": ~alone & ~whole,
    }
    for place, (label, chosen) in enumerate(kinds.items()):
        look = {"marker": figures.MARKERS[place], "ms": 3, "label": f"{label} (n = {chosen.sum()})"}
        layers = np.arange(path.shape[1])
        figures.quartiles(ax, layers, path[chosen], figures.PALETTE[place], **look)
    ax.set(
        xlim=(0, len(path[0]) - 1),
        ylim=(LOWEST, 0.2),
        xlabel="layer",
        ylabel=r"$\log_{10}$ of the relative residual $\rho$",
        title="Relative residual by layer",
    )
    ax.legend(loc="lower right")


def _outcomes(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Problems by outcome of each question."""
    outcome_bars(ax, outcomes_of_answers(answers, QUESTIONS))
    ax.set_title("Outcomes")


def _powers(ax: Axes, law: pd.DataFrame) -> None:
    """Power of depth by which ρ falls in a residual stream, by the variance of its branches."""
    for ink, kind in zip(figures.PALETTE, ("whole", "scaled"), strict=False):
        rows = law[law["branches"] == kind]
        binned(ax, rows["variance"], rows["power"], ink, label=f"{kind} (n = {len(rows)})")
    ax.axhline(house.TOLERANCES["slope"], color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, x=True)
    ax.set_yscale("symlog", linthresh=0.3)
    figures.ticks(ax.yaxis, (-0.1, 0.1, 0.3, 1, 3, 10))
    ax.legend(title="branches", loc="upper left")
    ax.set(
        ylim=(-0.15, 40),
        xlabel=r"variance $\sigma^2$ of a branch",
        ylabel=r"power $p$ in $\rho \propto L^{-p}$",
        title="Residual stream, new weights in every layer",
    )


def _lost(ax: Axes, law: pd.DataFrame) -> None:
    """Share of the heads' variance that is lost without gates and with, by theory."""
    for ink, content in zip(figures.PALETTE, ("free", "attended"), strict=False):
        for output, face in (("plain sum", ink), ("projection", "white")):
            rows = law[(law["content"] == content) & (law["output"] == output)]
            x, y = 100 * rows["lost"], 100 * rows["gated"]
            label = f"{content}, {output} (n = {len(rows)})"
            ax.plot(x, y, "o", ms=3.5, ls="", color=ink, mfc=face, label=label)
    ax.plot([0, 100], [0, 100], color=figures.GREY, lw=0.8, ls=":")
    ax.legend(title="heads", loc="upper left")
    ax.set(
        xlabel="lost without gates (% of the heads' variance)",
        ylabel="lost with gates (%)",
        title="Heads recovered from their mixed output",
    )
