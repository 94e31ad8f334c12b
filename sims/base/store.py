"""Datasets kept on disk during a study: finished points, and batches of unfinished ones.

They are NumPy archives, which are a hundred times faster than netCDF, because only the next run
reads them. No JAX.
"""

import fcntl
import io
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import xarray as xr

from sims.base import files
from sims.base.errors import InputError

SECONDS = 60.0
"""Seconds between two saves of a run's batches: the most that a kill can cost."""


def save(data: xr.Dataset, path: Path) -> None:
    """Write a dataset, completely or not at all."""
    layout = json.dumps(data.to_dict(data=False), default=lambda v: np.asarray(v).tolist())
    # Text as objects would be pickled, and nothing pickled is loaded.
    arrays = {}
    for name, variable in data.variables.items():
        values = variable.values
        arrays[str(name)] = values.astype(str) if values.dtype.kind == "O" else values
    archive = io.BytesIO()
    np.savez(archive, __layout__=np.array(layout), **arrays)  # type: ignore[arg-type]
    files.write(archive.getvalue(), path, f"checkpoint {path.stem}")


def load(path: Path) -> xr.Dataset | None:
    """Dataset written by :func:`save` under a given name, or None if there is no valid one.

    A damaged or foreign file is named on stderr, and must be recomputed.

    Raises:
        InputError: the path is not a regular file, so that the dataset could not be saved.
    """
    files.check_target(path)
    if not path.exists():
        return None
    try:
        archive = files.read(path, f"checkpoint {path.stem}")
    except InputError as error:
        print(f"{path}: got {error.value!r}; recomputing it", file=sys.stderr)
        return None
    with np.load(io.BytesIO(archive), allow_pickle=False) as file:
        layout = json.loads(str(file["__layout__"]))
        for name, variable in (layout["coords"] | layout["data_vars"]).items():
            variable["data"] = file[name]
    return xr.Dataset.from_dict(layout)


def load_or_compute(path: Path, compute: Callable[[Path], xr.Dataset]) -> xr.Dataset:
    """Dataset with a given name, computed and saved if there is no valid one.

    Args:
        path: ``WHAT-MADE.npz``; files of the same WHAT with other code or settings are then
            removed.
        compute: function that computes it; its argument is a file for unfinished work, which is
            removed afterwards.
    """
    data = load(path)
    if data is None:
        data = compute(path.with_suffix(".part.npz"))
        save(data, path)
        for stale in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*"):
            if stale != path:
                stale.unlink(missing_ok=True)
    return data


def load_or_wait(path: Path, compute: Callable[[], Mapping[str, np.ndarray]]) -> xr.Dataset:
    """Arrays of a given name, which the first process that wants them computes, as others wait.

    The path is as of :func:`load_or_compute`. Where files have no locks, each may compute them.
    """

    def dataset(_: Path) -> xr.Dataset:
        variables = {}
        for name, values in compute().items():
            dims = [f"{name}_{axis}" for axis in range(np.ndim(values))]
            variables[name] = (dims, np.asarray(values))
        return xr.Dataset(variables)

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.stem.rpartition('-')[0]}.lock").open("w") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        return load_or_compute(path, dataset)
