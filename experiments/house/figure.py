"""The house sample in four panels: sizes over selectivity, outcomes, what the fall is made of."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import outcome_bars, outcomes_of_answers
from sims.judgement.answers import Answer, by_id
from sims.study.results import Results

from .sets import OWN_BEST
from .sizes import SizeModel
from .statistic import READINGS, Sample, changes_over_the_ladder, ladder_errors, parameters
from .tables import size_models

QUESTIONS = {
    "hdi-monotone": "error, rung by rung,\ngiven heads",
    "hdi-monotone-law": "error, rung by rung,\nequally good heads",
    "hdi": "variance kept, rung by rung,\ngiven heads",
    "hdi-law": "variance kept, rung by rung,\nequally good heads",
    "extremes": "orthogonal keep less\nthan random, given",
    "adding-heads": "doubling pays more\nif random, given",
}
LABELS = ("heads as given", "heads equally good alone")
"""The readings in words."""
BINS = 6
"""Groups of problems along n_eff/n, of equal size."""
FINDING = "Random heads err less than nearly aligned ones, mostly by less bias"
NEUTRAL = "The error of random and of nearly aligned heads"
"""Titles: the first one where the medians of given heads show it."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; numbers are those of the answers, and of the first round of simulation."""
    answered = by_id(answers)
    sample, drawn = Sample(results), parameters(results)
    medians = changes_over_the_ladder(sample).isel(reading=0, temperature=OWN_BEST).median()
    found = medians["error"] < 0 and medians["bias"] < 2 * min(float(medians["variance"]), 0.0)
    title = FINDING if found else NEUTRAL
    drawing, axes = figures.mosaic(("ab", "cd"), height=7.2, title=title)
    drawn = drawn.iloc[: len(sample.problems)]
    _sizes(axes["a"], sample, drawn, size_models(sample, drawn))
    outcome_bars(axes["b"], outcomes_of_answers(answered, QUESTIONS))
    axes["b"].set_title("Outcomes, held against 1 %")
    _parts(axes["c"], sample, drawn)
    _ladder(axes["d"], sample, drawn)
    figures.letters(axes.values())
    return drawing


def headline(results: Results) -> Figure:
    """The figure of the README: the change of the error over n_eff/n, in both readings."""
    drawing, axes = figures.panels(width=1.35 * figures.COLUMN, height=3.1)
    sample = Sample(results)
    drawn = parameters(results).iloc[: len(sample.problems)]
    _sizes(axes[0, 0], sample, drawn, size_models(sample, drawn))
    title = f"Random heads err less than nearly aligned ones ({len(drawn)} problems)"
    axes[0, 0].set_title(title, loc="left", fontweight="bold")
    return drawing


def _groups(drawn: pd.DataFrame) -> tuple[pd.Series, np.ndarray]:
    """Groups of problems of equal size along n_eff/n, and the median of each."""
    count = max(1, min(BINS, len(drawn) // 3))
    groups = pd.qcut(drawn["selectivity"], count, labels=False, duplicates="drop")
    return groups, drawn["selectivity"].groupby(groups).median().to_numpy()


def _sizes(ax: Axes, sample: Sample, drawn: pd.DataFrame, models: Sequence[SizeModel]) -> None:
    """Change of the error at own best temperatures: bins of problems, and the model."""
    groups, x = _groups(drawn)
    sizes = changes_over_the_ladder(sample)["error"].isel(temperature=OWN_BEST)
    for place, label in enumerate(LABELS):
        values = pd.Series(100 * sizes.isel(reading=place).values, index=drawn.index)
        summary = values.groupby(groups).quantile(np.array([0.25, 0.5, 0.75])).unstack()
        ink = figures.PALETTE[place]
        beside = x * (0.97, 1.03)[place]
        middle = summary[0.5]
        bars = np.array([middle - summary[0.25], summary[0.75] - middle])
        ax.errorbar(beside, middle, bars, color=ink, fmt=figures.MARKERS[place], ms=4, label=label)
        if models:
            curve = models[place]
            at = np.exp(curve.x)
            ax.fill_between(at, curve.curve[0], curve.curve[2], color=ink, alpha=0.18, lw=0)
            ax.plot(at, curve.curve[1], color=ink, lw=1.5)
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    _selectivity_axis(ax)
    ax.set(
        ylabel="change of the error (%)",
        title="From nearly aligned to random heads",
    )
    ax.legend(loc="lower right")


def _selectivity_axis(ax: Axes) -> None:
    figures.log_axes(ax, x=True, plain=True)
    figures.ticks(ax.xaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
    ax.set_xlabel("effective keys of a head over all keys, n_eff/n")


def _parts(ax: Axes, sample: Sample, drawn: pd.DataFrame) -> None:
    """Median changes of bias and variance, mean head and diversity, of given heads."""
    groups, x = _groups(drawn)
    sizes = changes_over_the_ladder(sample).isel(reading=0, temperature=1)
    names = {
        "bias": "squared bias",
        "variance": "variance",
        "mean_head": "mean error of a head",
        "diversity": "minus the diversity of heads",
    }
    for place, (name, label) in enumerate(names.items()):
        values = pd.Series(100 * sizes[name].values, index=drawn.index)
        median = values.groupby(groups).median()
        style = "-" if place < 2 else "--"
        ax.plot(x, median, color=figures.PALETTE[place], ls=style, marker="o", ms=3, label=label)
    ax.axhline(0, color=figures.GREY, lw=0.8, ls=":")
    _selectivity_axis(ax)
    ax.set(
        ylabel="change over the error (%), median",
        title="The same change as two sums",
    )
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def _ladder(ax: Axes, sample: Sample, drawn: pd.DataFrame) -> None:
    """Error of each rung over the first one's, median and quartiles, at own best temperatures."""
    errors = ladder_errors(sample)
    x = np.array([5, 25, 50, 75, 100])
    for place in range(len(READINGS)):
        relative = 100 * errors.isel(reading=place, temperature=1).values
        low, median, high = np.quantile(relative, (0.25, 0.5, 0.75), axis=0)
        ink = figures.PALETTE[place]
        ax.fill_between(x, low, high, color=ink, alpha=0.18, lw=0)
        label = LABELS[place]
        ax.plot(x, median, color=ink, lw=2, marker="o", ms=4, label=label)
    ax.set(
        xlabel="index of the set over that of random heads (%)",
        ylabel="error over the first rung's (%)",
        title=f"Along the ladder, n = {len(drawn)} problems",
    )
    ax.legend(loc="best")
