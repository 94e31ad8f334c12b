"""The ratio of variances against the number of heads, a curve an angle."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import grid, predicted, ratio


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    names = grid(results)
    angles, counts = (sorted(set(axis)) for axis in zip(*names, strict=True))
    drawing, axes = figures.panels(1, 1, width=figures.COLUMN, height=2.9)
    ax, heads = axes[0, 0], np.array(counts)
    ax.plot(heads, 1 / heads, color=figures.GREY, lw=0.9, ls=":", zorder=1)
    ax.annotate(
        "independent heads, $1/H$", (8, 1 / 8), xytext=(-6, -1), textcoords="offset points",
        ha="right", va="center", fontsize=6.5, color=figures.GREY,
    )  # fmt: skip
    for angle, color, marker in zip(angles, figures.PALETTE, figures.MARKERS, strict=False):
        points = [names[angle, h] for h in counts]
        curve = [predicted(results, point)[0] for point in points]
        simulated = [ratio(results, point) for point in points]
        values, errors = [e.value for e in simulated], [e.error for e in simulated]
        figures.theory(ax, heads, curve, color)
        figures.simulated(ax, heads, values, errors, color, marker)
        name = {0: "aligned, ", 90: "orthogonal, "}.get(int(angle), "") + f"{angle:.0f}°"
        ax.annotate(
            name, (heads[-1], curve[-1]), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=7, color=color,
        )  # fmt: skip
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.set_xticks(heads, [f"{h:g}" for h in heads])
    ax.set_xticks([], minor=True)
    ax.set_yticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
    ax.set_ylim(0.9 / heads[-1], 1.15)
    ax.set_xlim(0.93, heads[-1] * 2.6)
    ax.set(xlabel="number of heads $H$", ylabel="ensemble variance / head variance")
    return drawing
