"""Figure of a report: correlations of one layer's heads, and diversity over depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sims.figures import PAGE, PALETTE, letters, mosaic, simulated, style, theory
from sims.figures.marks import bars_note

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

CORRELATIONS = {
    "noise_correlation": "label noise",
    "contribution_correlation": "contributions",
    "predicted_noise_correlation": "label noise, predicted",
    "score_correlation": "score forms",
}
"""Quantities of the heat maps: the first two that the report has."""
INDICES = {
    "contribution_index_mean": "contributions",
    "noise_index_mean": "label noise",
    "index_query_heads_mean": "key subspaces",
}
"""Names of indices to the quantity of heads that they compare."""


def figure(data: xr.Dataset) -> Figure:
    """Figure with heat maps of the largest correlations of a layer, and each layer's index.

    Args:
        data: a report.
    """
    import seaborn as sns
    from matplotlib.ticker import MaxNLocator

    heat_maps = [name for name in CORRELATIONS if name in data][:2]
    means = data[heat_maps[0]].mean(("head", "head2")).fillna(-1).values
    layer = int(np.argmax(means))
    heads = int(data.heads.values[layer])
    label = data.label.values[layer]
    names = "ab"[: len(heat_maps)]
    layout = (names, "c" * len(heat_maps))
    sentence = data.attrs["sentence"]
    drawing, axes = mosaic(layout, height=5.0, heights=(1.2, 1), width=PAGE, title=sentence)
    *heat_axes, depth_axes = axes.values()
    with style():
        for ax, name in zip(heat_axes, heat_maps, strict=True):
            r = data[name].values[layer][:heads, :heads]
            sns.heatmap(
                r,
                vmin=-1,
                vmax=1,
                cmap="vlag",
                square=True,
                ax=ax,
                cbar_kws={"label": "correlation"},
            )
            ax.set(title=f"{CORRELATIONS[name]}, layer {label}", xlabel="head", ylabel="head")
        depth = data.layer.values
        for (key, name), color in zip(INDICES.items(), PALETTE, strict=False):
            if key in data:
                error = data.get(f"{key}_mcse", 0 * data[key]).values
                simulated(depth_axes, depth, data[key].values, error, color, label=name)
        baseline = data["index_query_heads_baseline_mean"].values
        theory(depth_axes, depth, baseline, label="random key subspaces", ls="--")
        depth_axes.set(xlabel="layer", ylabel="index, 1 − mean correlation")
        depth_axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if not label.isdigit():
            depth_axes.set_xticks(depth, data.label.values, rotation=20, ha="right", fontsize=6)
        depth_axes.legend(loc="lower left", bbox_to_anchor=(0.02, 1), ncols=4)
        bars_note(depth_axes)
        letters(list(axes.values()))
    return drawing
