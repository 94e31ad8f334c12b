"""What merging costs, how often it costs little, and what it saves."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.judgement.summaries import Share
from sims.judgement.wording import percent_range
from sims.study.results import Results

from .statistic import parameters, rises

ALIKE = {"iid": 1e-9, "up to 0.6": 0.6, "0.6 to 0.85": 0.85, "above 0.85": 1.0}
"""Groups of problems by the correlation of neighbouring keys, and where they end."""
ROWS = ("correlated keys", "iid keys")
"""Rows of panel b, which are strata at the same temperature."""
LATENT = 4
ROTARY = 0.5
HEADS = 8
"""r/d_h, d_R/d_h and n_h of the paper."""
STRIDES = np.arange(1, 9)


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; rises and shares are those that the answers count."""
    by_id = {answer.id: answer for answer in answers}
    correlated = by_id["mtla-competitive"].result
    assert isinstance(correlated, Share)
    counted = correlated.deciding
    share = percent_range(*counted.bracket) if counted else "none"
    title = f"Merging correlated keys raises the error by at most 5 % in {share} of problems"
    drawing, axes = figures.mosaic(("aa", "bc"), height=5.6, title=title)
    _costs(axes["a"], results)
    tuned = dict(zip(ROWS, (correlated, by_id["merge-iid"].result), strict=True))
    same = by_id["merge-same"].strata
    _shares(axes["b"], {"each at its best temperature": tuned, "same temperature": same})
    _savings(axes["c"])
    figures.letters(axes.values())
    return drawing


def _costs(ax: Axes, results: Results) -> None:
    """Error over merged keys / all keys, each at its best: median, middle half, problems beyond."""
    frame = parameters(results)
    frame["ratio"] = 1 + rises(results).mean(1)
    groups = pd.cut(frame["alike"], [-1, *ALIKE.values()], labels=list(ALIKE))
    frame["alike"] = groups
    counts = groups.value_counts(sort=False)
    frame["stride"] = pd.cut(frame["stride"], [1, 2, 4, 8], labels=["2", "3 and 4", "8"])
    look = {"palette": "crest", "fliersize": 2, "linewidth": 0.8}
    sns.boxplot(frame, x="alike", y="ratio", hue="stride", ax=ax, **look)
    ax.axhspan(0.1, 1 + house.TOLERANCES["roads"], color=figures.BAND, zorder=0)
    figures.log_axes(ax, y=True, plain=True)
    figures.ticks(ax.yaxis, (0.25, 0.5, 1, 2, 4, 8))
    ax.set_xticks(range(len(counts)), [f"{name} (n = {n})" for name, n in counts.items()])
    ax.legend(title="keys per slot", ncols=3, loc="upper right")
    ax.set(
        ylim=(0.25, 8),
        xlabel="correlation of neighbouring keys (number of problems)",
        ylabel="error, merged / all keys",
        title="Cost of merging, each at its best temperature",
    )


def _shares(ax: Axes, series: Mapping[str, Mapping[str, object]]) -> None:
    """Share of problems in which merging costs at most the tolerance: middle and interval."""
    for shift, (label, rows) in zip((0.12, -0.12), series.items(), strict=True):
        for place, name in enumerate(ROWS):
            result = rows.get(name)
            counted = result.simulated if isinstance(result, Share) else None
            if counted is None:
                continue
            low, high = 100 * np.array(counted.interval)
            middle = 100 * np.mean(counted.bracket)
            ink = figures.PALETTE[0 if shift > 0 else 1]
            ax.errorbar(
                middle,
                shift - place,
                xerr=[[middle - low], [high - middle]],
                fmt="o",
                ms=4,
                color=ink,
                label=label if place == 0 else None,
            )
    ax.set_yticks([0, -1], ROWS)
    figures.words(ax)
    ax.legend(loc="lower center")
    ax.set(
        xlim=(0, 101),
        ylim=(-2.2, 0.6),
        xlabel="problems in which it costs at most 5 % (%)",
        title="How often merging costs at most 5 %",
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
        xlabel="keys per slot, s",
        ylabel="share of multi-head attention",
        title="Memory falls at once, arithmetic from s = 5",
    )
