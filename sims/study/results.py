"""Results: one labelled dataset per method and experiment, the same in memory and on disk.

``xr.open_dataset("results/standard/house/simulation.nc")`` shows the variables along the points,
with their coordinates (angle, kernel, n, …), so that ``.sel(n=200)`` selects: the dimension of
points is named after the coordinate with the longest line (:mod:`sims.study.stacking`), and
``.set_xindex("kernel")`` selects by another one. Every variable and coordinate has ``long_name``
and ``units``; the attributes say where the numbers come from. A file is read only if it is
intact and belongs to that experiment (:mod:`sims.base.files`).
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base import files
from sims.base.errors import InputError
from sims.study.describing import Words, attributes, described
from sims.study.stacking import Scalar, stack, unstack

ORDER = "order"
Coordinates = Mapping[str, Mapping[str, Scalar]]


@dataclass(frozen=True, repr=False)
class Results:
    """Simulated and predicted terms of one experiment.

    Attributes:
        estimates: point's name to its simulated terms.
        predictions: point's name to theory's terms, for the points that theory covers.
        coordinates: point's name to its coordinates: dotted path of the problem to a scalar or a
            label.
        provenance: method to its provenance; see :mod:`sims.study.provenance`.
        simulation: all estimates as one dataset, as in the file.
        theory: all predictions as one dataset, as in the file.
        digest: digest of both files (:func:`sims.base.files.digest`); empty if they were not read.
    """

    estimates: Mapping[str, xr.Dataset]
    predictions: Mapping[str, xr.Dataset]
    coordinates: Coordinates
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    simulation: xr.Dataset = field(default_factory=xr.Dataset)
    theory: xr.Dataset = field(default_factory=xr.Dataset)
    digest: str = ""

    @property
    def law(self) -> dict[str, np.ndarray]:
        """Theory's values by variable, of all problems along the first axis: its point ``law``."""
        variables = self.predictions["law"].variables
        return {str(name): variable.values for name, variable in variables.items()}

    @classmethod
    def load(cls, folder: Path, identity: str) -> "Results":
        """Results read from the files of theory and simulation.

        Args:
            folder: folder of simulation.nc and theory.nc.
            identity: experiment and fidelity that both files must have, "house at smoke".

        Raises:
            InputError: a file is damaged (:mod:`sims.base.files`), or theory's problem or points
                differ from the simulation's, unless theory is off the grid.
        """
        simulation = folder / "simulation.nc"
        theory = folder / "theory.nc"
        simulated = read(simulation, f"simulation.nc of {identity}")
        predicted = read(theory, f"theory.nc of {identity}")
        origin = json.loads(simulated.attrs["provenance"])
        source = json.loads(predicted.attrs["provenance"])
        if origin["problem"] != source["problem"]:
            allowed = f"the problem of {simulation}: predict or simulate again"
            raise InputError(str(theory), f"problem {source['problem']}", allowed)
        for name, made in origin.get("problems", {"": "without digest"}).items():
            if (other := source.get("problems", {}).get(name)) != made:
                allowed = f"the problem of {simulation}, {made}: simulate and predict again"
                raise InputError(str(theory), f"problem {name}, {other}", allowed)
        return cls(
            unstack(simulated),
            unstack(predicted),
            json.loads(simulated.attrs["points"]),
            {"simulation": origin, "theory": source},
            simulated,
            predicted,
            files.digest(simulation, theory),
        )


def assembled(
    data: Mapping[str, xr.Dataset],
    coordinates: Coordinates,
    provenance: Mapping[str, Any],
    variables: Mapping[str, Words] | None = None,
) -> xr.Dataset:
    """Labelled results of one method, in the form of a file.

    Args:
        data: point's name to its dataset.
        coordinates: point's name to its coordinates.
        provenance: provenance of the run, stored as JSON with its main facts as attributes.
        variables: descriptions of the experiment's variables and coordinates.
    """
    entries = {name: dict(coordinates.get(name, {})) for name in data}
    stacked = labelled(stack(data, coordinates), provenance, variables)
    return stacked.assign_attrs(points=_json(entries))


def labelled(
    data: xr.Dataset, provenance: Mapping[str, Any], variables: Mapping[str, Words] | None = None
) -> xr.Dataset:
    """The dataset with words and units, and with the provenance as attributes.

    The rest is as in :func:`assembled`.
    """
    facts = attributes(provenance)
    return described(data, variables).assign_attrs(facts, provenance=_json(provenance))


def write(data: xr.Dataset, path: str | Path, identity: str, packed: bool = False) -> None:
    """Write a dataset as netCDF, sealed with its ``identity``, and compressed if ``packed``."""
    netcdf = io.BytesIO()
    for variable in data.variables.values() if packed else ():
        text_only = {"dtype": "S1"} if variable.dtype.kind in "OU" else {}
        variable.encoding = {"zlib": True, "complevel": 9, "shuffle": True, **text_only}
    data.to_netcdf(netcdf, engine="h5netcdf")
    files.write(netcdf.getvalue(), path, identity)


def read(path: str | Path, identity: str | None = None) -> xr.Dataset:
    """A dataset that :func:`write` wrote, read into memory.

    Raises:
        InputError: the file is missing, damaged, or has another ``identity``.
    """
    content = files.read(path, identity)
    with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
        files.check_unpacked(str(path), data.nbytes, len(content))
        return data.load()


def is_current(path: str | Path, identity: str, fingerprint: str) -> bool:
    """True if a file is complete and was made by the code and settings of a fingerprint."""
    try:
        return bool(read(path, identity).attrs["fingerprint"] == fingerprint)
    except InputError:
        return False


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=lambda v: np.asarray(v).tolist())
