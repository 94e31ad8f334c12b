"""Figure of a report: what averages of heads keep over depth, and correlations of one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sims.figures import MARKERS, PALETTE, letters, mosaic, note, simulated, style, theory
from sims.inspect.sentences import advised, listed

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

WIDTH = 4.4
"""Inches: at 640 pixels the smallest letters are 12 pixels high."""
KEPT = {
    "noise_kept": "patterns",
    "contribution_kept": "outputs",
    "value_kept": "OV maps",
}
"""Shares of variance that an average of heads keeps, with their names."""
CORRELATIONS = {
    "noise_correlation": "patterns",
    "contribution_correlation": "outputs",
    "score_correlation": "score forms",
    "value_correlation": "OV maps",
}
"""Quantities of the heat maps: the first two that the report has."""


def figure(data: xr.Dataset) -> Figure:
    """Figure with shares that averages keep, by layer, and two heat maps of the advised layer.

    Args:
        data: a report.
    """
    heat_maps = [name for name in CORRELATIONS if name in data][:2]
    row = data.isel(layer=advised(data))
    heads = int(row.heads)
    title = data.attrs["advice" if "redundant_heads" in data else "sentence"]
    drawing, axes = mosaic(("aa", "bc"), height=4.2, heights=(1, 1.1), width=WIDTH, title=title)
    depth_axes, *heat_axes = axes.values()
    with style():
        depth = data.layer.values
        for (key, name), color, marker in zip(KEPT.items(), PALETTE, MARKERS, strict=False):
            if key in data:
                error = data.get(f"{key}_mcse", 0 * data[key]).values
                simulated(depth_axes, depth, data[key].values, error, color, marker, label=name)
        theory(depth_axes, depth, 1 / data.heads.values, label="uncorrelated heads, 1/H", ls="--")
        depth_axes.set(xlabel="layer", ylabel="share of variance kept", ylim=(0, 1))
        depth_axes.set_title("What an average of the heads keeps")
        depth_axes.locator_params("x", integer=True)
        if not row.label.item().isdigit():
            depth_axes.set_xticks(depth, data.label.values, rotation=20, ha="right")
        depth_axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        for ax, name in zip(heat_axes, heat_maps, strict=True):
            r = row[name].values[:heads, :heads]
            image = ax.imshow(r, cmap="RdBu_r", vmin=-1, vmax=1)
            ax.figure.colorbar(image, ax=ax, label="correlation", shrink=0.7)
            ax.locator_params(integer=True)
            place = listed([row.label.item()])
            ax.set(title=f"{CORRELATIONS[name]}, {place}", xlabel="head", ylabel="head")
        if "noise_kept" in data:
            note(depth_axes, "bars: ± 2 standard errors over sequences")
        letters(list(axes.values()))
    return drawing
