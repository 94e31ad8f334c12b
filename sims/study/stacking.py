"""Datasets of single grid points as one labelled dataset along ``point``, and back.

Points can differ in sizes (batches, heads) and in their variables. A variable is padded with NaN
(text with "") to the largest point, and cut again when a single point is requested. A coordinate
along another dimension comes from the point with the longest one; the others must be its
beginnings.

Plain xarray selects by the coordinate that names a dimension. The dimension of points is therefore
named after the coordinate with the longest line: the one that takes most values while all others
are constant. Points that share such a value are selected together; ``set_xindex`` selects by any
other coordinates.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.errors import InputError

POINT = "point"
Scalar = str | float | int | bool | None


def stack(
    data: Mapping[str, xr.Dataset], coordinates: Mapping[str, Mapping[str, Scalar]]
) -> xr.Dataset:
    """The datasets of all points as one.

    Args:
        data: point's name to its dataset. A variable has the same dimensions at all points.
        coordinates: point's name to its coordinates, the same names at every point.

    Returns:
        Variables along the points, which come first; the points' names, ``point``, and their
        coordinates; and in the attribute ``structure`` what :func:`unstack` needs to give points
        back: their datasets without values. A variable that has the name of another one's
        dimension gets a name of its own, ``<name>_value``.

    Raises:
        InputError: a variable's dimensions, or a coordinate's values, differ between points; or
            one has the dimension ``point``.
    """
    sizes: dict[Any, int] = {}
    shared: dict[Any, xr.Variable] = {}
    varying: dict[Any, dict[str, xr.Variable]] = {}
    for name, dataset in data.items():
        for dim, size in dataset.sizes.items():
            sizes[dim] = max(sizes.get(dim, 0), size)
        for key, variable in dataset.variables.items():
            if POINT in (key, *variable.dims):
                allowed = f"other names: the results of all problems stand along {POINT!r}"
                raise InputError(f"variable {key}", f"the dimension {POINT!r}", allowed)
            if key in dataset.dims:
                shared[key] = _longer(key, shared.get(key, variable), variable)
            else:
                varying.setdefault(key, {})[name] = variable
    variables = {}
    renamed = {}
    for key, by_point in varying.items():
        padded = _pad(key, by_point, list(data), sizes)
        if key in sizes:  # it would be taken for the coordinate of that dimension
            padded.attrs["path"] = key
            renamed[key] = f"{key}_value"
        variables[renamed.get(key, key)] = padded
    stacked = xr.Dataset(variables, {POINT: list(data), **shared})
    point_coordinates = [coordinates.get(name, {}) for name in data]
    paths = list(dict.fromkeys(chain.from_iterable(point_coordinates)))
    names = short_names(paths, {*map(str, stacked.variables), *map(str, stacked.dims)})
    labels = {}
    for path, name in names.items():
        values = column([point.get(path) for point in point_coordinates])
        labels[name] = (POINT, values, {"path": path})
    stacked = stacked.assign_coords(labels)
    layouts = [dataset.to_dict(data=False) for dataset in data.values()]
    stacked.attrs["structure"] = json.dumps(layouts)
    stacked.attrs["renamed"] = json.dumps(renamed)
    longest = _longest_line(point_coordinates, paths)
    return stacked if longest is None else stacked.swap_dims({POINT: names[longest]})


def unstack(stacked: xr.Dataset) -> dict[str, xr.Dataset]:
    """Points of :func:`stack`'s result, each with its variables, sizes and attributes."""
    layouts = json.loads(stacked.attrs["structure"])
    renamed = json.loads(stacked.attrs["renamed"])
    points = {}
    for index, (name, layout) in enumerate(zip(stacked[POINT].values, layouts, strict=True)):
        for key, entry in (layout["coords"] | layout["data_vars"]).items():
            variable = stacked.variables[renamed.get(key, key)]
            values = variable.values if key in layout["dims"] else variable.values[index]
            corner = tuple(map(slice, entry["shape"]))
            entry |= {"data": values[corner], "attrs": variable.attrs}
        points[str(name)] = xr.Dataset.from_dict(layout)
    return points


def _longer(key: object, current: xr.Variable, variable: xr.Variable) -> xr.Variable:
    """Longer of two coordinates, after a check that it begins with the other."""
    longer, shorter = (current, variable) if current.size >= variable.size else (variable, current)
    if not np.array_equal(longer.values[: shorter.size], shorter.values):
        values = shorter.values.tolist()
        raise InputError(f"coordinate {key}", values, "the same values at every point")
    return longer


def _pad(
    key: str, by_point: Mapping[str, xr.Variable], points: list[str], sizes: Mapping[str, int]
) -> xr.Variable:
    """The variable along ``point``, each point's values in the corner of its place."""
    first = next(iter(by_point.values()))
    dims = [variable.dims for variable in by_point.values()]
    if set(dims) != {first.dims}:
        raise InputError(f"variable {key}", dims, "the same at all points")
    shape = tuple(sizes[str(dim)] for dim in first.dims)
    shapes = {variable.shape for variable in by_point.values()}
    complete = len(by_point) == len(points) and shapes == {shape}
    encoding: dict[str, object] = {}
    if first.dtype.kind in "OU":
        values = np.full((len(points), *shape), "", object)
    elif complete:
        values = np.zeros((len(points), *shape), np.result_type(*by_point.values()))
    else:
        values = np.full((len(points), *shape), np.nan)
        encoding = {"zlib": True, "complevel": 1}  # padding takes no room on the disk
    for name, variable in by_point.items():
        corner = tuple(map(slice, variable.shape))
        values[points.index(name), ...][corner] = variable.values
    return xr.Variable((POINT, *first.dims), values, dict(first.attrs), encoding)


def column(values: Sequence[Scalar]) -> np.ndarray:
    """Values of one kind: integers, numbers (NaN if missing), or else words."""
    if all(isinstance(v, int) for v in values):
        return np.array(values, int)
    if all(isinstance(v, int | float) or v is None for v in values):
        return np.array([np.nan if v is None else v for v in values], float)
    return np.array(["" if v is None else str(v) for v in values], object)


def _longest_line(points: Sequence[Mapping[str, Scalar]], paths: Sequence[str]) -> str | None:
    """The path that takes most values while all others stay; None where none takes two."""
    frame = pd.DataFrame([*map(dict, points)], columns=[*paths], dtype="object")
    lengths = dict.fromkeys(paths, 1)
    for path in paths:
        others = [other for other in paths if other != path] or (lambda _: 0)
        lengths[path] = frame.groupby(others, dropna=False, sort=False)[path].nunique().max()
    longest = max(paths, key=lambda path: lengths[path], default=None)
    return None if longest is None or lengths[longest] < 2 else longest


def short_names(paths: Sequence[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Dotted path to its shortest unambiguous name: ``heads.frames.angle`` is ``angle``.

    Args:
        paths: dotted paths.
        reserved: names with another meaning.
    """
    out: dict[str, str] = {}
    for path in paths:
        parts = path.split(".")
        for k in range(1, len(parts) + 1):
            name = "_".join(parts[-k:])
            rivals = [p for p in paths if p != path and p.split(".")[-k:] == parts[-k:]]
            if not rivals and name not in reserved and name != "kind":
                break
        out[path] = name if name not in reserved else f"{name}_value"
    return out
