"""Result files: one a road and experiment, and the two roads read back together.

Points whose datasets have the same structure share a group of the file (an xarray DataTree),
stacked along a ``point`` dimension: a group for every point would take minutes to read back.
Batches are padded with NaN to the longest point of the group and cut again on reading.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.errors import InputError
from sims.terms import BATCH, SCALARS

POINT = "point"


@dataclass(frozen=True)
class Results:
    """Both roads of one experiment.

    Attributes:
        experiment: its name.
        fidelity: smoke, standard or paper.
        points: point's name to its coordinates (dotted path of the problem to value).
        simulation: point's name to the estimated terms.
        theory: point's name to the predicted terms.
        provenance: road to its provenance; see :mod:`sims.provenance`.
    """

    experiment: str
    fidelity: str
    points: dict[str, dict[str, Any]]
    simulation: dict[str, xr.Dataset]
    theory: dict[str, xr.Dataset]
    provenance: dict[str, dict[str, Any]]

    @classmethod
    def load(cls, simulation: str | Path, theory: str | Path) -> "Results":
        """Read the two roads' files.

        Raises:
            InputError: a file cannot be read, or the two are not of the same points.
        """
        simulated, points, origin = read(simulation)
        predicted, other, source = read(theory)
        if points != other:
            raise InputError(str(theory), "other points", f"the points of {simulation}")
        return cls(
            origin["experiment"],
            origin["fidelity"],
            points,
            simulated,
            predicted,
            {"simulation": origin, "theory": source},
        )

    @property
    def replicates(self) -> int:
        """Replicates behind every point: the fewest of them."""
        return int(min(d.attrs.get("replicates", 0) for d in self.simulation.values()))

    def batches(self, name: str) -> int:
        """Batches of a point's estimates."""
        return int(self.simulation[name].sizes.get(BATCH, 0))

    def table(self) -> pd.DataFrame:
        """One row a point: name, coordinates, and for every scalar term three columns.

        ``<term>`` and ``<term>_mcse`` are the simulation's mean over batches and its Monte Carlo
        standard error, ``<term>_theory`` the prediction; ``n_eff`` is the mean over queries and
        heads, ``batches`` and ``replicates`` what was done.
        """
        rows = []
        for name, coordinates in self.points.items():
            estimate, prediction = self.simulation[name], self.theory[name]
            row: dict[str, Any] = {"name": name, **coordinates}
            for term in SCALARS:
                if term in estimate:
                    row[term] = float(np.mean(estimate[term].values))
                    row[f"{term}_mcse"] = float(estimate[f"{term}_mcse"].values)
                if term in prediction:
                    row[f"{term}_theory"] = float(prediction[term].values)
            if "n_eff" in prediction:
                row["n_eff"] = float(prediction["n_eff"].values.mean())
            row["batches"] = self.batches(name)
            row["replicates"] = int(estimate.attrs.get("replicates", 0))
            rows.append(row)
        return pd.DataFrame(rows)

    def pseudovalues(
        self, name: str, statistic: Callable[[Mapping[str, np.ndarray]], np.ndarray]
    ) -> np.ndarray:
        """Jackknife pseudo-values, one a batch, of a function of a point's scalar terms.

        Their mean is the estimate with its leading bias removed, their spread gives its MCSE
        (:func:`mean_and_error`); and since points share draws batch by batch, the difference of
        two points' values is a paired contrast.

        Args:
            name: of the point.
            statistic: from the terms' means (``terms["mse"]``, …) to a number; elementwise.
        """
        scalars = {
            str(key): variable.values
            for key, variable in self.simulation[name].data_vars.items()
            if variable.dims == (BATCH,)
        }
        count = self.batches(name)
        left_out = {k: (v.sum() - v) / (count - 1) for k, v in scalars.items()}
        full = statistic({k: v.mean() for k, v in scalars.items()})
        return count * full - (count - 1) * np.asarray(statistic(left_out))


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean of iid batches and its Monte Carlo standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def common(*batches: np.ndarray) -> list[np.ndarray]:
    """Batches (first axis) that all have: the first ones, which share their draws."""
    count = min(len(b) for b in batches)
    return [b[:count] for b in batches]


def write(
    data: Mapping[str, xr.Dataset],
    points: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, Any],
    path: str | Path,
) -> None:
    """Write one road's results atomically: a file that exists is whole.

    Args:
        data: point's name to its dataset.
        points: point's name to its coordinates.
        provenance: of the run, kept as JSON in the root's attributes.
        path: the file.
    """
    groups: dict[str, list[str]] = {}
    for name, dataset in data.items():
        groups.setdefault(_structure(dataset), []).append(name)
    tree = {
        f"group{index}": _stack({name: data[name] for name in names})
        for index, names in enumerate(groups.values())
    }
    tree["/"] = xr.Dataset(
        attrs={
            "provenance": _json(provenance),
            "points": _json({name: dict(points.get(name, {})) for name in data}),
        }
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        xr.DataTree.from_dict(tree).to_netcdf(temporary, engine="h5netcdf")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(
    path: str | Path,
) -> tuple[dict[str, xr.Dataset], dict[str, dict[str, Any]], dict[str, Any]]:
    """One road's results: datasets, coordinates and provenance, by name of point.

    Raises:
        InputError: the file is not there or was not written by :func:`write`.
    """
    try:
        groups = xr.open_groups(path, engine="h5netcdf")
        root = groups.pop("/")
        found: dict[str, xr.Dataset] = {}
        for stacked in groups.values():
            with stacked:
                found |= _unstack(stacked.load())
        root.close()
        points = json.loads(root.attrs["points"])
        return {name: found[name] for name in points}, points, json.loads(root.attrs["provenance"])
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: Exception) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(str(path), "no file", "a result file: run sims simulate and sims predict")
    return InputError(str(path), type(error).__name__, "a result file of a run")


def provenance(path: str | Path) -> dict[str, Any]:
    """The provenance of a result file alone."""
    try:
        with xr.open_dataset(path, engine="h5netcdf") as root:
            return json.loads(root.attrs["provenance"])
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None


def _structure(data: xr.Dataset) -> str:
    """Datasets with the same text can be stacked (batches apart)."""
    sizes = sorted((d, n) for d, n in data.sizes.items() if d != BATCH)
    variables = sorted((str(k), v.dims, v.dtype.kind) for k, v in data.variables.items())
    return repr((sizes, variables, sorted(map(str, data.coords))))


def _stack(data: Mapping[str, xr.Dataset]) -> xr.Dataset:
    first = next(iter(data.values()))
    longest = max(d.sizes.get(BATCH, 0) for d in data.values())
    variables = {}
    for key, variable in first.variables.items():
        values = [_padded(d.variables[key], longest) for d in data.values()]
        # A coordinate named as its dimension cannot have a second one: stored under another name.
        variables[f"{key}__coordinate" if key in variable.dims else key] = (
            (POINT, *variable.dims),
            np.stack(values),
        )
    return xr.Dataset(
        variables,
        {POINT: list(data)},
        {
            "coordinate_names": _json(sorted(map(str, first.coords))),
            "batches": [d.sizes.get(BATCH, 0) for d in data.values()],
            "attributes": _json([_plain(d.attrs) for d in data.values()]),
        },
    )


def _unstack(stacked: xr.Dataset) -> dict[str, xr.Dataset]:
    names = [str(name) for name in stacked[POINT].values]
    batches = np.atleast_1d(stacked.attrs["batches"])
    attributes = json.loads(stacked.attrs["attributes"])
    coordinates = json.loads(stacked.attrs["coordinate_names"])
    out = {}
    for index, name in enumerate(names):
        variables = {}
        for key, variable in stacked.variables.items():
            if key == POINT:
                continue
            values, dims = variable.values[index], variable.dims[1:]
            if BATCH in dims:
                values = values[(slice(None),) * dims.index(BATCH) + (slice(int(batches[index])),)]
            variables[str(key).removesuffix("__coordinate")] = (dims, values)
        out[name] = xr.Dataset(variables, attrs=attributes[index]).set_coords(coordinates)
    return out


def _padded(variable: xr.Variable, batches: int) -> np.ndarray:
    values = variable.values
    if BATCH not in variable.dims or variable.sizes[BATCH] == batches:
        return values
    axis = variable.dims.index(BATCH)
    widths = [(0, batches - n if i == axis else 0) for i, n in enumerate(values.shape)]
    filler = np.nan if values.dtype.kind == "f" else 0
    return np.pad(values, widths, constant_values=filler)


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in attrs.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=lambda v: np.asarray(v).tolist())
