"""The overview of a sweep: what the error and its parts do along the fields that were varied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sims.figures.forests import forest
from sims.figures.layout import COLUMN, letters, panels
from sims.figures.marks import note
from sims.figures.plots import curve
from sims.figures.theme import GREY, style

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TERMS = ("mse", "squared_bias", "variance", "covariance")


def overview(data: xr.Dataset, title: str = "") -> Figure:
    """Theory as lines or dashes, simulation as points, of a sweep's file.

    A grid has a panel for the MSE and each of its parts, along the field with the most values and
    in a colour for each value of another one; further fields stand at their first value. Points
    that are no grid have a panel for each field. A single point has its terms one below another.

    Args:
        data: of :mod:`sims.study.sweeping`.
        title: of the figure.
    """
    if not data.sizes:
        return _one(data, title)
    return _points(data, title) if "point" in data.dims else _grid(data, title)


def _one(data: xr.Dataset, title: str) -> Figure:
    """The gaps of all terms, or the terms where theory has none."""
    import pandas as pd

    names = [str(k) for k in data.data_vars if f"{k}_mcse" in data and np.isfinite(data[k])]
    value, error, theory = (
        np.array([float(data[f"{name}{end}"]) for name in names])
        for end in ("", "_mcse", "_theory")
    )
    covered = bool(np.isfinite(theory).all())
    if covered:
        value, error = value / theory - 1, error / np.abs(theory)
    labels = [_name(data, name) for name in names]
    frame = pd.DataFrame({"value": value, "error": error, "label": labels})
    drawing, axes = panels(width=COLUMN, title=title)
    forest(axes[0, 0], frame, percent=covered)
    return drawing


def _grid(data: xr.Dataset, title: str) -> Figure:
    sizes = {str(d): data.sizes[d] for d in data.dims}
    x = max(sizes, key=lambda d: (data[d].dtype.kind in "fiu", sizes[d]))
    hue = next((d for d in sizes if d != x and 1 < sizes[d] <= 8), None)
    fixed = {d: data[d].values[0] for d in sizes if d not in (x, hue)}
    frame = data.sel(fixed).to_dataframe().reset_index()
    drawing, axes = panels(2, 2, title=title)
    for ax, term in zip(axes.flat, TERMS, strict=True):
        shown = frame[np.isfinite(frame[term])]
        if len(shown):
            log = "x" * _wide(frame[x]) + "y" * _wide(shown[term])
            legend = {"title": _name(data, hue)} if hue and term == "mse" else None
            curve(ax, shown, None, x, term, hue=hue, labels=legend, log=log)
            _see(ax, shown, term)
        ax.set(xlabel=_name(data, x), ylabel=_name(data, term))
    if fixed:
        note(ax, f"at {', '.join(f'{_name(data, d)} = {value}' for d, value in fixed.items())}")
    letters(axes.flat)
    return drawing


def _points(data: xr.Dataset, title: str) -> Figure:
    frame = data.to_dataframe().reset_index()
    fields = [str(k) for k in data.coords if k != "point"][:6]
    columns = min(len(fields), 3)
    drawing, axes = panels(-(-len(fields) // columns), columns, title=title)
    with style():
        for ax, field in zip(axes.flat, fields, strict=False):
            log = "x" * _wide(frame[field]) + "y" * _wide(frame["mse"])
            if frame[field].dtype.kind in "fiu":
                curve(ax, frame, frame[:0], field, "mse", log=log)
                ax.plot(frame[field], frame["mse_theory"], "_", color=GREY, markersize=7, zorder=2)
            else:  # words, one beside another
                curve(ax, frame.astype({field: str}), None, field, "mse", log=log)
            ax.set(xlabel=_name(data, field), ylabel=_name(data, "mse"))
            _see(ax, frame, "mse")
        note(ax, "dashes: theory")
        for ax in axes.flat[len(fields) :]:
            ax.set_visible(False)
    return drawing


def _see(ax: Axes, frame: pd.DataFrame, term: str) -> None:
    """Bring the simulation's values into view where theory, far off, would press them together."""
    least, most = frame[term].min(), frame[term].max()
    room = most - least + 4 * frame[f"{term}_mcse"].max()
    bounds = (least / 2, most * 2) if ax.get_yscale() == "log" else (least - room, most + room)
    if not frame[f"{term}_theory"].dropna().between(*bounds).all():
        ax.set_ylim(*bounds)
        note(ax, "theory partly beyond the axes")


def _name(data: xr.Dataset, name: str) -> str:
    return str(data[name].attrs["long_name"])


def _wide(values: pd.Series) -> bool:
    """Whether numbers are told apart better by their logarithms."""
    numeric = values.dtype.kind in "fiu"
    return bool(numeric and values.min() > 0 and values.max() / values.min() >= 8)
