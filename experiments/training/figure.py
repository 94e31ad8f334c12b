"""Training together in three panels: outcomes, selectivity, terms of the error in two steps."""

import numpy as np
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
    "specialization-identical": "covariance > bias, of ceiling",
    "specialization-reinvested": "saved variance re-invested",
}
STEPS = {
    "identical, common": "from identical to diverse heads at one $n_{eff}/n$",
    "sharper": "then to the temperatures they learnt",
}
INK = dict(zip(TERMS, figures.PALETTE, strict=False))


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the changes of the error's terms."""
    drawing, axes = figures.mosaic(("ab", "cc"), height=4.6, title=finding(answers))
    layers = skilled(panels, "averaged")
    outcome_bars(axes["a"], outcomes_of_answers(answers, QUESTIONS))
    axes["a"].set_title("Joint training wins")
    if layers.sizes["problem"]:
        _by_selectivity(axes["b"], layers)
        _waterfall(axes["c"], layers)
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


def _waterfall(ax: Axes, layers: xr.Dataset) -> None:
    """Mean changes of the terms one below the other, down to that of the error, by step."""
    names = [*TERMS, "mse"]
    rows: list[int] = []
    for place, (pair, title) in enumerate(STEPS.items()):
        values = -100 * np.array([falls(layers, pair, name).mean(1) for name in names])
        means = values.mean(1)
        ends = np.append(means[:-1].cumsum(), means[-1])
        places = range(-5 * place, -5 * place - len(means), -1)
        ax.barh(places, means, left=ends - means, color=[*INK.values(), figures.GREY], height=0.75)
        bar = 1.96 * values.std(1, ddof=1) / values.shape[1] ** 0.5
        ax.errorbar(ends, places, xerr=bar, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5)
        ax.text(1, 0.75 - 5 * place, title, transform=ax.get_yaxis_transform(), ha="right")
        rows += places
    ax.set_yticks(rows, [CHANGES[name] for name in names] * len(STEPS))
    figures.dotted(ax, x=0)
    ax.set(
        ylim=(-5 * len(STEPS) + 1, 1.4),
        xlabel="mean change / error before (%)",
        title="Sharper heads spend variance on bias",
    )


def _by_selectivity(ax: Axes, layers: xr.Dataset) -> None:
    """Median and quartiles of the terms' changes from identical heads, over n_eff/n."""
    selectivity = layers["selectivity"].sel(layer="joint").mean("replicate").values
    for name in TERMS:
        values = -100 * falls(layers, "identical", name).mean(1)
        binned(ax, selectivity, values, INK[name], label=CHANGES[name])
    figures.dotted(ax)
    ax.set(
        ylim=(None, 35),
        xlabel=figures.SELECTIVITY,
        ylabel="change / error (%)",
        title="Selective heads gain more",
    )
    ax.legend(loc="upper left")
