"""The house sample: sizes over selectivity, outcomes, and the reach of first order."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .reach import first_order_panel
from .sets import COMMON, DRAWN, EQUAL, OWN_BEST

QUESTIONS = {
    "random-aligned": "random err less, as drawn",
    "random-aligned-law": "random err less, equally good",
    "hdi-monotone": "error never rises, as drawn",
    "hdi-monotone-law": "error never rises, equally good",
}
TITLE = "The error of random and of nearly aligned heads"


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the first round of simulation."""
    drawing, axes = figures.mosaic(("ab", "cc"), height=5.0, title=TITLE)
    _sizes(axes["a"], panels, "From aligned to random, the error falls")
    rows = outcomes_of_answers(answers, QUESTIONS)
    outcome_bars(axes["b"], rows, title="How often diversity helps")
    first_order_panel(axes["c"], panels.arrays, panels.parameters)
    return drawing


def headline(panels: Panels) -> Figure:
    """The figure of the README: the change of the error over n_eff/n, in both readings."""
    drawing, axes = figures.panels(height=2.6)
    title = "Diverse heads gain most at a small share of effective keys"
    _sizes(axes[0, 0], panels, title)
    return drawing


def _sizes(ax: Axes, panels: Panels, title: str) -> None:
    """Change of the error in both readings, and from one random set to another, along n_eff/n."""
    shown = panels.arrays
    lines = {
        "as drawn": (shown["error"][:, DRAWN, OWN_BEST], figures.PALETTE[0]),
        "equally good": (shown["error"][:, EQUAL, COMMON], figures.PALETTE[1]),
        "two random sets": (shown["yardstick"][:, DRAWN, OWN_BEST], figures.GREY),
    }
    for label, (change, ink) in lines.items():
        binned(ax, panels.parameters["selectivity"], 100 * change, ink, label=label)
    figures.dotted(ax)
    figures.describe(ax, figures.SELECTIVITY, "change of the error (%)", title, log="x")
