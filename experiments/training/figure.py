"""Training together in three panels: outcomes, selectivity, terms of the error in two steps."""

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answer, Answers
from sims.study.panels import Panels

from .statistic import CHANGES, TERMS, falls, skilled

QUESTIONS = {
    "specialization": "further apart than alone",
    "specialization-gain": "errs less than identical",
    "specialization-identical": "covariance falls more (of ceiling)",
    "specialization-reinvested": "saved variance re-invested",
}
STEPS = {
    "identical, common": "identical to diverse heads at one $n_{eff}/n$",
    "sharper": "then to the temperatures they learnt",
}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the changes of the error's terms."""
    drawing, axes = figures.mosaic(("ab", "cc"), height=4.6, title=finding(answers))
    layers = skilled(panels, "averaged")
    rows = outcomes_of_answers(answers, QUESTIONS)
    outcome_bars(axes["a"], rows, title="Jointly trained heads err less")
    if layers.sizes["problem"]:
        _by_selectivity(axes["b"], layers)
        _steps(axes["c"], layers)
    return drawing


def finding(answers: Answers) -> str:
    """The figure's title, in the words that the two halves of the answer allow."""
    apart = usually_holds(answers["specialization"])
    reinvested = usually_holds(answers["specialization-reinvested"])
    first = f"Joint training moves {'' if apart else 'few '}heads apart"
    rest = "is" if reinvested else "is seldom"
    return f"{first}; the variance that this saves {rest} re-invested in bias"


def usually_holds(answer: Answer) -> bool:
    """True if more than two thirds of all problems hold."""
    counted = answer.shares()["all"].simulated
    return counted is not None and counted.parts["holds"] > 2 / 3


def _steps(ax: Axes, layers: xr.Dataset) -> None:
    """Mean changes of the terms and of the error, from identical heads, by step."""
    parts = {}
    for pair, title in STEPS.items():
        for name in (*TERMS, "mse"):
            parts[title, CHANGES[name]] = -100 * falls(layers, pair, name).mean(1)
    frame = pd.DataFrame(parts)
    bars = 1.96 * frame.sem().unstack(0, sort=False)
    means = frame.mean().unstack(0, sort=False)
    means.plot.barh(ax=ax, xerr=bars, error_kw={"elinewidth": 0.7})
    ax.invert_yaxis()
    figures.dotted(ax, x=0)
    figures.describe(
        ax, "mean change / error before (%)", "", "Sharper heads add variance and lower bias"
    )


def _by_selectivity(ax: Axes, layers: xr.Dataset) -> None:
    """Median and quartiles of the terms' changes from identical heads, over n_eff/n."""
    selectivity = layers["selectivity"].sel(layer="joint").mean("replicate").values
    for ink, name in zip(figures.PALETTE, TERMS, strict=False):
        values = -100 * falls(layers, "identical", name).mean(1)
        binned(ax, selectivity, values, ink, label=CHANGES[name])
    figures.dotted(ax)
    figures.describe(ax, figures.SELECTIVITY, "change / error (%)", "Selective heads gain more")
