"""Residuals by layer, and outcomes for depth and for what is lost of heads."""

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import outcome_bars, outcomes_of_answers, quartiles_by
from sims.judgement.answers import Answers
from sims.study.panels import Panels

LOWEST = -12.0
"""log₁₀ ρ that the first panel ends at."""
DEPTH = {
    "collapse-order": r"attention: $\rho < 10^{-6}$",
    "residual-depth": "residual stream keeps ρ",
    "residual-depth-scaled": "scaled branches keep ρ",
}
HEADS = {
    "mlp-no-remedy": "summed heads lose 5 %",
    "mlp-no-remedy-projection": "projected heads lose 5 %",
    "gated-output": "gates help, known tokens",
    "gated-output-free": "gates help, free heads",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    subject = "Without positions, attention alone"
    title = answers["collapse-order"].sentence(subject, "loses rank within six layers")
    drawing, axes = figures.mosaic(("aa", "bc"), height=4.2, title=title)
    law = panels.parameters
    path = panels["path"]
    kinds = law["block"].mask(law["collapsing"] == 1, "attention, mask or bias")
    quartiles_by(axes["a"], range(path.shape[1]), path, kinds)
    axes["a"].set_ylim(LOWEST, 0.2)
    residual = r"$\log_{10}$ of relative residual $\rho$"
    figures.describe(axes["a"], "layer", residual, "Attention alone collapses fastest")
    of_depth = outcomes_of_answers(answers, DEPTH)
    outcome_bars(axes["b"], of_depth, title="Scaled branches keep tokens apart")
    of_heads = outcomes_of_answers(answers, HEADS)
    outcome_bars(axes["c"], of_heads, title="Gates help heads on known tokens")
    return drawing
