"""Ensemble variance against the number of heads, at fixed angles, and its gap to exact theory."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import grid, predicted, ratio

NAMES = {0: "aligned, 0°", 90: "orthogonal, 90°"}


def ratios(results: Results) -> pd.DataFrame:
    """The ratio at every point: simulated, with its MCSE, and by exact theory."""
    rows = []
    for (angle, count), point in sorted(grid(results).items()):
        simulated, (theory, _) = ratio(results, point), predicted(results, point)
        name = NAMES.get(int(angle), f"{angle:g}°")
        rows.append((name, angle, count, simulated.value, simulated.error, theory))
    columns = ["heads", "angle", "count", "simulation", "mcse", "theory"]
    return pd.DataFrame(rows, columns=columns)


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    table = ratios(results)
    counts = sorted(set(table["count"]))
    drawing, axes = figures.panels(
        1, 2, height=3.1, title="More heads help only as far as they differ"
    )
    left, right = axes[0]
    figures.curve(
        left, table, None, "count", "ensemble variance / head variance", hue="heads", log="xy",
        labels="ends", verdict=by_regime["wider angle at fixed H"],
    )  # fmt: skip
    figures.ticks(left.yaxis, (0.1, 0.2, 0.5, 1))
    left.set_ylim(0.9 / counts[-1], 1.15)
    figures.reference(left, 1 / np.array(counts), "independent heads, 1/$H$", counts, at=0.8)
    left.set_title("wider angle, less variance")
    # Aligned heads, and one head, are 1 by identity. Angles stand side by side.
    spread = table[(table["angle"] > 0) & (table["count"] > 1)]
    step = 1.06 ** (spread["angle"].rank(method="dense") - 2)
    names = pd.Categorical(spread["heads"], table["heads"].unique())
    claim = by_regime["any angle"]
    figures.gap(
        right, spread.assign(count=spread["count"] * step, heads=names), "count", hue="heads",
        margin=claim.margin, verdict=claim, labels=None,
    )  # fmt: skip
    right.set_title("against exact theory")
    for ax in (left, right):
        figures.ticks(ax.xaxis, counts if ax is left else counts[1:])
        ax.set_xlabel("number of heads $H$")
    figures.letters(axes.flat)
    return drawing
