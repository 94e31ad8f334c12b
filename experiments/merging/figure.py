"""What merging costs, how often it is free, and what it saves."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import parameters, rises

ALIKE = {"iid": 1e-9, "up to 0.6": 0.6, "0.6 to 0.85": 0.85, "above 0.85": 1.0}
"""Groups of problems by the correlation of neighbouring keys, and where they end."""
CLAIMS = {"merge-free": "each at its best temperature", "merge-free-kept": "same temperature"}
LATENT, ROTARY, HEADS, STRIDES = 4, 0.5, 8, np.arange(1, 9)
"""r/d_h, d_R/d_h and n_h of the paper."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; rises and shares are those that the answers count."""
    drawing, axes = figures.mosaic(
        ("aa", "bc"),
        height=5.6,
        title="Merging keys saves memory and costs accuracy, less where neighbours are alike",
    )
    _costs(axes["a"], results)
    _shares(axes["b"], {answer.id: answer for answer in answers})
    _savings(axes["c"])
    figures.letters(axes[k] for k in "abc")
    return drawing


def _costs(ax: Axes, results: Results) -> None:
    """Error over merged keys / all keys, each at its best: median, middle half, problems beyond."""
    frame = parameters(results)
    frame["ratio"] = 1 + rises(results)["best"].mean(1)
    frame["alike"] = pd.cut(frame["alike"], [-1, *ALIKE.values()], labels=list(ALIKE))
    frame["stride"] = pd.cut(frame["stride"], [1, 2, 4, 8], labels=["2", "3 and 4", "8"])
    look = {"palette": "crest", "fliersize": 2, "linewidth": 0.8}
    sns.boxplot(frame, x="alike", y="ratio", hue="stride", ax=ax, **look)
    ax.axhspan(0.1, 1 + house.TOLERANCES["roads"], color=figures.BAND, zorder=0)
    figures.log_axes(ax, y=True, plain=True)
    figures.ticks(ax.yaxis, (0.25, 0.5, 1, 2, 4, 8))
    ax.legend(title="stride s", ncols=3, loc="upper right")
    ax.set(
        ylim=(0.25, 8),
        xlabel="correlation of neighbouring keys",
        ylabel="error, merged / all keys",
        title="The cost falls as neighbouring keys become alike",
    )


def _shares(ax: Axes, answers: Mapping[str, Answer]) -> None:
    """Share of problems in which merging costs at most the tolerance: middle and interval."""
    places = ("all", "iid keys", "correlated keys")
    for shift, (name, label) in zip((0.14, -0.14), CLAIMS.items(), strict=True):
        parts = answers[name].shares()
        shown = {part: result.simulated for part, result in parts.items() if result.simulated}
        middle = np.array([100 * np.mean(share.bracket) for share in shown.values()])
        low, high = 100 * np.transpose([share.interval for share in shown.values()])
        ax.errorbar(
            middle,
            [shift - places.index(part) for part in shown],
            xerr=np.stack([middle - low, high - middle]),
            fmt="o",
            ms=4,
            label=label,
        )
    ax.set_yticks([0, -1, -2], places)
    figures.words(ax)
    ax.legend(loc="upper center")
    ax.set(
        xlim=(0, 101),
        ylim=(-2.5, 1.1),
        xlabel="problems in which it costs at most 5 % (%)",
        title="Merging is free in about half the problems",
    )


def _savings(ax: Axes) -> None:
    """Cache and products of a decoding step, as shares of multi-head attention's, by formula."""
    shares = {
        "cache": (LATENT + ROTARY) / (2 * HEADS * STRIDES),
        "products of a step": (2 * LATENT + ROTARY) / (2 * STRIDES),
    }
    for marker, (label, share) in zip(figures.MARKERS, shares.items(), strict=False):
        ax.plot(STRIDES, share, marker=marker, ms=4, label=label)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=":")
    figures.log_axes(ax, y=True, plain=True)
    figures.ticks(ax.yaxis, (0.03, 0.1, 0.3, 1, 3))
    figures.ticks(ax.xaxis, STRIDES)
    ax.legend()
    ax.set(
        xlabel="stride s",
        ylabel="share of multi-head attention",
        title="Memory falls at once, arithmetic from s = 5",
    )
