"""Overview of a sweep: the error and its parts along the varied fields."""

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
    """Figure of a sweep: theory as lines or dashes, simulation as points.

    A grid has a panel for the MSE and each of its parts, along the field with the most values, with
    one colour per value of another field; further fields have their first value. Points outside a
    grid have a panel for each field.

    Args:
        data: a sweep's data, from :mod:`sims.study.sweeping`.
    """
    data = data if data.sizes else data.expand_dims("point")
    return _draw_scattered(data) if "point" in data.dims else _draw_grid(data)


def _draw_scattered(data: xr.Dataset) -> Figure:
    """A panel of the MSE for each field, theory as dashes."""
    fields = [str(name) for name in data.coords if name != "point"][:MAX_FIELDS] or ["n_eff"]
    columns = min(len(fields), 3)
    frame = data.to_dataframe().reset_index()
    drawing, axes = panels(-(-len(fields) // columns), columns)
    for ax, field in zip(axes.flat, fields, strict=False):
        _panel(ax, data, frame, field, "mse", dashes=frame[field].dtype.kind in "fiu")
    for ax in axes.flat[len(fields) :]:
        ax.set_visible(False)
    letters(axes.flat[: len(fields)])
    return drawing


def _draw_grid(data: xr.Dataset) -> Figure:
    """A panel for each term, along the field with the most values."""
    sizes = {str(name): size for name, size in data.sizes.items()}
    x = max(sizes, key=lambda name: (data[name].dtype.kind in "fiu", sizes[name]))
    fixed = {name: data[name].values[0] for name in sizes if name != x}
    hue = next((name for name in fixed if 1 < sizes[name] <= 8), None)
    if hue is not None:
        del fixed[hue]
    frame = data.sel(fixed).to_dataframe().reset_index()
    drawing, axes = panels(2, 2)
    for ax, term in zip(axes.flat, TERMS, strict=True):
        _panel(ax, data, frame, x, term, hue)
    if fixed:
        places = [f"{_name(data, name)} = {value}" for name, value in fixed.items()]
        note(ax, f"at {', '.join(places)}")
    letters(axes.flat)
    return drawing


def _panel(
    ax: Axes,
    data: xr.Dataset,
    frame: pd.DataFrame,
    x: str,
    y: str,
    hue: str | None = None,
    dashes: bool = False,
) -> None:
    """Draw a term along a field, theory as lines or dashes; the MSE panel has the legend."""
    ax.set(xlabel=_name(data, x), ylabel=_name(data, y))
    rows = frame[np.isfinite(frame[y])]
    if rows.empty:
        return
    numeric = rows[x].dtype.kind in "fiu"
    log = "x" * (numeric and _wide(rows[x])) + "y" * _wide(rows[y])
    lines = rows[:0] if dashes else None
    points = rows if numeric else rows.astype({x: str})
    legend = {"title": _name(data, hue)} if hue and y == "mse" else None
    curve(ax, points, lines, x, y, hue=hue, labels=legend, log=log)
    ax.set(xlabel=_name(data, x), ylabel=_name(data, y))
    if dashes:
        theory(ax, rows[x], rows[f"{y}_theory"], ls="none", marker="_", markersize=7)
        note(ax, "dashes: theory")
    # Theory that is far off would press the simulation's values together.
    low = rows[y].min()
    high = rows[y].max()
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
