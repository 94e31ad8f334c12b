"""Arrays of real numbers from what users give, zeros up to a shape, minima on grids. No JAX."""

from typing import Any

import numpy as np

from sims.base.errors import InputError


@np.errstate(invalid="ignore")
def real_numbers(field: str, value: Any) -> np.ndarray:
    """Value as a float64 array.

    Args:
        field: name of the argument, for errors.
        value: numbers, or lists of them.

    Raises:
        InputError: the value is not numeric or is ragged, or float64 would lose a mask, an
            imaginary part, digits of integers beyond 2⁵³ or of longer floats.
    """
    try:
        numbers = np.asarray(None if is_masked(value) else value)
        if numbers.dtype.kind not in "iuf" and numbers.size:  # no truth values, no text, no dates
            raise TypeError
        array = numbers.astype(float)
        if not np.array_equal(array.astype(numbers.dtype), numbers, equal_nan=True):
            raise TypeError
    except Exception:  # whatever an object's own conversion raises
        allowed = "a number or a rectangular list of numbers, real, unmasked and exact in float64"
        raise InputError(field, value, allowed) from None
    return array


def fill_up(values: np.ndarray, *sizes: int) -> np.ndarray:
    """The values with zeros behind them, up to these sizes of the last axes."""
    filled = np.zeros((*values.shape[: -len(sizes)], *sizes), values.dtype)
    filled[tuple(map(slice, values.shape))] = values
    return filled


def is_masked(value: Any) -> bool:
    """True if an entry of an array, or of one in a list, is masked; NumPy would drop the mask."""
    if isinstance(value, list | tuple):
        return any(map(is_masked, value))
    return bool(np.ma.is_masked(value))


def extremum(values: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """Index of the least value on a grid, (N,); NaN if it is censored.

    A minimum is censored at an end of the grid, or next to a point that is not valid.

    Args:
        values: (N, K).
        valid: (N, K) mask of values that count; None is all finite values.
    """
    good = np.isfinite(values) if valid is None else valid & np.isfinite(values)
    place = np.where(good, values, np.inf).argmin(1)
    padded = np.pad(good, ((0, 0), (1, 1)))
    rows = np.arange(len(values))
    inside = padded[rows, place] & padded[rows, place + 1] & padded[rows, place + 2]
    return np.where(inside, place, np.nan)
