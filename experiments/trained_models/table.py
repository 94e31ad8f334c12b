"""A model's measurements as a table in this folder, for those who have not installed the model.

    python -m experiments.trained_models.table SmolLM2 smollm2.nc.xz results/paper/trained_models

writes it from results at paper: netCDF, packed by LZMA, of numbers with nine binary digits.
"""

import lzma
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base import files
from sims.base.errors import InputError
from sims.montecarlo import Draw
from sims.study.results import read
from sims.study.stacking import unstack

from .simulate import DIMS

LAST = np.uint32(1 << 15)
"""The last bit that is kept: eight of the 23 that follow the first digit."""


def path_of(file: str) -> Path:
    """The path of a table in this folder."""
    return Path(__file__).with_name(file)


def rounded(values: np.ndarray) -> np.ndarray:
    """Numbers in single precision with nine binary digits, which pack well; text as it is."""
    if values.dtype.kind != "f":
        return values
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + LAST // 2) // LAST * LAST).view(np.float32)


def keep(model: str, file: str, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Write a model's estimates by batch, and its predictors, as a table."""
    estimates = simulation[[*DIMS]].drop_vars(simulation.coords)
    table = xr.apply_ufunc(rounded, estimates.merge(theory))
    packed = lzma.compress(table.to_netcdf(engine="scipy"))
    files.write(packed, path_of(file), f"table of {model}")


def load(model: str, file: str) -> xr.Dataset:
    """A model's estimates by batch, and its predictors.

    Raises:
        InputError: the table is missing, damaged, or another model's.
    """
    packed = files.read(path_of(file), f"table of {model}")
    return xr.load_dataset(lzma.decompress(packed), engine="scipy")


def stored_batch(draw: Draw, replicates: int, table: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A batch of a table's estimates (batch, …), whatever the number of replicates.

    Raises:
        InputError: the table has fewer batches.
    """
    count = len(table["keys"])
    if draw.batch >= count:
        raise InputError("simulation.batches", draw.batch + 1, f"up to {count}, as the table has")
    return {name: values[draw.batch] for name, values in table.items()}


if __name__ == "__main__":
    model, file, folder = sys.argv[1:]
    methods = [
        unstack(read(Path(folder, f"{name}.nc")))[model] for name in ("simulation", "theory")
    ]
    keep(model, file, *methods)
