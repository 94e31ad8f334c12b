"""How often less correlation pays, by how much, and with which mechanism."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import effects, parameters

KINDS = ("heads", "trees", "ants")
CLAIMS = {"unification": "M agents", "unification-many": "ever more agents"}
RATIO = "error of the diverse pool / plain pool"


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; shares are those of the answers, points are problems."""
    drawing, axes = figures.mosaic(
        ("ab", "cc"),
        height=6.2,
        title="Less correlated agents make a better pool, unless each pays too much for it",
    )
    effect, fall = effects(results), parameters(results)
    fall["decorrelation"] = effect["decorrelation"].value
    fall["ratio"] = 1 - effect["fall"].value
    _shares(axes["a"], {answer.id: answer for answer in answers})
    _falls(axes["b"], fall)
    _mechanisms(axes["c"], fall)
    figures.letters(axes[k] for k in "abc")
    return drawing


def _shares(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Share of problems in which the error falls, of all and by kind: middle and interval."""
    for shift, (name, label) in zip((0.14, -0.14), CLAIMS.items(), strict=True):
        parts = answers[name].shares()
        shown = {kind: result.simulated for kind, result in parts.items() if result.simulated}
        if not shown:
            continue
        middle = np.array([100 * np.mean(share.bracket) for share in shown.values()])
        low, high = 100 * np.transpose([share.interval for share in shown.values()])
        places = [shift - ("all", *KINDS).index(kind) for kind in shown]
        bars = np.stack([middle - low, high - middle])
        ax.errorbar(middle, places, xerr=bars, fmt="o", ms=4, label=label)
    ax.set_yticks([-k for k in range(4)], ["all", *KINDS])
    figures.words(ax)
    ax.set(
        xlim=(0, 101),
        ylim=(-3.5, 0.5),
        xlabel="problems in which the error falls (%)",
        title="The pool's error falls with the correlation",
    )
    ax.legend(loc="lower left")


def _falls(ax: Axes, fall: pd.DataFrame) -> None:
    """Ratio of errors against the fall of the correlation, a point a problem."""
    for ink, kind, marker in zip(figures.PALETTE, KINDS, figures.MARKERS, strict=False):
        rows = fall[fall["kind"] == kind]
        ax.plot(rows["decorrelation"], rows["ratio"], marker, ms=3, color=ink, ls="", label=kind)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    ax.set_yscale("log")
    figures.ticks(ax.yaxis, (0.25, 0.5, 1, 2))
    ax.legend()
    ax.set(
        xlabel="fall of the correlation of two agents",
        ylabel=RATIO,
        title="The more it falls, the more the pool gains",
    )


def _mechanisms(ax: Axes, fall: pd.DataFrame) -> None:
    """Ratio of errors by mechanism: median, middle half, and problems beyond."""
    colours = dict(zip(KINDS, figures.PALETTE, strict=False))
    order = sorted(fall["mechanism"].unique())
    shown = {"hue": "kind", "palette": colours, "order": order, "legend": False}
    sns.boxplot(
        fall, x="ratio", y="mechanism", ax=ax, fliersize=2, linewidth=0.8, log_scale=True, **shown
    )
    ax.axvline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.ticks(ax.xaxis, (0.25, 0.5, 1, 2))
    ax.set(xlabel=RATIO, ylabel="", title="Only random features do not pay off")
