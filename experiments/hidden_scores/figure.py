"""How often memory does what is said of it, and the likeness of tokens along its weight."""

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned_by, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

CLAIMS = {
    "hidden-collapse": "collapse is slower",
    "hidden-uniformity": "tokens less alike, from a copy",
    "hidden-uniformity-zero": "tokens less alike, from zero",
    "hidden-temperature": "more keys attended to",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; outcomes are those of the answers."""
    title = answers["hidden-collapse"].sentence("Hidden scores", "slow rank collapse")
    drawing, (left, right) = figures.pairs(2, title=title, height=2.4)
    rows = outcomes_of_answers(answers, CLAIMS)
    outcome_bars(left, rows, title="Tokens seldom become less alike")
    frame = panels.parameters.assign(cosine=-panels.effects["cosine"].value[:, 0])
    binned_by(right, frame, "memory", "cosine", "start")
    figures.dotted(right)
    finding = "From zero, long memory makes tokens more alike"
    figures.describe(
        right, "memory α′", "change of the mean cosine", finding, legend="memory starts as"
    )
    return drawing
