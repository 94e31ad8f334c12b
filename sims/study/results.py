"""Results: one labelled dataset a road and experiment, the same in memory and on disk.

``xr.open_dataset("results/standard/hierarchy/simulation.nc")`` shows the variables along the
points, with their coordinates (angle, kernel, n, …), so that ``.sel(n=200)`` selects: the dimension
of points has the name of the coordinate with the longest line (:mod:`sims.study.stacking`), and
``.set_xindex("kernel")`` lets another one select. Theory has a dimension ``order`` (first, exact).
Every variable and coordinate has ``long_name`` and ``units``; the attributes say where the numbers
come from. A file that is read is whole, and of that experiment (:mod:`sims.files`).
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims import files
from sims.errors import InputError, one_of
from sims.study.describing import Words, attributes, described
from sims.study.stacking import Scalar, stack, unstack
from sims.terms import BATCH, SCALARS

ORDER = "order"
Coordinates = Mapping[str, Mapping[str, Scalar]]


@dataclass(frozen=True)
class Results:
    """Both roads of one experiment.

    Attributes:
        experiment: its name.
        fidelity: smoke, standard or paper.
        estimates: point's name to its simulated terms.
        predictions: point's name to theory's terms, along ``order`` where there are several. Every
            point of the grid has some; a unit of the experiment's own may have none.
        settings: the experiment's own settings at this fidelity.
        coordinates: point's name to its coordinates: dotted path of the problem to a scalar or the
            label of what is no scalar.
        problems: point's name to its whole problem as written in the file; empty without a grid.
        provenance: road to its provenance; see :mod:`sims.provenance`.
        simulation: all estimates as one dataset, as the file has them.
        theory: all predictions as one dataset, as the file has them.
        digest: of simulation.nc and theory.nc (:func:`sims.files.digest`); empty if not read.
    """

    experiment: str
    fidelity: str
    estimates: Mapping[str, xr.Dataset]
    predictions: Mapping[str, xr.Dataset]
    settings: Mapping[str, Any]
    coordinates: Coordinates
    problems: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    simulation: xr.Dataset = field(default_factory=xr.Dataset, repr=False)
    theory: xr.Dataset = field(default_factory=xr.Dataset, repr=False)
    digest: str = ""

    def __repr__(self) -> str:
        return f"Results({self.experiment} at {self.fidelity}, {len(self.estimates)} points)"

    @classmethod
    def load(cls, folder: Path, settings: Mapping[str, Any], whose: str) -> "Results":
        """Read the two roads' files.

        Args:
            folder: with simulation.nc and theory.nc.
            settings: of the experiment at its fidelity.
            whose: the experiment and the fidelity that both have to be of, "house at smoke".

        Raises:
            InputError: a file cannot be believed (:mod:`sims.files`), or theory's problem or points
                are not the simulation's. Off the grid theory may have others.
        """
        simulation, theory = folder / "simulation.nc", folder / "theory.nc"
        simulated = read(simulation, f"simulation.nc of {whose}")
        predicted = read(theory, f"theory.nc of {whose}")
        origin, source = (json.loads(d.attrs["provenance"]) for d in (simulated, predicted))
        points, other = (json.loads(d.attrs["points"]) for d in (simulated, predicted))
        if origin["problem"] != source["problem"]:
            allowed = f"the problem of {simulation}: predict or simulate again"
            raise InputError(str(theory), f"problem {source['problem']}", allowed)
        problems = {name: entry["problem"] for name, entry in points.items() if entry["problem"]}
        same = all(e["problem"] == problems.get(k) for k, e in other.items())
        if not same or not problems.keys() <= other.keys():
            raise InputError(str(theory), "other points", f"the points of {simulation}")
        return cls(
            origin["experiment"],
            origin["fidelity"],
            unstack(simulated),
            unstack(predicted),
            settings,
            {name: entry["coordinates"] for name, entry in points.items()},
            problems,
            {"simulation": origin, "theory": source},
            simulated,
            predicted,
            files.digest(simulation, theory),
        )

    @property
    def points(self) -> list[str]:
        """Names of the points that were simulated."""
        return list(self.estimates)

    def prediction(self, point: str, order: str = "first") -> xr.Dataset:
        """Theory at one point, of one order.

        Raises:
            InputError: there is no prediction of that order, or none at all.
        """
        if point not in self.predictions:
            allowed = one_of(self.predictions, point) or "none"
            raise InputError("point with theory", point, allowed)
        own = self.predictions[point]
        if ORDER not in own.dims:
            return own
        orders = self.orders(point)
        if order not in orders:
            raise InputError(f"order at point {point}", order, one_of(orders, order))
        # Kept: effects ask for the same one again and again, and cutting a dataset takes long.
        if (point, order) not in self._by_order:
            self._by_order[point, order] = own.isel({ORDER: orders.index(order)})
        return self._by_order[point, order]

    @cached_property
    def _by_order(self) -> dict[tuple[str, str], xr.Dataset]:
        return {}

    def orders(self, point: str) -> list[str]:
        """The orders of theory that were computed at a point."""
        own = self.predictions.get(point, xr.Dataset())
        return [str(order) for order in own[ORDER].values] if ORDER in own.dims else []

    def number(self, point: str, path: str) -> float:
        """A point's coordinate that is a number; NaN where it has none.

        Args:
            point: its name.
            path: dotted path of the problem, or the unit's own name of the coordinate.

        Raises:
            InputError: the points have no such coordinate, or it is no number there.
        """
        own = self.coordinates[point]
        if path not in own:
            raise InputError(f"coordinate of point {point}", path, one_of(own, path) or "none")
        value = own[path]
        if isinstance(value, str):
            raise InputError(f"{path} at point {point}", value, "a number")
        return np.nan if value is None else float(value)

    @property
    def replicates(self) -> int:
        """Replicates behind every point: the fewest of them."""
        return min(self.replicates_at(point) for point in self.points)

    def replicates_at(self, point: str) -> int:
        """Replicates behind a point's estimates."""
        return int(self.estimates[point].attrs.get("replicates", 0))

    def batches(self, point: str) -> int:
        """Batches of a point's estimates."""
        return int(self.estimates[point].sizes.get(BATCH, 0))

    def table(self, order: str = "first") -> pd.DataFrame:
        """One row a point: name, coordinates, and three columns for every scalar, terms first.

        ``<term>`` and ``<term>_mcse`` are the simulation's mean over batches and its Monte Carlo
        standard error, ``<term>_theory`` the prediction; ``n_eff`` is the mean over queries and
        heads, ``batches`` and ``replicates`` what was done.

        Args:
            order: of the predictions; points that have none of it have no theory in the table.

        Raises:
            InputError: no point has a prediction of that order.
        """
        orders = {known for name in self.points for known in self.orders(name)}
        if orders and order not in orders:
            raise InputError("order", order, one_of(sorted(orders), order))
        rows = []
        for name in self.points:
            estimate = self.estimates[name]
            prediction = self.prediction(name, order) if name in self.predictions else xr.Dataset()
            row: dict[str, Any] = {"name": name, **self.coordinates[name]}
            sampled = [str(k) for k, v in estimate.data_vars.items() if v.dims == (BATCH,)]
            predicted = [str(k) for k, v in prediction.data_vars.items() if not v.dims]
            for term in dict.fromkeys([*SCALARS, *sampled, *predicted]):
                if term in sampled:
                    row[term] = float(np.mean(estimate[term].values))
                    row[f"{term}_mcse"] = float(estimate[f"{term}_mcse"])
                if term in predicted:
                    row[f"{term}_theory"] = float(prediction[term])
            if "n_eff" in prediction:
                row["n_eff"] = float(prediction["n_eff"].mean())
            rows.append(row | {"batches": self.batches(name)})
            rows[-1]["replicates"] = self.replicates_at(name)
        return pd.DataFrame(rows)


def assembled(
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    problems: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, Any],
    variables: Mapping[str, Words] | None = None,
) -> xr.Dataset:
    """One road's results as they stand in memory and in the file.

    Args:
        data: point's name to its dataset.
        coordinates: point's name to its coordinates.
        problems: point's name to its whole problem, where it is on a grid.
        provenance: of the run, kept as JSON in the attributes, its facts for readers beside it.
        variables: what the experiment's own variables and coordinates are.
    """
    stacked = stack(data, coordinates)
    entries = {
        name: {"coordinates": dict(coordinates.get(name, {})), "problem": problems.get(name)}
        for name in data
    }
    return described(stacked, variables).assign_attrs(
        **attributes(provenance), provenance=_json(provenance), points=_json(entries)
    )


def write(data: xr.Dataset, path: str | Path, of: str) -> None:
    """Write one road's results as netCDF, sealed as what they are ``of`` (:mod:`sims.files`)."""
    netcdf = io.BytesIO()
    data.to_netcdf(netcdf, engine="h5netcdf")
    files.write(netcdf.getvalue(), path, of)


def read(path: str | Path, of: str | None = None) -> xr.Dataset:
    """One road's results in memory.

    Raises:
        InputError: the file is not there, is damaged, or is not what it has to be ``of``.
    """
    with xr.open_dataset(io.BytesIO(files.read(path, of)), engine="h5netcdf") as data:
        return data.load()


def provenance(path: str | Path, of: str) -> dict[str, Any]:
    """The provenance of a result file alone.

    Raises:
        InputError: as :func:`read`.
    """
    return dict(json.loads(read(path, of).attrs["provenance"]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=lambda v: np.asarray(v).tolist())
