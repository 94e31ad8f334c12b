"""Checks of concrete arrays; traced values pass, since they have no value to look at."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sims.errors import InputError


def as_floats(field: str, value: Any) -> jax.Array:
    """A float64 array, or InputError when the value is not numeric or is ragged."""
    try:
        return jnp.asarray(value, jnp.float64)
    except (TypeError, ValueError):
        raise InputError(field, value, "a number or a rectangular list of numbers") from None


def is_concrete(array: Any) -> bool:
    """Whether the array's values can be looked at (false under jit, grad and vmap)."""
    return not isinstance(array, jax.core.Tracer)


def check_finite(field: str, array: Any) -> None:
    """Raise InputError when a concrete array holds a NaN or an infinity."""
    if is_concrete(array) and not bool(jnp.all(jnp.isfinite(array))):
        raise InputError(field, "NaN or infinity", "finite numbers")


def check_positive(field: str, value: Any) -> None:
    """Raise InputError when a concrete value has an entry that is not finite and > 0."""
    if is_concrete(value):
        bad = ~(np.isfinite(np.asarray(value)) & (np.asarray(value) > 0))
        if bad.any():
            raise InputError(field, np.asarray(value)[bad].flat[0].item(), "finite and > 0")


def check_non_negative(field: str, value: Any) -> None:
    """Raise InputError when a concrete value has an entry that is not finite and >= 0."""
    if is_concrete(value):
        bad = ~(np.isfinite(np.asarray(value)) & (np.asarray(value) >= 0))
        if bad.any():
            raise InputError(field, np.asarray(value)[bad].flat[0].item(), "finite and >= 0")


def check_count(field: str, value: int, least: int = 1) -> None:
    """Raise InputError when an integer is below its least allowed value."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(field, value, f"an integer >= {least}")
