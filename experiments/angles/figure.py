"""Noise correlations of sparse heads beside those of gaussian heads with one n_eff."""

from collections.abc import Sequence

import seaborn as sns
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import correlations, effects, parameters

RULES = ("epanechnikov", "biweight", "triweight", "sparsemax", "1.5-entmax")
WIDTHS = {1: "o", 2: "X"}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; a point is a problem."""
    drawing, axes = figures.mosaic(
        ("abc",),
        height=2.9,
        title="At one effective number of keys sparse heads have the Gaussian angle law",
    )
    frame, effect = parameters(results), effects(results)
    frame["gaussian"] = results.predictions["law"]["gaussian"].values
    frame["simulated"] = correlations(results)[..., 0].mean(1)
    frame["apart"], frame["product"] = (100 * effect[k].value for k in ("one curve", "product"))
    look = {
        "data": frame.rename(columns={"width": "$d_k$"}),
        "hue": "rule",
        "hue_order": RULES,
        "style": "$d_k$",
        "markers": WIDTHS,
        "s": 12,
        "linewidth": 0,
    }
    figures.theory(axes["a"], [0, 1], [0, 1], zorder=0)
    sns.scatterplot(x="gaussian", y="simulated", ax=axes["a"], **look)
    axes["a"].legend(loc="upper left", fontsize=figures.SMALL, handletextpad=0.1)
    axes["a"].set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="Gaussian heads, by the angle law",
        ylabel="noise correlation, simulated",
        title="Sparse heads are as correlated",
    )
    panels = {
        "b": ("apart", "roads", "less the Gaussian law (%)", "Within 5 % of the Gaussian law"),
        "c": ("product", "exact", "less a product over angles (%)", "Nearly a product over angles"),
    }
    for letter, (name, tolerance, label, title) in panels.items():
        ax, margin = axes[letter], 100 * house.TOLERANCES[tolerance]
        ax.axhspan(-margin, margin, color=figures.BAND, zorder=0)
        sns.scatterplot(x="first", y=name, ax=ax, legend=False, **look)
        ax.set(xlabel="first principal angle (degrees)", ylabel=label, title=title)
        figures.ticks(ax.xaxis, (30, 60, 90))
    figures.letters(axes[k] for k in "abc")
    return drawing
