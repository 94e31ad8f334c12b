"""Residuals by layer, powers of depth, shares of heads that are lost, and both roads."""

from collections.abc import Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .problems import ALONE, BIAS, MASK, NONE
from .statistic import effects, exponents, parameters, stacked

LOWEST = -12.0
"""log₁₀ ρ that the first panel ends at."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; a point is a problem."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"), height=5.8, title="TITLE"
    )
    _paths(axes["a"], results)
    _powers(axes["b"], results)
    _lost(axes["c"], results)
    _roads(axes["d"], results)
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _paths(ax: Axes, results: Results) -> None:
    """log₁₀ ρ by layer: median and middle half of the problems of a kind."""
    law = parameters(results)
    path = stacked(results, "path").mean(1) / np.log(10)
    law = law.iloc[: len(path)]
    alone = law["block"] == ALONE
    kinds = {
        "attention alone": alone & (law["positions"] == NONE),
        "mask or distance bias": alone & (law["positions"] != NONE),
        "residual stream": ~alone & (law["branches"] == "whole"),
        "branches scaled by $1/\\sqrt{L}$": ~alone & (law["branches"] == "scaled"),
    }
    for ink, marker, (label, chosen) in zip(
        figures.PALETTE, figures.MARKERS, kinds.items(), strict=False
    ):
        low, middle, high = np.quantile(path[chosen], [0.25, 0.5, 0.75], axis=0)
        shown = middle > LOWEST
        at = np.arange(len(middle))
        ax.fill_between(at, np.maximum(low, 2 * LOWEST), high, color=ink, alpha=0.2, lw=0)
        ax.plot(at[shown], middle[shown], marker=marker, ms=3, color=ink, label=label)
    ax.set(
        xlim=(0, 12),
        ylim=(LOWEST, 0),
        xlabel="layer",
        ylabel="$\\log_{10}$ of the relative residual ρ",
        title="Only attention without positions is cubic",
    )
    ax.legend(loc="lower right")


def _powers(ax: Axes, results: Results) -> None:
    """Power of depth by which ρ falls in a residual stream, by the variance of its branches."""
    powers = exponents(stacked(results, "ends")).mean(1)
    law = parameters(results).iloc[: len(powers)].assign(power=powers)
    own = law[law["block"] != ALONE]
    sns.scatterplot(
        own, x="variance", y="power", hue="placed", style="branches", s=18, ax=ax,
        hue_order=["nowhere", "before", "after"], style_order=["whole", "scaled"],
        palette=list(figures.PALETTE[:3]),
    )
    ax.axhline(house.TOLERANCES["slope"], color=figures.GREY, lw=0.8, ls=":")
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=0.1)
    figures.ticks(ax.yaxis, (0, 0.1, 1, 10))
    figures.ticks(ax.xaxis, (0.1, 0.3, 1, 3))
    ax.set(xlabel="variance σ² of a branch", ylabel="$p$ of ρ ~ $L^{-p}$", title="P")


def _lost(ax: Axes, results: Results) -> None:
    """Share of the heads' variance that is lost without gates and with."""
    law = parameters(results)
    lost = results.predictions["law"]["lost"].values
    sns.scatterplot(
        law.assign(without=100 * lost[:, 0], gated=100 * lost[:, 1]), x="without", y="gated",
        hue="content", style="output", s=18, ax=ax,
        hue_order=["free", "attended"], palette=list(figures.PALETTE[:2]),
    )
    ax.plot([0, 100], [0, 100], color=figures.GREY, lw=0.8, ls=":")
    ax.set(xlabel="lost without gates (% of heads' variance)", ylabel="lost with gates (%)", title="P")


def _roads(ax: Axes, results: Results) -> None:
    """Fall of log ρ a layer under a mask or bias, simulated against theory."""
    law, ends = parameters(results), stacked(results, "ends").mean(1)
    rate = results.predictions["law"]["rate"].values
    law = law.iloc[: len(ends)]
    fell = (ends[:, 1] - ends[:, 0]) / law["depth"].to_numpy()
    for ink, marker, kind in zip(figures.PALETTE, figures.MARKERS, (BIAS, MASK), strict=False):
        own = ((law["positions"] == kind) & (law["block"] == ALONE)).to_numpy()
        ax.plot(-rate[: len(fell)][own], -fell[own], marker, ms=3, ls="", color=ink, label=kind)
    ends = np.array(ax.get_xlim())
    figures.theory(ax, ends, ends)
    ax.legend()
    ax.set(xlabel="$-\\log|λ_2|$", ylabel="fall of log ρ a layer", title="P")
