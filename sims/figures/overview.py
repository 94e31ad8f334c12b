"""The overview of a sweep: what the error and its parts do along the fields that were varied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sims.figures.layout import letters, panels
from sims.figures.marks import note, theory
from sims.figures.plots import curve

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TERMS = ("mse", "squared_bias", "variance", "covariance")
MAX_FIELDS = 6


def overview(data: xr.Dataset) -> Figure:
    """Theory as lines or dashes, simulation as points, of a sweep's file.

    A grid has a panel for the MSE and each of its parts, along the field with the most values and
    in a colour for each value of another one; further fields stand at their first value. Points
    that are no grid have a panel for each field.

    Args:
        data: of :mod:`sims.study.sweeping`.
    """
    data = data if data.sizes else data.expand_dims("point")
    hue, fixed = None, {}
    scattered = "point" in data.dims
    if scattered:
        fields = [str(k) for k in data.coords if k != "point"][:MAX_FIELDS] or ["n_eff"]
        shown, columns = [(field, "mse") for field in fields], min(len(fields), 3)
    else:
        sizes = {str(d): data.sizes[d] for d in data.dims}
        x = max(sizes, key=lambda d: (data[d].dtype.kind in "fiu", sizes[d]))
        hue = next((d for d in sizes if d != x and 1 < sizes[d] <= 8), None)
        fixed = {d: data[d].values[0] for d in sizes if d not in (x, hue)}
        shown, columns = [(x, term) for term in TERMS], 2
    frame = data.sel(fixed).to_dataframe().reset_index()
    drawing, axes = panels(-(-len(shown) // columns), columns)
    for ax, (x, y) in zip(axes.flat, shown, strict=False):
        rows = frame[np.isfinite(frame[y])]
        if len(rows):
            _panel(ax, rows, x, y, hue, scattered, _name(data, hue) if hue and y == "mse" else None)
        ax.set(xlabel=_name(data, x), ylabel=_name(data, y))
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    if fixed:
        note(ax, f"at {', '.join(f'{_name(data, d)} = {value}' for d, value in fixed.items())}")
    letters(axes.flat[: len(shown)])
    return drawing


def _panel(
    ax: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    hue: str | None,
    scattered: bool,
    legend: str | None,
) -> None:
    """Draw a term along a field; theory as dashes where points are no grid."""
    numeric = rows[x].dtype.kind in "fiu"
    log = "x" * (numeric and _wide(rows[x])) + "y" * _wide(rows[y])
    dashes = scattered and numeric
    lines = rows[:0] if dashes else None
    points = rows if numeric else rows.astype({x: str})
    curve(ax, points, lines, x, y, hue=hue, labels=legend and {"title": legend}, log=log)
    if dashes:
        theory(ax, rows[x], rows[f"{y}_theory"], ls="none", marker="_", markersize=7)
        note(ax, "dashes: theory")
    # Theory that is far off would press the simulation's values together.
    low, high = rows[y].min(), rows[y].max()
    room = high - low + 4 * rows[f"{y}_mcse"].max()
    bounds = (low / 2, high * 2) if "y" in log else (low - room, high + room)
    if not rows[f"{y}_theory"].dropna().between(*bounds).all():
        ax.set_ylim(*bounds)
        note(ax, "theory partly beyond the axes")


def _name(data: xr.Dataset, name: str) -> str:
    return str(data[name].attrs["long_name"])


def _wide(values: pd.Series) -> bool:
    """True if a logarithmic axis shows the numbers better."""
    return bool(values.min() > 0 and values.max() / values.min() >= 8)
