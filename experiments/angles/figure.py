"""Noise correlations of sparse heads compared with those of Gaussian heads of equal n_eff."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

RULES = ("epanechnikov", "biweight", "triweight", "sparsemax", "1.5-entmax")
PANELS = {
    "one curve": ("angle-one-curve", "Gaussian law"),
    "series": ("angle-series", "Angle series"),
}
"""Effect of a panel to the id of its question and the name of its reference."""
LOWEST, HIGHEST = -16, 16
"""Ends of the gaps, in percent, which leave room for the legend."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; a point is a problem."""
    first = answers["angle-one-curve"].how_often()
    margin = 100 * conventions.TOLERANCES["roads"]
    title = f"1 − ρ of sparse and of Gaussian heads: within {margin:.0f} % in {first} of problems"
    drawing, axes = figures.mosaic(("ab", "cc"), height=4.6, title=title)
    law = panels.parameters
    for letter, (name, (question, reference)) in zip("ab", PANELS.items(), strict=True):
        ax = axes[letter]
        effect = panels.effects[name]
        frame = law.assign(gap=100 * effect.value, bar=effect.error)
        frame = frame[frame["sparse"] > 0].dropna(subset="gap")
        ax.axhspan(-margin, margin, color=figures.BAND, zorder=0, label=f"within {margin:.0f} %")
        bars = 200 * frame["bar"]
        ax.errorbar(frame["selectivity"], frame["gap"], bars, fmt="", ls="", color="0.7", lw=0.4)
        for place, rule in enumerate(RULES):
            rows = frame[frame["rule"] == rule]
            figures.dots(ax, rows["selectivity"], rows["gap"], place, rule, zorder=3)
        figures.dotted(ax)
        figures.log_axes(ax, x=True)
        figures.ticks(ax.xaxis, (0.1, 0.2, 0.5))
        ax.set(
            xlabel=figures.SELECTIVITY,
            ylim=(LOWEST, HIGHEST),
            title=f"{reference} holds in {answers[question].how_often()} (n = {len(frame)})",
        )
    axes["a"].set(ylabel="gap of 1 − ρ, simulated / reference (%)")
    axes["b"].legend(loc="lower left", ncols=2)
    gaps = 100 * panels.effects["reach"].value
    _reach(axes["c"], law.assign(gap=gaps), answers["angle-reach"].how_often())
    return drawing


def _reach(ax: Axes, law: pd.DataFrame, often: str) -> None:
    """Gap of the angle law from exact theory over effective keys, by width and kernel."""
    margin = 100 * conventions.TOLERANCES["roads"]
    ax.axhspan(-margin, margin, color=figures.BAND, zorder=0)
    for place, (width, wide) in enumerate(law.groupby("pair_width")):
        for kernel, rows in wide.groupby("pair_kernel"):
            face = "white" if kernel == "softmax" else None
            label = f"width {width}, {kernel}"
            figures.dots(ax, rows["pair_attended"], rows["gap"], place, label, mfc=face)
    figures.dotted(ax)
    figures.log_axes(ax, x=True)
    ax.set(
        xlabel=r"effective keys, $n_\mathrm{eff}$",
        ylabel="gap of 1 − ρ, exact / law (%)",
        title=f"At widths 1 to 8 the angle law holds in {often} (n = {len(law)})",
    )
    ax.legend(loc="lower right", ncols=2)
