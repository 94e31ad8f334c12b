"""Outputs by the keys' mean, rivals by norms, the price of calibration, and the estimator."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned
from sims.judgement.answers import Answers
from sims.judgement.wording import percent_range
from sims.study.batches import stack_batches
from sims.study.results import Results

from .statistic import CENTRED, EIGEN, KQ, K, parameters


def figure(results: Results, answers: Answers) -> Figure:
    """The figure, by the numbers that the answers count."""
    shares = {name: answer.shares() for name, answer in answers.items()}
    often = {}
    for name in ("kq-heldout", "kq-output"):
        counted = shares[name]["all"].simulated
        often[name] = percent_range(*counted.bracket) if counted else "none"
    title = (
        f"KQ-SVD has the best scores in {often['kq-heldout']} of problems, the best outputs in "
        f"{often['kq-output']}"
    )
    drawing, axes = figures.panels(2, 2, height=4.2, title=title)
    _outputs(axes[0, 0], results)
    _balance(axes[0, 1], results)
    _calibration(axes[1, 0], results)
    _estimator(axes[1, 1], results)
    return drawing


def _outputs(ax: Axes, results: Results) -> None:
    """Output errors over that of the better rival: medians, middle halves, problems beyond."""
    output = stack_batches(results, "output").mean(1)
    over = output / output[:, K : EIGEN + 1].min(1, keepdims=True)
    shown = pd.DataFrame({"KQ-SVD": over[:, KQ], "of centred keys": over[:, CENTRED]})
    shown["mean"] = parameters(results)["key_mean"].values[: len(over)]
    counts = shown["mean"].value_counts().sort_index()
    long = shown.melt("mean", var_name="method", value_name="ratio")
    style = {"palette": figures.PALETTE[::3][:2], "fliersize": 1, "linewidth": 0.6}
    sns.boxplot(long, x="mean", y="ratio", hue="method", log_scale=(False, True), ax=ax, **style)
    figures.dotted(ax, y=1)
    figures.ticks(ax.yaxis, (0.1, 0.2, 0.5, 1))
    ax.set_xticks(range(len(counts)), [f"{mean}\nn = {count}" for mean, count in counts.items()])
    ax.legend(loc="upper right")
    ax.set(
        ylim=(None, 15),
        xlabel="mean of the keys (spreads)",
        ylabel="output error / better rival's",
        title="Centring pays if keys have a mean",
    )


def _balance(ax: Axes, results: Results) -> None:
    """Score errors over the least one, by the factor on keys; queries have its inverse."""
    law = results.predictions["law"]
    score = stack_batches(results, "score").mean(1)
    over = score / law["least"].values[: len(score), None]
    balance = law["balance"].values[: len(score)]
    for place, name in ((K, "K-SVD"), (EIGEN, "Eigen"), (KQ, "KQ-SVD")):
        binned(ax, balance, over[:, place], figures.PALETTE[place], label=name)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (0.25, 0.5, 1, 2, 4))
    figures.ticks(ax.yaxis, (1, 2, 4, 8))
    ax.legend()
    ax.set(
        xlabel="factor of keys against queries",
        ylabel="score error / least error",
        title=f"KQ-SVD errs least on new scores (n = {len(score)})",
    )


def _calibration(ax: Axes, results: Results) -> None:
    """Excess over the least error by simulation / by the law: ratio plot with ± 2 MCSE."""
    law = results.predictions["law"]
    score = stack_batches(results, "score")[..., KQ]
    least = law["least"].values[: len(score)]
    cost = law["cost"].values[: len(score)]
    ratio = (score / least[:, None] - 1) / cost[:, None]
    error = ratio.std(1, ddof=1) / ratio.shape[1] ** 0.5
    figures.simulated(ax, cost, ratio.mean(1), error, elinewidth=0.4, capsize=0, label="problem")
    figures.theory(ax, [cost.min(), cost.max()], [1, 1], figures.PALETTE[1], label="as predicted")
    figures.log_axes(ax, x=True)
    ax.set(
        ylim=(0, 2.5),
        xlabel="predicted excess / least error",
        ylabel="simulated / predicted excess",
        title=f"Theory predicts what calibration costs (n = {len(cost)})",
    )
    ax.legend(loc="upper left")


def _estimator(ax: Axes, results: Results) -> None:
    law = results.predictions["law"]
    problems = law.isel(number=law["in_range"].values.astype(bool))
    rise = 100 * (problems["mse"].values[:, 1] / problems["mse"].values[:, 0] - 1)
    for ink, share in zip(figures.PALETTE, (0.125, 0.25, 0.5), strict=False):
        rows = problems["rank_share"].values == share
        order = np.sort(rise[rows])
        rank = 100 * (np.arange(len(order)) + 0.5) / max(len(order), 1)
        ax.plot(order, rank, color=ink, label=f"{share:g} ({len(order)})")
    ax.axvspan(-1, 1, color=figures.BAND, zorder=0, label="at most 1 %")
    figures.dotted(ax, x=0)
    ax.set_xscale("symlog", linthresh=1)
    figures.ticks(ax.xaxis, (-10, -1, 0, 1, 10, 100))
    ax.set_xlim(-20, 1e4)
    ax.legend(title="rank / width (n)", loc="lower right")
    ax.set(
        xlabel="change of the error (%)",
        ylabel="problems below (%)",
        title="By theory, compression may help or harm",
    )
