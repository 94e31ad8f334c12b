"""Training together in four panels: outcomes, terms of the error, selectivity, subspaces."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned, outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answer, Answers
from sims.study.panels import Panels

from .statistic import TERMS

QUESTIONS = {
    "specialization": "further apart than alone",
    "specialization-gain": "errs less than identical",
    "specialization-gain-separate": "errs less than alone",
    "specialization-identical": "covariance > bias, identical",
    "specialization-separate": "covariance > bias, alone",
    "specialization-variance": "variance falls, identical",
}
CONTROLS = {"identical": "identical heads", "separate": "heads trained alone"}
NAMES = dict(zip(TERMS, ("squared bias", "heads' variance", "covariance"), strict=True))
INK = dict(zip(TERMS, figures.PALETTE, strict=False))


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; numbers are those of the answers, and of the changes of the error's terms."""
    drawing, axes = figures.mosaic(("ab", "cd"), height=4.6, title=finding(answers))
    averaged = (panels.parameters["maps"] == "averaged").to_numpy()
    outcome_bars(axes["a"], outcomes_of_answers(answers, QUESTIONS))
    axes["a"].set_title("Joint training wins, by bias")
    _waterfall(axes["b"], panels.arrays.isel(problem=averaged))
    _by_selectivity(axes["c"], panels.arrays.isel(problem=averaged))
    _subspaces(axes["d"], panels.arrays["subspaces"], averaged)
    return drawing


def finding(answers: Answers) -> str:
    """The figure's title, in the words that the two halves of the answer allow."""
    apart, identical, separate = (
        share_that_holds(answers[name])
        for name in ("specialization", "specialization-identical", "specialization-separate")
    )
    first = (
        "Joint training moves heads apart" if apart > 0.5 else "Joint training moves no heads apart"
    )
    if max(identical, separate) < 1 / 3:
        return f"{first}; bias falls more than covariance"
    if min(identical, separate) > 2 / 3:
        return f"{first}; covariance falls more than bias"
    return f"{first}; covariance or bias falls more"


def share_that_holds(answer: Answer) -> float:
    """Problems that hold over those that hold or fail; NaN of none."""
    counted = answer.shares()["all"].simulated
    if counted is None or not counted.parts["holds"] + counted.parts["fails"]:
        return float("nan")
    return counted.parts["holds"] / (counted.parts["holds"] + counted.parts["fails"])


def _waterfall(ax: Axes, layers: xr.Dataset) -> None:
    """Mean changes of the terms one below the other, down to that of the error, by control."""
    rows: list[int] = []
    for place, (control, name) in enumerate(CONTROLS.items()):
        values = 100 * layers["change"].sel(layer=control, term=[*TERMS, "mse"]).values
        change = values.mean(1)
        ends = np.append(change[:-1].cumsum(), change[-1])
        places = range(-5 * place, -5 * place - len(change), -1)
        ax.barh(
            places, change, left=ends - change, color=[*INK.values(), figures.GREY], height=0.75
        )
        bar = 1.96 * values.std(1, ddof=1) / values.shape[1] ** 0.5
        ax.errorbar(ends, places, xerr=bar, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5)
        ax.text(1, 0.75 - 5 * place, f"from {name}", transform=ax.get_yaxis_transform(), ha="right")
        rows += places
    ax.set_yticks(rows, [*NAMES.values(), "error"] * len(CONTROLS))
    figures.dotted(ax, x=0)
    ax.set(
        ylim=(-5 * len(CONTROLS) + 1, 1.4),
        xlabel="mean change / error (%)",
        title="Bias makes the gain",
    )


def _by_selectivity(ax: Axes, layers: xr.Dataset) -> None:
    """Median and quartiles of the terms' changes from identical heads, over n_eff/n."""
    selectivity = layers["selectivity"].sel(layer="joint").values
    for name in TERMS:
        values = 100 * layers["change"].sel(layer="identical", term=name).values
        binned(ax, selectivity, values, INK[name], label=NAMES[name])
    figures.dotted(ax)
    ax.set(
        ylim=(None, 25),
        xlabel=figures.SELECTIVITY,
        ylabel="change / error (%)",
        title="Selective heads gain more",
    )
    ax.legend(loc="upper left")


def _subspaces(ax: Axes, index: xr.DataArray, averaged: np.ndarray) -> None:
    """Index of the subspaces after joint training against training alone, a point per problem."""
    separate, joint = (index.sel(layer=name).values for name in ("separate", "joint"))
    kinds = {"averaged": averaged, "$W_V$ and $W_O$ trained": ~averaged}
    for place, (label, kind) in enumerate(kinds.items()):
        figures.dots(ax, separate[kind], joint[kind], place, f"{label} ({kind.sum()})", mfc="none")
    figures.diagonal(ax, 0, 1, "equal")
    ax.set(
        ylim=(-0.5, 1.05),
        yticks=(0, 0.5, 1),
        xlabel="index, each head trained alone",
        ylabel="index, trained together",
        title="Together, subspaces separate",
    )
    ax.legend(loc="lower right")
