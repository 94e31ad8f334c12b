"""Cost of a kept temperature as the context grows, and rules compared in a longer one."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .rules import MATCHED, SIMULATED
from .statistic import MIDDLE

RIVALS = {
    "1.5-entmax against softmax": "softmax,\nkept",
    "1.5-entmax against top-k": "top-k,\nkept",
    "re-tuned": "softmax,\nre-tuned",
}
"""Comparisons as the axis names them."""
FAR = 256
"""Number of keys over that of the tuned context to which the figure goes."""
LINES = ("top-k", "softmax", "softmax, log n", "sparsemax", MATCHED)


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; lines and points are over the problems that the answers count."""
    subject = f"At {SIMULATED} times the keys, {MIDDLE}"
    title = answers["competitive"].sentence(subject, "errs less than softmax")
    drawing, axes = figures.mosaic(("a", "b"), height=4.0, heights=(1.7, 1), title=title)
    near = answers["kept-temperature"].sentence(MATCHED, "stays within 5 %")
    draw_losses(axes["a"], panels, near)
    less = answers["top-k-alternative"].sentence(MIDDLE, "errs less than top-k")
    draw_changes(axes["b"], panels, less)
    return drawing


def draw_losses(ax: Axes, panels: Panels, title: str) -> None:
    """Errors over the least ones by theory, and simulated medians."""
    near = panels.arrays.sel(ratio=slice(None, FAR))
    for ink, rule in zip(figures.PALETTE, LINES, strict=False):
        of_rule = near.sel(rule=rule)
        losses = of_rule["stated"].values
        known = losses[np.isfinite(losses).all(1)]
        figures.quartiles(ax, near["ratio"], known, ink, label=rule)
        ax.plot(SIMULATED, np.nanmedian(of_rule["simulated"]), "o", color=ink)
    ax.plot([], [], "o", color=figures.GREY, label="simulated")
    figures.describe(
        ax,
        "number of keys / number at tuning",
        "error, kept / least",
        title,
        log="xy",
    )


def draw_changes(ax: Axes, panels: Panels, title: str) -> None:
    """Simulated changes of the error from other rules to 1.5-entmax, a point a problem."""
    made = panels.effects
    rows = {label: -100 * made[name].value[:, 0] for name, label in RIVALS.items()}
    frame = pd.DataFrame(rows).melt(var_name="rival", value_name="change")
    figures.dotted(ax, x=0)
    ink = figures.PALETTE[0]
    sns.stripplot(frame, x="change", y="rival", ax=ax, color=ink, size=1.5, alpha=0.5)
    change = f"change of the error to {MIDDLE} (%)"
    figures.describe(ax, change, "", title)
