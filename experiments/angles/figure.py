"""Noise correlations of sparse heads beside the angle law, and where this law reaches."""

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import dots_by
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; a point is a problem."""
    sparse = answers["angle-one-curve"].how_often()
    margin = 100 * conventions.TOLERANCES["methods"]
    title = (
        f"1 − ρ of sparse and Gaussian heads agrees within {margin:.0f} % in {sparse} of problems"
    )
    drawing, axes = figures.mosaic(("a", "b"), title=title, height=4.6)
    law = panels.parameters
    for ax in axes.values():
        ax.axhspan(-margin, margin, color=figures.BAND, zorder=0, label=f"within {margin:.0f} %")
    frame = law.assign(gap=100 * panels.effects["one curve"].value).query("sparse > 0")
    dots_by(axes["a"], frame, "selectivity", "gap", "rule")
    axes["a"].set_ylim(-4 * margin, 4 * margin)
    figures.describe(
        axes["a"],
        figures.SELECTIVITY,
        "gap of 1 − ρ, simulated / law (%)",
        f"The law of Gaussian heads holds in {sparse}",
        log="x",
    )
    frame = law.assign(gap=100 * panels.effects["reach"].value)
    frame["heads"] = frame["pair_kernel"] + ", width " + frame["pair_width"].astype(str)
    dots_by(axes["b"], frame, "pair_attended", "gap", "heads")
    figures.describe(
        axes["b"],
        r"effective keys, $n_\mathrm{eff}$",
        "gap of 1 − ρ, exact / law (%)",
        f"At widths 1 to 8 it holds in {answers['angle-reach'].how_often()}",
        log="x",
    )
    return drawing
