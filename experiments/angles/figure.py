"""Noise correlations of sparse heads compared with those of Gaussian heads of equal n_eff."""

from collections.abc import Sequence

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.judgement.summaries import Gap
from sims.judgement.wording import percent_range
from sims.study.results import Results

from .statistic import effects, parameters

RULES = ("epanechnikov", "biweight", "triweight", "sparsemax", "1.5-entmax")
EFFECTS = {
    "one curve": ("roads", "Sparse against Gaussian heads"),
    "series": ("roads", "The angle series (50 effective keys or more)"),
}
"""Effect of a panel to its tolerance and title."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; a point is a problem."""
    curve = next(answer.result for answer in answers if answer.id == "angle-one-curve")
    near = curve.near if isinstance(curve, Gap) else None
    often = percent_range(*near.bracket) if near else "none"
    title = f"At equal n_eff, 1 − ρ of sparse heads is within 5 % of Gaussian heads' in {often}"
    drawing, axes = figures.panels(1, 2, height=3.1, title=f"{title} of problems")
    frame = parameters(results)
    made = effects(results)
    for ax, (name, (tolerance, panel)) in zip(axes.flat, EFFECTS.items(), strict=True):
        effect = made[name]
        margin = 100 * house.TOLERANCES[tolerance]
        ax.axhspan(-margin, margin, color=figures.BAND, zorder=0)
        ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
        known = np.isfinite(effect.value)
        shown = frame[known]
        x = shown["selectivity"]
        bars = 200 * effect.error[known]
        ax.errorbar(x, 100 * effect.value[known], bars, fmt="none", ecolor="0.7", elinewidth=0.5)
        sns.scatterplot(
            x=x,
            y=100 * effect.value[known],
            hue=shown["rule"],
            hue_order=RULES,
            style=shown["width"].rename("$d_k$"),
            markers={1: "o", 2: "X"},
            s=14,
            linewidth=0,
            ax=ax,
            legend=name == "one curve",
            zorder=3,
        )
        figures.log_axes(ax, x=True, plain=True)
        figures.ticks(ax.xaxis, (0.1, 0.2, 0.5))
        ax.set(
            xlabel="effective keys over all keys, n_eff/n",
            ylabel="gap of 1 − ρ, simulated / law − 1 (%)",
            title=f"{panel}, n = {known.sum()}",
        )
    figures.letters(axes.flat)
    return drawing
