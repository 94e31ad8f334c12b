"""Types of arrays that the theory's formulas take."""

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Numbers = Array | np.ndarray
"""Arrays of JAX, or of NumPy where nothing needs compiling or they wait to be packed."""
Number = Array | np.ndarray | float | int
"""One number, or an array that broadcasts."""


def namespace(array: Numbers) -> ModuleType:
    """``numpy`` or ``jax.numpy``, by what the array is."""
    return np if isinstance(array, np.ndarray) else jnp


State = TypeVar("State", bound=tuple[Numbers, ...])


def repeated(step: Callable[..., State], state: State, count: int) -> State:
    """The state after so many steps ``step(*state) -> state``, as a loop of one program in JAX."""
    if namespace(state[0]) is jnp:
        return jax.lax.fori_loop(0, count, lambda _, current: step(*current), state)
    for _ in range(count):
        state = step(*state)
    return state
