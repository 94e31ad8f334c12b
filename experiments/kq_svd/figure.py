"""Outputs by the keys' mean, rivals by norms, the price of calibration, and the estimator."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.judgement.wording import percent_range
from sims.study.batches import stack_batches
from sims.study.results import Results

from .statistic import CENTRED, EIGEN, KQ, K, parameters

BINS = 6
"""Groups of problems along the balance of norms, of equal size."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure, by the numbers that the answers count."""
    shares = {answer.id: answer.shares() for answer in answers}
    often = {}
    for name in ("kq-heldout", "kq-output"):
        counted = shares[name]["all"].simulated
        often[name] = percent_range(*counted.bracket) if counted else "none"
    title = (
        f"KQ-SVD has the best scores in {often['kq-heldout']} of problems, the best outputs in "
        f"{often['kq-output']}"
    )
    drawing, axes = figures.panels(2, 2, height=5.4, title=title)
    _outputs(axes[0, 0], results)
    _balance(axes[0, 1], results)
    _calibration(axes[1, 0], results)
    _estimator(axes[1, 1], results)
    figures.letters(axes.flat)
    return drawing


def _outputs(ax: Axes, results: Results) -> None:
    """Output errors over that of the better rival: medians, middle halves, problems beyond."""
    output = stack_batches(results, "output").mean(1)
    over = output / output[:, K : EIGEN + 1].min(1, keepdims=True)
    shown = pd.DataFrame({"KQ-SVD": over[:, KQ], "of centred keys": over[:, CENTRED]})
    shown["mean"] = parameters(results)["key_mean"].values[: len(over)]
    counts = shown["mean"].value_counts().sort_index()
    long = shown.melt("mean", var_name="method", value_name="ratio")
    style = {"palette": figures.PALETTE[::3][:2], "fliersize": 2, "linewidth": 0.8}
    sns.boxplot(long, x="mean", y="ratio", hue="method", log_scale=(False, True), ax=ax, **style)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.ticks(ax.yaxis, (0.1, 0.2, 0.5, 1))
    ax.set_xticks(range(len(counts)), [f"{mean}\nn = {count}" for mean, count in counts.items()])
    ax.legend()
    ax.set(
        xlabel="mean of the keys (spreads)",
        ylabel="output error / better rival's",
        title="Errors of outputs, plain and centred",
    )


def _balance(ax: Axes, results: Results) -> None:
    law = results.predictions["law"]
    score = stack_batches(results, "score").mean(1)
    balance = law["balance"].values[: len(score)]
    over = score / law["least"].values[: len(score), None]
    groups = np.array_split(np.argsort(balance), min(BINS, len(balance)))
    middle = [np.exp(np.log(balance[group]).mean()) for group in groups]
    for place, name in ((K, "K-SVD"), (EIGEN, "Eigen"), (KQ, "KQ-SVD")):
        quartiles = [np.quantile(over[group, place], [0.25, 0.5, 0.75]) for group in groups]
        low, median, high = np.transpose(quartiles)
        ink = figures.PALETTE[place]
        ax.fill_between(middle, low, high, color=ink, alpha=0.2, lw=0)
        ax.plot(middle, median, color=ink, marker=figures.MARKERS[place], ms=4, label=name)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (0.25, 0.5, 1, 2, 4))
    figures.ticks(ax.yaxis, (1, 2, 4, 8))
    ax.legend()
    ax.set(
        xlabel="factor of keys against queries",
        ylabel="score error / least error",
        title=f"Errors of new tokens' scores, n = {len(score)}",
    )


def _calibration(ax: Axes, results: Results) -> None:
    """Excess over the least error by simulation / by the law: ratio plot with ± 2 MCSE."""
    law = results.predictions["law"]
    score = stack_batches(results, "score")[..., KQ]
    least = law["least"].values[: len(score)]
    cost = law["cost"].values[: len(score)]
    ratio = (score / least[:, None] - 1) / cost[:, None]
    error = ratio.std(1, ddof=1) / ratio.shape[1] ** 0.5
    figures.simulated(ax, cost, ratio.mean(1), error, elinewidth=0.4, capsize=0)
    figures.theory(ax, [cost.min(), cost.max()], [1, 1], color=figures.PALETTE[1])
    figures.log_axes(ax, x=True)
    ax.set(
        ylim=(0, 2.5),
        xlabel="predicted excess / least error",
        ylabel="simulated / predicted excess",
        title="What calibration costs, over the law",
    )


def _estimator(ax: Axes, results: Results) -> None:
    law = results.predictions["law"]
    problems = law.isel(number=law["in_range"].values.astype(bool))
    rise = 100 * (problems["mse"].values[:, 1] / problems["mse"].values[:, 0] - 1)
    for ink, share in zip(figures.PALETTE, (0.125, 0.25, 0.5), strict=False):
        rows = problems["rank_share"].values == share
        order = np.sort(rise[rows])
        rank = 100 * (np.arange(len(order)) + 0.5) / max(len(order), 1)
        ax.plot(order, rank, color=ink, label=f"{share:g}, n = {len(order)}")
    ax.axvspan(-1, 1, color=figures.BAND, zorder=0)
    ax.axvline(0, color=figures.GREY, lw=0.8, ls=":")
    ax.set_xscale("symlog", linthresh=1)
    figures.ticks(ax.xaxis, (-10, -1, 0, 1, 10, 100))
    ax.legend(title="rank / width")
    ax.set(
        xlabel="change of the error by compression (%)",
        ylabel="problems below (%)",
        title="The heads as an estimator, by theory",
    )
