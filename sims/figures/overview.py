"""The overview of a sweep: what the error and its parts do along the fields that were varied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sims.figures.forests import forest
from sims.figures.layout import COLUMN, letters, panels
from sims.figures.marks import bars_note, note, simulated
from sims.figures.plots import curve, relative_gap
from sims.figures.theme import BAR, GREY, PALETTE, log_axes, style

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TERMS = ("mse", "squared_bias", "variance", "covariance")
MOST_FIELDS, MOST_LEVELS = 6, 8
ROOM = 1.2
"""Share of the simulated values' range beyond which theory is cut off, to either side."""


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
        value, error = relative_gap(value, error, theory)
    labels = [str(data[name].attrs["long_name"]) for name in names]
    frame = pd.DataFrame({"value": value, "error": error, "label": labels})
    drawing, axes = panels(width=COLUMN, title=title)
    forest(axes[0, 0], frame, percent=covered)
    return drawing


def _grid(data: xr.Dataset, title: str) -> Figure:
    numbers = [str(d) for d in data.dims if data[d].dtype.kind in "fiu"]
    longest = sorted(numbers or map(str, data.dims), key=lambda d: -data.sizes[d])
    x = longest[0]
    others = [str(d) for d in data.dims if d != x]
    hues = [d for d in others if 1 < data.sizes[d] <= MOST_LEVELS]
    hue = max(hues, key=lambda d: data.sizes[d], default=None)
    fixed = {d: data[d].values[0] for d in others if d != hue}
    frame = data.sel(fixed).to_dataframe().reset_index()
    drawing, axes = panels(2, 2, title=title)
    for ax, term in zip(axes.flat, TERMS, strict=True):
        shown = frame[np.isfinite(frame[term])]
        if len(shown):
            log = ("x" if _wide(np.unique(frame[x])) else "") + ("y" if _wide(shown[term]) else "")
            curve(ax, shown, None, x, term, hue=hue, labels=None if ax is not axes[0, 0] else "key",
                  log=log)  # fmt: skip
            _see(ax, shown, term)
        ax.set(xlabel=data[x].attrs["long_name"], ylabel=_name(data, term))
        if legend := ax.get_legend():
            legend.set_title(data[hue].attrs["long_name"] if hue else "")
        if data[x].dtype.kind in "iu" and data.sizes[x] <= MOST_LEVELS and ax.get_xscale() != "log":
            ax.set_xticks(data[x].values)
    if fixed:
        values = ", ".join(f"{data[d].attrs['long_name']} = {_short(v)}" for d, v in fixed.items())
        note(axes[1, 0], f"at {values}")
    letters(axes)
    return drawing


def _points(data: xr.Dataset, title: str) -> Figure:
    frame = data.to_dataframe().reset_index()
    fields = [str(k) for k in data.coords if k != "point"][:MOST_FIELDS]
    columns = min(len(fields), 3)
    rows = -(-len(fields) // columns)
    drawing, axes = panels(rows, columns, title=title)
    with style():
        for ax, field in zip(axes.flat, fields, strict=False):
            at, words = frame[field], data[field].dtype.kind not in "fiu"
            if words:
                known = list(dict.fromkeys(at))
                at = at.map(known.index)
                ax.set_xticks(range(len(known)), list(map(str, known)))
            log_axes(ax, x=not words and _wide(at), y=_wide(frame["mse"]), plain=True)
            ax.plot(at, frame["mse_theory"], "_", color=GREY, markersize=7, zorder=2)
            simulated(ax, at, frame["mse"], frame["mse_mcse"], PALETTE[0])
            ax.set(xlabel=data[field].attrs["long_name"], ylabel=_name(data, "mse"))
            bars_note(ax)
            _see(ax, frame, "mse")
        note(axes[0, 0], "dashes: theory")
        for ax in list(axes.flat)[len(fields) :]:
            ax.set_visible(False)
    return drawing


def _see(ax: Axes, frame: pd.DataFrame, term: str) -> None:
    """Bring the simulation's values into view where theory, far off, would press them together."""
    low, high = ((frame[term] + side * BAR * frame[f"{term}_mcse"].fillna(0)) for side in (-1, 1))
    log = ax.get_yscale() == "log"
    least, most = (frame[term].min() if log else low.min()), high.max()
    room = (ROOM - 1) * (most - least)
    bounds = (least / ROOM**2, most * ROOM**2) if log else (least - room, most + room)
    bottom, top = ax.get_ylim()
    ax.set_ylim(max(bottom, bounds[0]), min(top, bounds[1]))
    theory = frame[f"{term}_theory"]
    if ((theory < bounds[0]) | (theory > bounds[1])).any():
        note(ax, "theory partly beyond the axes")


def _name(data: xr.Dataset, term: str) -> str:
    return str(data[term].attrs["long_name"])


def _wide(values: pd.Series | np.ndarray) -> bool:
    """Whether numbers are told apart better by their logarithms: far apart, or at equal ratios."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.min() <= 0:
        return False
    ratios = array[1:] / array[:-1]
    even = len(array) > 2 and bool(np.ptp(ratios) < 0.02 * ratios.mean())
    return even or bool(array.max() / array.min() >= 8)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
