"""How often memory does what is said of it, and by how much along its weight and n_eff/n."""

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned_by, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

CLAIMS = {
    "hidden-collapse": "collapse is slower",
    "hidden-uniformity": "tokens less alike, from copy",
    "hidden-uniformity-zero": "tokens less alike, from zero",
    "hidden-temperature": "more keys attended to",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    title = f"Hidden scores slow rank collapse: {answers['hidden-collapse'].spoken()}"
    drawing, axes = figures.mosaic(("ab", "cd"), height=4.0, title=title)
    outcome_bars(axes["a"], outcomes_of_answers(answers, CLAIMS))
    axes["a"].set_title("Tokens seldom become less alike")
    effect = panels.effects
    drawn = panels.parameters.assign(
        cosine=-effect["cosine"].value[:, 0],
        keys=100 * effect["keys"].value[:, 0],
        error=-100 * effect["error"].value[:, 0],
    )
    binned_by(axes["b"], drawn, "memory", "cosine", "start", "start from")
    axes["b"].set(
        xlabel="memory α′",
        ylabel="change of the mean cosine",
        title="From zero, long memory makes tokens more alike",
    )
    binned_by(axes["c"], drawn, "selectivity", "keys", "matrix", "form of scores")
    axes["c"].set(
        ylim=(None, 95),
        xlabel=r"$n_\mathrm{eff}/n$ of the first layer",
        ylabel=r"change of $n_\mathrm{eff}/n$ (%)",
        title="Attention widens under Gaussian forms alone",
    )
    binned_by(axes["d"], drawn, "relevance", "error", "kernel", "kernel")
    axes["d"].set(
        ylim=(None, 130),
        xlabel="amplitude of layer 1's wave",
        ylabel="change of the error (%)",
        title="Where layer 1 sees little, memory harms",
    )
    for name in "bcd":
        figures.dotted(axes[name])
    return drawing
