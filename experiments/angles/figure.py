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
    "series": ("roads", "The rule's angle series"),
}
"""Effect of a panel to its tolerance and title."""
LOWEST = -11
"""Lower end of the gaps, in percent, which leaves room for the legend."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; a point is a problem."""
    curve = next(answer.result for answer in answers if answer.id == "angle-one-curve")
    near = curve.near if isinstance(curve, Gap) else None
    often = percent_range(*near.bracket) if near else "none"
    title = f"Sparse and Gaussian heads share noise alike, to 5 % of 1 − ρ, in {often} of problems"
    drawing, axes = figures.panels(1, 2, height=3.1, title=title)
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
        ax.set_ylim(bottom=min(LOWEST, ax.get_ylim()[0]))
        figures.log_axes(ax, x=True, plain=True)
        figures.ticks(ax.xaxis, (0.1, 0.2, 0.5))
        ax.set(
            xlabel="effective keys over all keys, $n_\\mathrm{eff}/n$",
            ylabel="gap of 1 − ρ, simulated / law − 1 (%)",
            title=f"{panel}, n = {known.sum()}",
        )
    axes[0, 0].legend(loc="lower left", ncols=3, fontsize=figures.SMALL, handletextpad=0.1)
    figures.letters(axes.flat)
    return drawing
