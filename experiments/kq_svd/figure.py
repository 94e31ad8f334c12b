"""Outputs by the keys' mean, rivals by norms, the price of calibration, and the estimator."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import binned
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .statistic import EIGEN, KQ, K


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure, by the numbers that the answers count."""
    scores, outputs = answers["kq-heldout"].how_often(), answers["kq-output"].how_often()
    title = f"KQ-SVD has the best scores in {scores} of problems, the best outputs in {outputs}"
    drawing, axes = figures.panels(2, 2, height=4.2, title=title)
    _outputs(axes[0, 0], panels)
    _balance(axes[0, 1], panels)
    _calibration(axes[1, 0], panels)
    _estimator(axes[1, 1], panels)
    return drawing


def _outputs(ax: Axes, panels: Panels) -> None:
    """Output errors over that of the better rival, whose keys are treated alike: boxes."""
    over = panels["output"]
    shown = pd.DataFrame(over, columns=["keys as they are", "keys centred"])
    shown["mean"] = panels.parameters["key_mean"][: len(over)]
    counts = shown["mean"].value_counts().sort_index()
    style = {"palette": figures.PALETTE[::3][:2], "fliersize": 1, "linewidth": 0.6}
    figures.log_axes(ax, y=True)
    sns.boxplot(shown.melt("mean"), x="mean", y="value", hue="variable", ax=ax, **style)
    figures.dotted(ax, y=1)
    figures.ticks(ax.yaxis, (0.1, 0.2, 0.5, 1))
    ax.set_xticks(range(len(counts)), [f"{mean}\nn = {count}" for mean, count in counts.items()])
    ax.legend(loc="upper right")
    ax.set(
        ylim=(None, 15),
        xlabel="mean of the keys (spreads)",
        ylabel="output error / better rival's",
        title="Centring all methods removes most failures",
    )


def _balance(ax: Axes, panels: Panels) -> None:
    """Score errors over the least one, by the factor on keys; queries have its inverse."""
    over = panels["score"]
    balance = panels.parameters["balance"][: len(over)]
    for place, name in ((K, "K-SVD"), (EIGEN, "Eigen"), (KQ, "KQ-SVD")):
        binned(ax, balance, over[:, place], figures.PALETTE[place], label=name)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, (0.25, 0.5, 1, 2, 4))
    figures.ticks(ax.yaxis, (1, 2, 4, 8))
    ax.legend()
    ax.set(
        xlabel="factor of keys against queries",
        ylabel="score error / least error",
        title=f"KQ-SVD errs least on new scores (n = {len(over)})",
    )


def _calibration(ax: Axes, panels: Panels) -> None:
    """Excess over the least error by simulation / by the law: ratio plot with ± 2 MCSE."""
    ratio = panels["excess"]
    cost = panels.parameters["cost"].to_numpy()[: len(ratio)]
    figures.simulated(
        ax, cost, ratio, panels["excess_error"], elinewidth=0.4, capsize=0, label="problem"
    )
    figures.dotted(ax, y=1, label="as predicted")
    figures.log_axes(ax, x=True)
    ax.set(
        ylim=(0, 2.5),
        xlabel="predicted excess / least error",
        ylabel="simulated / predicted excess",
        title=f"Theory predicts what calibration costs (n = {len(cost)})",
    )
    ax.legend(loc="upper left")


def _estimator(ax: Axes, panels: Panels) -> None:
    rise = 100 * np.asarray(panels.effects["estimator"].predicted)
    frame = panels.parameters.assign(rise=rise).query("in_range == 1")
    for ink, (share, rows) in zip(figures.PALETTE, frame.groupby("rank_share"), strict=False):
        label = f"{share} ({len(rows)})"
        sns.ecdfplot(rows, x="rise", stat="percent", ax=ax, color=ink, label=label)
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
