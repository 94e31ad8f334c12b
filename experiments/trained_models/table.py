"""A model's measurements as a table in this folder, for those who have not installed the model.

    python -m experiments.trained_models.table SmolLM2 smollm2.npz results/paper/trained_models

writes it from results at paper. Numbers have nine binary digits, and of matrices of two heads that
are symmetric one half is kept.
"""

import io
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

from .simulate import DIMS, PAIR

PLANES = 3
"""Bytes of a number in single precision that are kept; the fourth is 0."""
LAST = np.uint32(1 << 15)
"""The last bit that is kept: eight of the 23 that follow the first digit."""
ASYMMETRIC = "merging"
"""The one matrix of two heads that depends on their order."""


def path_of(file: str) -> Path:
    """The path of a table in this folder."""
    return Path(__file__).with_name(file)


def halved(name: str, values: xr.DataArray, mirrored: bool = False) -> xr.DataArray:
    """A matrix of two heads with 0, or the mirror image, for heads in the second order.

    One that is not symmetric, and what is no matrix of two heads, stays as it is.
    """
    if PAIR[-1] not in values.dims or name == ASYMMETRIC:
        return values
    in_order = xr.DataArray(np.tri(values.sizes["head"], dtype=bool).T, dims=PAIR[1:])
    other = values.rename(head="head2", head2="head") if mirrored else 0
    return values.where(in_order, other)


def packed(values: np.ndarray) -> np.ndarray:
    """Numbers as planes of bytes, the highest first, which compress well; text as it is."""
    if values.dtype.kind != "f":
        return values.astype(str)
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + LAST // 2) // LAST * LAST
    return np.moveaxis(rounded.astype(">u4")[..., None].view(np.uint8), -1, 0)[:PLANES]


def unpacked(planes: np.ndarray) -> np.ndarray:
    """The numbers of some planes, or text."""
    if planes.dtype.kind == "U":
        return planes
    every = np.zeros((*planes.shape[1:], 4), np.uint8)
    every[..., :PLANES] = np.moveaxis(planes, 0, -1)
    return every.view(">f4")[..., 0].astype(float)


def keep(model: str, file: str, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Write a model's estimates by batch, and its predictors, as a table."""
    arrays = {}
    for name, values in {**simulation[[*DIMS]].data_vars, **theory.data_vars}.items():
        arrays[str(name)] = packed(halved(str(name), values).values)
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)  # type: ignore[arg-type]
    files.write(archive.getvalue(), path_of(file), f"table of {model}")


def load(model: str, file: str) -> xr.Dataset:
    """A model's estimates by batch, and its predictors.

    Raises:
        InputError: the table is missing, damaged, or another model's.
    """
    archive = files.read(path_of(file), f"table of {model}")
    table = xr.Dataset()
    with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
        for name in arrays:
            values = unpacked(arrays[name])
            dims = ("batch", *DIMS[name]) if name in DIMS else (*PAIR, "angle")[: values.ndim]
            table[name] = halved(name, xr.DataArray(values, dims=dims), mirrored=True)
    return table


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
