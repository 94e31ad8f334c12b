"""Datasets kept on disk while a study goes on: finished points, and the batches of unfinished ones.

NumPy archives rather than netCDF: they are read and written a hundred times faster, and nobody
but the next run reads them. No JAX.
"""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from sims.base import files
from sims.base.errors import InputError

SECONDS = 60.0
"""Between two writes of a run's batches: what a kill may cost."""


def save(data: xr.Dataset, path: Path) -> None:
    """Write a dataset, whole or not at all."""
    layout = json.dumps(data.to_dict(data=False), default=lambda v: np.asarray(v).tolist())
    # Text as objects would be pickled, and nothing pickled is loaded.
    arrays = {
        str(k): v.values.astype(str) if v.dtype.kind == "O" else v.values
        for k, v in data.variables.items()
    }
    archive = io.BytesIO()
    np.savez(archive, __layout__=np.array(layout), **arrays)  # type: ignore[arg-type]
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
        for name, variable in (layout["coords"] | layout["data_vars"]).items():
            variable["data"] = file[name]
    return xr.Dataset.from_dict(layout)


def load_or_compute(path: Path, compute: Callable[[Path], xr.Dataset]) -> xr.Dataset:
    """The dataset of that name, computed and kept if there is none to believe.

    Args:
        path: ``WHAT-MADE.npz``; files of the same WHAT, made of other code or settings, then go.
        compute: makes it; the file that it is given keeps what is unfinished, and then goes, too.
    """
    data = load(path)
    if data is None:
        data = compute(path.with_suffix(".part.npz"))
        save(data, path)
        for stale in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*"):
            if stale != path:
                stale.unlink(missing_ok=True)
    return data
