"""Arrays of real numbers from what users give, and zeros up to a given shape. No JAX."""

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
