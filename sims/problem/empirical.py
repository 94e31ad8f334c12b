"""Keys from data: rows of a table, drawn with replacement."""

import hashlib
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats
from sims.base.errors import InputError
from sims.base.files import regular_file
from sims.problem.design_laws import ImageDesign

MOST_ROWS = 2**20
LARGEST_FILE = 2**30
"""Maximum size of a table in bytes."""
FORMATS = (
    "a table of numbers, a row a key: .npy (N, d), or .csv with commas between columns, points in "
    "decimals and at most one header: names, or numbers that count columns from 0 or 1"
)
SEPARATORS = {";": "semicolons", "\t": "tabs", " ": "blanks"}
"""Separators that files use instead of commas."""


LEAST_SPREAD, MOST_SPREAD = 1e-2, 1e2
"""Median distance of rows, in bandwidths, below which the weights of a smooth kernel differ by less
than 1e-4, and above which one key has all the weight."""


class EmpiricalDesign(ImageDesign):
    """Empirical distribution of N given rows: keys are drawn iid with replacement.

    Exactly, ``E X = r̄`` and ``Cov X = (1/N) Σ_i (r_i − r̄)(r_i − r̄)ᵀ`` (N, not N − 1); every
    expectation is a sum over rows, which exact theory computes. The distribution has no density.

    Args:
        rows: shape (N, d), 2 ≤ N ≤ 2²⁰; a repeated row counts once per repetition.

    Raises:
        InputError: the shape is wrong, or an entry is not finite.
    """

    rows: Float[Array, "N d"]

    def __init__(self, rows: ArrayLike) -> None:
        self.rows = as_floats("design.rows", rows)
        if self.rows.ndim != 2 or not self.rows.size or not 2 <= len(self.rows) <= MOST_ROWS:
            raise InputError("design.rows", self.rows.shape, f"shape (N, d), N 2 to {MOST_ROWS:,}")

    @property
    def dimension(self) -> int:
        return self.rows.shape[1]

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # One integer per row: a uniform float32 has too few digits for 10⁵ rows.
        return self.rows.astype(dtype)[jax.random.randint(key, (n,), 0, len(self.rows))]

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        """Rows chosen by the additional first coordinate of the normal points."""
        from scipy.special import ndtr

        place = np.minimum(ndtr(normal[:, 0]) * len(self.rows), len(self.rows) - 1).astype(int)
        return np.asarray(self.rows)[place]


def unit_cautions(rows: Array, frames: Array, bandwidth: Array) -> list[str]:
    """Caution if rows of data and a head's bandwidth appear to be in different units."""
    some = np.asarray(rows)[:: len(rows) // 200 + 1]
    heads = zip(np.asarray(frames), np.asarray(bandwidth), strict=True)
    for head, (frame, width) in enumerate(heads):
        keys = some @ frame
        spread = np.median(np.linalg.norm(keys[:, None] - keys, axis=2)) / width
        if not LEAST_SPREAD <= spread <= MOST_SPREAD:
            why = "the unit of heads.bandwidth may not be that of the data"
            return [f"rows are {spread:.2g} bandwidths apart in head {head} (median): {why}"]
    return []


def empirical(dimension: int, file: str, content: str | None = None) -> EmpiricalDesign:
    """Design of the rows of a data file, drawn with replacement: :class:`EmpiricalDesign`.

    Args:
        dimension: d, the columns of the file.
        file: path of a .npy or .csv file, in a YAML file relative to that file.
        content: expected digest of the file's bytes; None accepts any.

    Raises:
        InputError: the file cannot be read, is not a table of d columns, or has changed.
    """
    location = f"design.file {file}"
    path = regular_file(location, file, FORMATS, LARGEST_FILE)
    data = path.read_bytes()
    if content is not None and hashlib.sha256(data).hexdigest()[:16] != content:
        raise InputError(location, "changed", "the file as it was when it was read")
    try:
        rows = _array(path) if path.suffix == ".npy" else _table(data)
    except _NoTable as error:
        raise InputError(location, str(error), FORMATS) from None
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or rows.shape[1] != dimension:
        got = f"{rows.dtype.name} of shape {rows.shape}"
        raise InputError(location, got, f"numbers of shape (N, {dimension})")
    return EmpiricalDesign(rows)


class _NoTable(Exception):
    """Raised for a file that is not a table. Its content, which may be private, is not quoted."""


def _array(path: Path) -> np.ndarray:
    """Array of a .npy file, after its header is checked against the file's size.

    Raises:
        _NoTable: it holds none.
    """
    try:
        with np.errstate(over="raise"):
            return np.array(np.lib.format.open_memmap(path, mode="r"))
    except Exception:  # of NumPy, of parsing the header, of the memory map
        raise _NoTable("no whole array of numbers") from None


def _table(data: bytes) -> np.ndarray:
    """Numbers of a comma-separated text, whose first line may name or number the columns.

    Raises:
        _NoTable: it is no such table.
    """
    try:
        lines = data.decode("utf-8-sig").strip().splitlines() or [""]
    except UnicodeDecodeError:
        raise _NoTable("no text in UTF-8") from None
    first = list(map(str.strip, lines[0].split(",")))
    from_zero = list(map(str, range(len(first))))
    from_one = list(map(str, range(1, len(first) + 1)))
    try:
        np.array(first, float)
        header = len(first) > 1 and first in (from_zero, from_one)
    except ValueError:
        header = True
    rows = lines[header:]
    try:
        return np.loadtxt(rows, delimiter=",", ndmin=2) if rows else np.zeros((0, 0))
    except ValueError as error:
        for mark, name in SEPARATORS.items():
            if mark in rows[-1].replace(", ", ","):
                raise _NoTable(f"{name} between columns") from None
        place = re.search(r"at row \d+(, column \d+)?", str(error))
        raise _NoTable(f"no table of numbers {place[0] if place else ''}".strip()) from None
