"""Ensemble variance against the number of heads, at fixed angles, and its gap to exact theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ANGLE, COUNT = "heads.frames.angle", "heads.count"
NAMES = {0: "aligned, 0°", 90: "orthogonal, 90°"}


def variance_ratio(terms: Mapping[str, np.ndarray]) -> np.ndarray:
    """Variance of the ensemble over the mean variance of a head."""
    return terms["ensemble_variance"] / terms["variance"]


def ratios(results: Results) -> pd.DataFrame:
    """The ratio at every point: simulated, with its MCSE, and by exact theory."""
    rows = []
    for name, at in sorted(results.points.items(), key=lambda item: item[1][ANGLE]):
        angle, theory = at[ANGLE], results.theory[name]
        value, error = mean_and_error(results.pseudovalues(name, variance_ratio))
        predicted = float(variance_ratio({str(k): v.values for k, v in theory.items()}))
        rows.append((NAMES.get(angle, f"{angle:g}°"), angle, at[COUNT], value, error, predicted))
    columns = ["heads", "angle", "count", "simulation", "mcse", "theory"]
    return pd.DataFrame(rows, columns=columns)


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    table = ratios(results)
    counts = sorted(set(table["count"]))
    drawing, axes = figures.panels(1, 2, width=figures.PAGE, height=2.9)
    left, right = axes[0]
    figures.curve(
        left, table.rename(columns={"simulation": "ratio"}),
        table.rename(columns={"theory": "ratio"}), "count", "ratio", error="mcse", hue="heads",
        log="xy", labels="ends", verdict=by_regime["wider angle at fixed H"],
    )  # fmt: skip
    figures.ticks(left.yaxis, (0.1, 0.2, 0.5, 1))
    left.set(ylim=(0.9 / counts[-1], 1.15), ylabel="ensemble variance / head variance")
    figures.reference(left, 1 / np.array(counts), "independent heads, 1/$H$", counts, at=0.8)
    left.set_title("wider angle, less variance")
    # Aligned heads, and one head, are 1 by identity.
    spread = table[(table["angle"] > 0) & (table["count"] > 1)]
    step = 1.06 ** (spread["angle"].rank(method="dense") - 2)
    claim = by_regime["any angle"]
    figures.gap(
        right, spread.assign(count=spread["count"] * step,
                             heads=pd.Categorical(spread["heads"], table["heads"].unique())),
        "count", hue="heads", margin=claim.margin, verdict=claim, labels=None,
    )  # fmt: skip
    right.set_title("against exact theory")
    for ax in (left, right):
        figures.ticks(ax.xaxis, counts if ax is left else counts[1:])
        ax.set_xlabel("number of heads $H$")
    figures.letters(axes.flat)
    return drawing
