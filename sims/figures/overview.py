"""Overview of a sweep: the error and its parts along the varied fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sims.figures.layout import letters, pairs
from sims.figures.marks import note, theory
from sims.figures.plots import curve

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TERMS = ("mse", "squared_bias", "variance", "covariance")
MAX_FIELDS = 6
NUMBERED = re.compile(r".*, ([\w ]+) (-?[\d.]+)")
"""A label that ends in a number: "set 2, diversity index 0.25"."""


def overview(data: xr.Dataset) -> Figure:
    """Figure of a sweep: theory as lines or dashes, simulation as points.

    A grid has a panel for the MSE and each of its parts, along the field with the most values, with
    one colour per value of another field; further fields have their first value. Points outside a
    grid have these panels if they differ in one field, and a panel of the MSE per field if they
    differ in several. A term that is the same everywhere is not shown.

    Args:
        data: a sweep's data, from :mod:`sims.study.sweeping`.
    """
    data = _number_labels(data if data.sizes else data.expand_dims("point"))
    terms = [term for term in TERMS if np.ptp(data[term].values) > 0] or ["mse"]
    return _draw_scattered(data, terms) if "point" in data.dims else _draw_grid(data, terms)


def _number_labels(data: xr.Dataset) -> xr.Dataset:
    """The data with numbers in place of the labels of a field that all end in one."""
    for name, field in data.coords.items():
        matches = [NUMBERED.fullmatch(str(value)) for value in field.values]
        found = [match for match in matches if match]
        if found and len(found) == len(matches):
            numbers = [float(match[2]) for match in found]
            words = {"long_name": found[0][1], "scale": "linear"}
            data = data.assign_coords({name: (field.dims, numbers, words)})
    return data


def _draw_scattered(data: xr.Dataset, terms: Sequence[str]) -> Figure:
    """Panels along the fields that differ, theory as dashes if there are several of them."""
    names = [str(name) for name in data.coords if name != "point"]
    fields = [name for name in names if len(np.unique(data[name])) > 1][:MAX_FIELDS] or ["n_eff"]
    frame = data.to_dataframe().reset_index()
    several = len(fields) > 1
    shown = [(name, "mse") for name in fields] if several else [(fields[0], y) for y in terms]
    drawing, axes = pairs(len(shown))
    for ax, (field, term) in zip(axes, shown, strict=True):
        _panel(ax, data, frame, field, term, dashes=several and frame[field].dtype.kind in "fiu")
    letters(axes)
    return drawing


def _draw_grid(data: xr.Dataset, terms: Sequence[str]) -> Figure:
    """A panel for each term, along the field with the most values."""
    sizes = {str(name): size for name, size in data.sizes.items()}
    x = max(sizes, key=lambda name: (data[name].dtype.kind in "fiu", sizes[name]))
    fixed = {name: data[name].values[0] for name in sizes if name != x}
    hue = next((name for name in fixed if 1 < sizes[name] <= 8), None)
    if hue is not None:
        del fixed[hue]
    frame = data.sel(fixed).to_dataframe().reset_index()
    drawing, axes = pairs(len(terms))
    for ax, term in zip(axes, terms, strict=True):
        _panel(ax, data, frame, x, term, hue)
    if fixed:
        places = [f"{_name(data, name)} = {value}" for name, value in fixed.items()]
        note(axes[0], f"at {', '.join(places)}")
    letters(axes)
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
    linear = not numeric or data[x].attrs.get("scale") == "linear"
    log = "x" * (not linear and _wide(rows[x])) + "y" * _wide(rows[y])
    points = rows if numeric else rows.astype({x: str})
    legend = {"title": _name(data, hue)} if hue and y == "mse" else None
    curve(ax, points, x, y, hue=hue, lines=not dashes, legend=legend, log=log)
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
