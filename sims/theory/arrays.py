"""Types of arrays that the theory's formulas take."""

from types import ModuleType

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
