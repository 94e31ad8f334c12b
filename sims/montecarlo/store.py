"""Finished results kept on disk, so that an interruption or a changed grid costs nothing.

NumPy archives rather than netCDF: they are read and written a hundred times faster, and nobody
but the next run reads them. No JAX.
"""

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import xarray as xr

from sims import files
from sims.errors import InputError


def save(data: xr.Dataset, path: Path) -> None:
    """Write a dataset, whole or not at all; the name ends in ``.npz``."""
    layout = {
        "dims": {str(k): v.dims for k, v in data.variables.items()},
        "coords": sorted(map(str, data.coords)),
        "attrs": {k: np.asarray(v).tolist() for k, v in data.attrs.items()},
    }
    # Text as objects would be pickled, and nothing pickled is loaded.
    arrays = {
        str(k): v.values.astype(str) if v.dtype.kind == "O" else v.values
        for k, v in data.variables.items()
    }
    arrays["__layout__"] = np.array(json.dumps(layout))
    archive = io.BytesIO()
    np.savez(archive, **arrays)  # type: ignore[arg-type]
    files.write(archive.getvalue(), path, f"checkpoint {path.stem}")


def load(path: Path) -> xr.Dataset | None:
    """A dataset written by :func:`save` under that name, or None if there is none to believe.

    One that is damaged, or is another's, is named on stderr: it is to be computed again.

    Raises:
        InputError: something else than a file has its name, so that it could not be kept.
    """
    files.check_target(path)
    if not path.exists():
        return None
    try:
        archive = files.read(path, f"checkpoint {path.stem}")
    except InputError as error:
        print(f"{path}: got {error.value!r}; it is computed again", file=sys.stderr)
        return None
    with np.load(io.BytesIO(archive), allow_pickle=False) as file:
        layout = json.loads(str(file["__layout__"]))
        variables = {k: (tuple(dims), file[k]) for k, dims in layout["dims"].items()}
    return xr.Dataset(variables, attrs=layout["attrs"]).set_coords(layout["coords"])


def prune(folder: Path, road: str, owner: str, keep: str) -> None:
    """Remove what an owner's run of a road left of earlier code or settings, and nobody else's.

    Args:
        folder: of the files ``…-road-owner-made.npz``, and of folders named alike.
        road: simulation or theory.
        owner: whose they are.
        keep: what they are made of now; those that are made of something else go.
    """
    for path in folder.glob(f"*-{road}-{owner}-*"):
        if path.stem.rpartition("-")[2] == keep:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
