"""Outputs against scores, rivals by norms, the price of calibration, and the estimator's error."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import CENTRED, EIGEN, KQ, K, parameters, rival, simulated

BINS = 6
"""Groups of problems along the balance of norms."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure, by the numbers that the answers count."""
    drawing, axes = figures.panels(
        2, 2, height=5.4, title="KQ-SVD is best for scores; outputs gain more if keys are centred"
    )
    _outputs(axes[0, 0], results)
    _balance(axes[0, 1], results)
    _calibration(axes[1, 0], results)
    _estimator(axes[1, 1], results)
    figures.letters(axes.flat)
    return drawing


def _outputs(ax: Axes, results: Results) -> None:
    """Output errors over that of the better rival: medians, middle halves, problems beyond."""
    output = simulated(results, "output")
    over = output.mean(1) / rival(output).mean(1)[:, None]
    shown = pd.DataFrame({"KQ-SVD": over[:, KQ], "of centred keys": over[:, CENTRED]})
    shown["mean"] = parameters(results)["key_mean"].values[: len(over)]
    long = shown.melt("mean", var_name="method", value_name="ratio")
    style = {"palette": figures.PALETTE[::3][:2], "fliersize": 2, "linewidth": 0.8}
    sns.boxplot(long, x="mean", y="ratio", hue="method", log_scale=(False, True), ax=ax, **style)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.ticks(ax.yaxis, (0.1, 0.2, 0.5, 1))
    ax.legend()
    ax.set(
        xlabel="mean of the keys (spreads)",
        ylabel="output error / better rival's",
        title="KQ-SVD spends rank on the keys' mean",
    )


def _balance(ax: Axes, results: Results) -> None:
    law, score = results.predictions["law"], simulated(results, "score").mean(1)
    balance, least = (law[k].values[: len(score)] for k in ("balance", "least"))
    order = np.array_split(np.argsort(balance), min(BINS, len(balance)))
    middle = [np.exp(np.log(balance[group]).mean()) for group in order]
    for place, name in ((K, "K-SVD"), (EIGEN, "Eigen"), (KQ, "KQ-SVD")):
        over = score[:, place] / least
        low, median, high = np.transpose([np.quantile(over[o], [0.25, 0.5, 0.75]) for o in order])
        ink = figures.PALETTE[place]
        ax.fill_between(middle, low, high, color=ink, alpha=0.2, lw=0)
        ax.plot(middle, median, marker=figures.MARKERS[place], ms=4, color=ink, label=name)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (0.25, 0.5, 1, 2, 4))
    figures.ticks(ax.yaxis, (1, 2, 4, 8))
    ax.legend()
    ax.set(
        xlabel="factor of keys against queries",
        ylabel="score error / least error",
        title="Where keys are large Eigen is K-SVD",
    )


def _calibration(ax: Axes, results: Results) -> None:
    law, score = results.predictions["law"], simulated(results, "score")[..., KQ].mean(1)
    least, cost = (law[k].values[: len(score)] for k in ("least", "cost"))
    ax.plot(cost, np.maximum(score / least - 1, 1e-9), ".", ms=4, color=figures.PALETTE[0])
    line = np.array([cost.min(), cost.max()])
    figures.theory(ax, line, line)
    figures.log_axes(ax, x=True, y=True)
    ax.set(
        xlabel="predicted excess / least error",
        ylabel="simulated excess / least error",
        title="Calibration costs what theory says",
    )


def _estimator(ax: Axes, results: Results) -> None:
    law = results.predictions["law"]
    problems = law.isel(number=law["in_range"].values.astype(bool))
    ratio = problems["mse"].values[:, 1] / problems["mse"].values[:, 0]
    ax.set_yscale("log")
    for ink, share in zip(figures.PALETTE, (0.125, 0.25, 0.5), strict=False):
        rows = problems["rank_share"].values == share
        ax.plot(
            problems["share"].values[rows], ratio[rows], ".", ms=4, color=ink, label=f"{share:g}"
        )
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.ticks(ax.yaxis, (0.8, 1, 1.25, 1.5, 2))
    ax.legend(title="rank / width")
    ax.set(
        xlabel="share of variance in the error",
        ylabel="error, compressed / whole",
        title="Estimators err more, mostly by little",
    )
