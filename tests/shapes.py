"""The check of array shapes in tests: every annotation of jaxtyping, at every call.

Other annotations are left to mypy: functions of the suite refuse unusable input themselves, in one
line, and the tests hand them such input.
"""

import types
import typing
from collections.abc import Callable

import jax
import numpy as np
from beartype import beartype
from jaxtyping import AbstractArray


def checked(function: Callable) -> Callable:
    """The function with its shape annotations, and only these, checked at run time.

    Arrays of NumPy pass for arrays of JAX: closed forms run on either.
    """
    hints = {name: _either(hint) for name, hint in function.__annotations__.items()}
    function.__annotations__ = {name: hint for name, hint in hints.items() if hint is not None}
    return beartype(function)


def _either(hint: object) -> object:
    """The hint with NumPy's arrays allowed; None if it is not all of shaped arrays."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        if not issubclass(hint, AbstractArray):
            return None
        arrays = hint.dtype[jax.Array | np.ndarray, hint.dim_str]
        return arrays | np.number  # NumPy's sums of vectors are numbers
    if typing.get_origin(hint) not in (types.UnionType, typing.Union, tuple):
        return None
    parts = [p if p is types.NoneType else _either(p) for p in typing.get_args(hint)]
    if None in parts:
        return None
    whole = tuple if typing.get_origin(hint) is tuple else typing.Union
    return whole[tuple(parts)]
