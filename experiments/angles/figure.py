"""Noise correlations of sparse heads compared with those of Gaussian heads of equal n_eff."""

from matplotlib.figure import Figure

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answer, Answers
from sims.judgement.summaries import Gap
from sims.judgement.wording import percent_range
from sims.study.panels import Panels

RULES = ("epanechnikov", "biweight", "triweight", "sparsemax", "1.5-entmax")
PANELS = {
    "one curve": ("angle-one-curve", "Gaussian law"),
    "series": ("angle-series", "Angle series"),
}
"""Effect of a panel to the id of its question and the name of its reference."""
LOWEST = -16
"""Lower end of the gaps, in percent, which leaves room for the legend."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; a point is a problem."""
    often = {name: share_within(answer) for name, answer in answers.items()}
    first = often["angle-one-curve"]
    margin = 100 * conventions.TOLERANCES["roads"]
    title = f"1 − ρ of sparse and of Gaussian heads: within {margin:.0f} % in {first} of problems"
    drawing, axes = figures.panels(1, 2, height=2.5, sharey=True, title=title)
    law = panels.parameters
    for ax, (name, (question, reference)) in zip(axes.flat, PANELS.items(), strict=True):
        effect = panels.effects[name]
        frame = law.assign(gap=100 * effect.value, bar=effect.error)
        frame = frame[frame["sparse"] > 0].dropna(subset="gap")
        ax.axhspan(-margin, margin, color=figures.BAND, zorder=0, label=f"within {margin:.0f} %")
        bars = {"yerr": 200 * frame["bar"], "fmt": "none", "ecolor": "0.7", "elinewidth": 0.4}
        ax.errorbar(frame["selectivity"], frame["gap"], **bars)
        for place, rule in enumerate(RULES):
            rows = frame[frame["rule"] == rule]
            figures.dots(ax, rows["selectivity"], rows["gap"], place, rule, zorder=3)
        figures.dotted(ax)
        figures.log_axes(ax, x=True)
        figures.ticks(ax.xaxis, (0.1, 0.2, 0.5))
        ax.set(
            xlabel=figures.SELECTIVITY,
            title=f"{reference} holds in {often[question]} (n = {len(frame)})",
        )
    axes[0, 0].set(ylim=(LOWEST, None), ylabel="gap of 1 − ρ, simulated / reference (%)")
    axes[0, 1].legend(loc="lower left", ncols=2)
    return drawing


def share_within(answer: Answer) -> str:
    """Share of problems within the tolerance, in words."""
    near = answer.result.near if isinstance(answer.result, Gap) else None
    return percent_range(*near.bracket) if near else "too few problems"
