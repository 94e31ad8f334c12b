"""Finished results kept on disk, so that an interruption or a changed grid costs nothing.

NumPy archives rather than netCDF: they are read and written a hundred times faster, and nobody
but the next run reads them. No JAX.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import xarray as xr

from sims.files import replacing


def save(data: xr.Dataset, path: Path) -> None:
    """Write a dataset, whole or not at all; the name ends in ``.npz``."""
    layout = {
        "dims": {str(k): v.dims for k, v in data.variables.items()},
        "coords": sorted(map(str, data.coords)),
        "attrs": {k: np.asarray(v).tolist() for k, v in data.attrs.items()},
    }
    arrays = {str(k): v.values for k, v in data.variables.items()}
    arrays["__layout__"] = np.array(json.dumps(layout))
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]


def load(path: Path) -> xr.Dataset | None:
    """A dataset written by :func:`save`, or None if there is none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            layout = json.loads(str(file["__layout__"]))
            variables = {k: (tuple(dims), file[k]) for k, dims in layout["dims"].items()}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return xr.Dataset(variables, attrs=layout["attrs"]).set_coords(layout["coords"])


def prune(folder: Path, road: str, keep: str) -> None:
    """Remove a road's checkpoints of earlier code or settings: all that end otherwise."""
    for path in folder.glob(f"*-{road}-*.npz"):
        if not path.name.endswith(f"{keep}.npz"):
            path.unlink(missing_ok=True)
