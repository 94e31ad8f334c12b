"""Cost of merging by correlation and stride, and how often it is small."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.judgement.summaries import Share
from sims.study.panels import Panels

ALIKE = {"iid": 1e-9, "up to 0.6": 0.6, "0.6 to 0.85": 0.85, "above 0.85": 1.0}
"""Groups of problems by the correlation of neighbouring keys, and where they end."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; rises and shares are those that the answers count."""
    same = answers["merge-same"].shares()
    counted = {
        "correlated keys,\nboth tuned": answers["mtla-competitive"].shares()["all"],
        "correlated keys,\nsame temperature": same.get("correlated keys"),
        "iid keys,\nboth tuned": answers["merge-iid"].shares()["all"],
        "iid keys,\nsame temperature": same.get("iid keys"),
    }
    often = answers["mtla-competitive"].how_often()
    title = f"Merging correlated keys raises the error by at most 5 % in {often} of problems"
    drawing, axes = figures.mosaic(("a", "b"), height=4.4, heights=(1.2, 1), title=title)
    raises = answers["merge-dominated"].sentence("Merging iid keys", "raises the error")
    _costs(axes["a"], panels, raises)
    _shares(axes["b"], counted)
    return drawing


def _costs(ax: Axes, panels: Panels, title: str) -> None:
    """Error over merged keys / all keys, each at its best: median, middle half, problems beyond."""
    frame = panels.parameters.assign(ratio=1 + np.asarray(panels.effects["competitive"].size))
    frame["alike"] = pd.cut(frame["alike"], [-1, *ALIKE.values()], labels=list(ALIKE))
    look = {"palette": "crest", "fliersize": 1, "linewidth": 0.6}
    ax.set_yscale("log")
    sns.boxplot(frame, x="alike", y="ratio", hue="stride", ax=ax, **look)
    few = 1 + conventions.TOLERANCES["methods"]
    ax.axhspan(0.15, few, color=figures.BAND, zorder=0, label="at most 5 % more")
    figures.describe(
        ax,
        f"correlation of neighbouring keys (n = {len(frame)})",
        "error, merged / all keys",
        title,
        log="y",
        legend="keys per slot",
    )


def _shares(ax: Axes, shares: dict[str, Share | None]) -> None:
    """Share of problems in which merging costs at most the tolerance: middle and interval."""
    names = list(shares)
    ink = figures.PALETTE[0]
    for place, share in enumerate(shares.values()):
        if share and share.simulated:
            ax.plot(100 * np.array(share.simulated.interval), [-place] * 2, color=ink)
            ax.plot(100 * np.mean(share.simulated.bracket), -place, "o", color=ink)
            names[place] += f" ({share.simulated.total})"
    ax.set_yticks(-np.arange(len(names)), names)
    figures.words(ax)
    ax.set(xlim=(0, 101), ylim=(-len(names) + 0.5, 0.5))
    figures.describe(ax, "problems (%; n in brackets)", "", "How often the rise is at most 5 %")
