"""The change from aligned to random heads along both arms."""

import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .points import POINTS


def figure(panels: Panels, answers: Answers) -> Figure:
    """A line for each arm, which begins with shared values."""
    changes = 100 * panels["change"][..., 0]
    title = "The gain from key diversity shrinks as heads share less"
    drawing, axes = figures.panels(height=2.4, title=title)
    ax = axes[0, 0]
    points = pd.DataFrame(POINTS)
    for ink, arm in zip(figures.PALETTE, ("outputs", "values"), strict=False):
        rows = points[points["arm"].isin(["shared", arm])]
        look = {"marker": "o", "label": f"{arm} apart"}
        figures.quartiles(ax, rows["alignment"], changes[:, rows.index], ink, **look)
    figures.dotted(ax)
    ax.invert_xaxis()
    label = f"cosine κ of two heads ({len(changes)} problems)"
    figures.describe(ax, label, "change of the error (%)")
    return drawing
