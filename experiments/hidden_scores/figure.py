"""How often memory does what is said of it, and by how much along its weight and n_eff/n."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answer, by_id
from sims.study.results import Results

from .statistic import effects, parameters

CLAIMS = {
    "hidden-collapse": "collapse is slower",
    "hidden-uniformity": "tokens less alike,\nstart from a copy",
    "hidden-uniformity-zero": "tokens less alike,\nstart from zero",
    "hidden-temperature": "more keys attended to",
}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; outcomes are those of the answers."""
    answered = by_id(answers)
    title = f"Hidden scores slow rank collapse: {answered['hidden-collapse'].spoken()}"
    drawing, axes = figures.mosaic(("ab", "cd"), height=5.8, title=title)
    effect = effects(results)
    drawn = parameters(results).assign(
        cosine=-effect["cosine"].value[:, 0],
        keys=100 * effect["keys"].value[:, 0],
        error=-100 * effect["error"].value[:, 0],
    )
    _outcomes(axes["a"], answered)
    _bins(axes["b"], drawn, "memory", "cosine", "start", ("copy", "zero"))
    axes["b"].set(
        xlabel="memory α′", ylabel="change of the mean cosine", title="Likeness of tokens"
    )
    _bins(axes["c"], drawn, "selectivity", "keys", "matrix", ("gaussian", "semidefinite"))
    axes["c"].set(
        xlabel="n_eff/n of the first layer",
        ylabel="change of n_eff/n (%)",
        title="Keys attended to after 3 to 12 layers",
    )
    _bins(axes["d"], drawn, "relevance", "error", "kernel", ("gaussian", "softmax"))
    axes["d"].set(
        xlabel="amplitude of the wave that only layer 1 sees",
        ylabel="change of the error (%)",
        title="Error of a second layer's head",
    )
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _outcomes(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Problems by outcome of each question."""
    outcome_bars(ax, outcomes_of_answers(answers, CLAIMS))
    ax.set_title("What memory does (± 1 %, cosines ± 0.01)")


def _bins(ax: Axes, drawn: pd.DataFrame, x: str, y: str, hue: str, kinds: Sequence[str]) -> None:
    """Medians and quartiles along x of the problems of each kind."""
    for ink, kind in zip(figures.PALETTE, kinds, strict=False):
        rows = drawn[drawn[hue] == kind]
        binned(ax, rows[x], rows[y], ink, label=f"{kind} (n = {len(rows)})")
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    ax.legend(title={"matrix": "form of scores", "start": "start from"}.get(hue, hue))
