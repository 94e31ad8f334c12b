"""Training together in four panels: how often, the covariance's part, three readings, subspaces."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.judgement.effects import Effects
from sims.study.results import Results

from .statistic import CONTROLS, READINGS, effects, measured, parameters

CLAIMS = {
    "specialization": "subspaces further apart than one by one",
    "specialization-outputs": "outputs less correlated than one by one",
    "specialization-gain-separate": "smaller error than one by one",
    "specialization-gain": "smaller error than identical",
    "specialization-variance": "less variance than identical",
    "specialization-separate": "covariance > ½ of gain over one by one",
    "specialization-identical": "covariance > ½ of gain over identical",
    "specialization-ambiguity": "ambiguity > ½ of gain over identical",
}
NAMES = {"identical": "over identical heads", "separate": "over one by one", "start": "over start"}


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; numbers are those of the answers, and of the effects."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.4,
        title="Heads part because they are trained together; it lowers bias, and not variance",
    )
    effect, drawn = effects(results), parameters(results)
    averaged = (drawn["maps"] == "averaged").to_numpy()
    layers = measured(results)
    _claims(axes["a"], {answer.id: answer for answer in answers})
    identical = layers["identical"]
    variance = identical["variance"].mean(1) / identical["mse"].mean(1)
    _covariance(axes["b"], effect["covariance over identical"], variance, drawn, averaged)
    _readings(axes["c"], effect, averaged)
    separate, joint = (layers[name]["subspaces"].mean(1) for name in ("separate", "joint"))
    _subspaces(axes["d"], separate, joint, averaged)
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _claims(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Brackets of the shares of problems, with their intervals outward."""
    for place, name in enumerate(CLAIMS):
        if (share := answers[name].shares()["all"].simulated) is None:
            continue
        for ends, width in ((share.interval, 1), (share.bracket, 5)):
            ax.plot(
                [100 * end for end in ends],
                [-place] * 2,
                color=figures.PALETTE[0],
                lw=width,
                solid_capstyle="butt",
            )
        ax.plot(50 * sum(share.bracket), -place, "o", color=figures.PALETTE[0], ms=4)
    ax.set_yticks([-k for k in range(len(CLAIMS))], list(CLAIMS.values()))
    figures.words(ax)
    ax.set(
        xlim=(-2, 102),
        xlabel="problems in which it holds (%)",
        title="Trained together, heads part and gain",
    )


def _covariance(
    ax: Axes, share: Effects, variance: np.ndarray, drawn: pd.DataFrame, averaged: np.ndarray
) -> None:
    """The covariance's share of the gain over identical heads, a point a problem."""
    for heads, color, marker in zip((2, 4), figures.PALETTE, figures.MARKERS, strict=False):
        rows = averaged & (drawn["heads"] == heads).to_numpy()
        figures.simulated(
            ax,
            100 * variance[rows],
            100 * share.value[rows],
            100 * share.error[rows],
            color,
            marker,
            label=f"{heads} heads",
        )
    ax.axhline(50, color=figures.GREY, lw=0.8, ls=":")
    ax.set(
        xlabel="variance in the error of identical heads (%)",
        ylabel="covariance's share of the gain (%)",
        ylim=(0, 150),
        title="Two heads: half. Four: a quarter",
    )
    ax.legend()


def _readings(ax: Axes, effect: Mapping[str, Effects], averaged: np.ndarray) -> None:
    """Mean share by each reading of each gain, with its 95 % interval over problems."""
    for shift, (control, color, marker) in enumerate(
        zip(CONTROLS, figures.PALETTE, figures.MARKERS, strict=False)
    ):
        values = pd.DataFrame({r: effect[f"{r} over {control}"].value[averaged] for r in READINGS})
        ax.errorbar(
            values.mean(),
            [-k - 0.2 * (shift - 1) for k in range(len(READINGS))],
            xerr=1.96 * values.sem(),
            ls="",
            marker=marker,
            color=color,
            label=NAMES[control],
        )
    ax.set_yticks([-k for k in range(len(READINGS))], list(READINGS))
    for x in (0.5, 1):
        ax.axvline(x, color=figures.GREY, lw=0.8, ls=":")
    ax.set(xlabel="mean share of the gain", title="Errors decorrelate by more than is gained")
    ax.legend()


def _subspaces(ax: Axes, separate: np.ndarray, joint: np.ndarray, averaged: np.ndarray) -> None:
    """Index of the subspaces after joint against separate training, a point a problem."""
    for kind, label, color, marker in zip(
        (averaged, ~averaged),
        ("averaged", "$W_V$ and $W_O$ trained"),
        figures.PALETTE,
        figures.MARKERS,
        strict=False,
    ):
        ax.plot(separate[kind], joint[kind], ls="", marker=marker, ms=4, color=color, label=label)
    ax.plot([0, 1], [0, 1], color=figures.GREY, lw=0.8, ls=":")
    ax.set(
        xlabel="index of subspaces, trained one by one",
        ylabel="index of subspaces, trained together",
        title="Together, averaged heads part",
    )
    ax.legend(loc="lower right")
