"""The change from aligned to random heads along both arms."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .points import POINTS

ARMS = {"outputs": "Outputs apart", "values": "Values apart"}
"""Arms to their titles."""


def figure(panels: Panels, answers: Answers) -> Figure:
    """A panel for each arm, a line for each problem."""
    changes = 100 * panels["change"][..., 0]
    title = "What key diversity buys shrinks as heads stop sharing"
    drawing, axes = figures.panels(1, 2, width=figures.COLUMN, title=title)
    for ax, (arm, label) in zip(axes.flat, ARMS.items(), strict=True):
        _arm(ax, changes, arm)
        ax.set_title(f"{label} ({len(changes)} problems)")
    axes[0, 0].set_ylabel("change of the error (%)")
    return drawing


def _arm(ax: Axes, changes: np.ndarray, arm: str) -> None:
    """Changes over κ along an arm, which begins with shared values."""
    places = [place for place, point in enumerate(POINTS) if point.arm in ("shared", arm)]
    alignment = np.array([POINTS[place].alignment for place in places])
    ax.plot(alignment, changes[:, places].T, color=figures.GREY, alpha=0.25, lw=0.5)
    figures.quartiles(ax, alignment, changes[:, places], figures.PALETTE[0], marker="o")
    ax.axhline(0, color="black", lw=0.6)
    low, high = np.quantile(changes, (0.02, 0.98))
    ax.set(ylim=(low, high), xlim=(1.05, -0.05), xticks=alignment)
    ax.set_xlabel("κ of two heads")
