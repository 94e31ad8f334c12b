"""The error by levels, and corrections of blocks."""

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned_by, quartiles_by
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .problems import KEPT


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; levels are shown up to half of those that the shortest target has."""
    falls = "falls geometrically if the weights do"
    title = answers["scale-decay"].sentence("The error of few levels", falls)
    title += f"; for a power law, {answers['scale-decay-power'].word}"
    drawing, (left, right) = figures.pairs(2, title=title, height=2.6)
    law = panels.parameters
    few = law["levels"].min() // 2
    error = panels["predicted"][:, :few] ** 0.5
    quartiles_by(left, KEPT[:few], error / error[:, :1], law["target"])
    figures.describe(
        left,
        "levels kept, L",
        "error / error of one level",
        "Levels help if weights are ordered",
        log="y",
        legend="target's weights",
    )
    corrected = 1 - panels.effects["correction"].value[:, 0]
    frame = law[: len(corrected)].assign(corrected=corrected)
    binned_by(right, frame, "spread", "corrected", "keys")
    figures.dotted(right, y=1)
    figures.describe(
        right,
        "standard deviation in a block",
        "error, corrected / not",
        "Correcting wide blocks harms",
        log="xy",
        legend="keys",
    )
    return drawing
