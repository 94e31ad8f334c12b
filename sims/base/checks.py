"""Checks of arguments, and random keys of seeds. Traced arrays pass, since they have no values.

The checks use NumPy: in JAX each would compile a program at every start.
"""

import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from sims.base import threefry
from sims.base.arrays import is_masked, real_numbers
from sims.base.errors import InputError

HUGE = 1e100
"""Largest number that a user may give, and 1/HUGE the smallest positive one: squares, their sums
and quotients stay finite."""


def as_floats(field: str, value: ArrayLike, *shapes: tuple[int, ...]) -> jax.Array:
    """Float64 array of finite numbers, as :func:`as_numbers`."""
    array = as_numbers(field, value, *shapes)
    check_finite(field, array)
    return array


def as_numbers(field: str, value: ArrayLike, *shapes: tuple[int, ...]) -> jax.Array:
    """Float64 array of a user's numbers.

    Args:
        field: name of the argument, for errors.
        value: numbers, or lists of them.
        shapes: allowed shapes, () first; none allows any.

    Raises:
        InputError: as :func:`sims.base.arrays.real_numbers`, or the shape is not allowed.
    """
    real = [jnp.floating] if is_concrete(value) else [jnp.floating, jnp.integer]
    if isinstance(value, jax.Array) and any(jnp.issubdtype(value.dtype, kind) for kind in real):
        array = jnp.asarray(value, jnp.float64)
    else:
        array = on_device(real_numbers(field, value))
    if shapes and array.shape not in shapes:
        allowed = " or ".join(f"shape {shape}" if shape else "a number" for shape in shapes)
        raise InputError(field, array.shape, allowed)
    return array


def on_device(array: np.ndarray) -> jax.Array:
    """JAX array of the same values; ``jnp.asarray`` would compile a program for every new shape."""
    with jax.ensure_compile_time_eval():
        return jax.device_put(array)


def is_concrete(array: ArrayLike) -> bool:
    """True if the array has values (false under jit, grad and vmap)."""
    return not isinstance(array, jax.core.Tracer)


def check_finite(field: str, array: ArrayLike) -> None:
    """Raise InputError when a concrete array holds a NaN, an infinity or a number near it."""
    if is_concrete(array) and not (np.abs(np.asarray(array)) <= HUGE).all():
        raise InputError(field, "NaN or infinity", f"finite numbers, at most {HUGE:g}")


def check_positive(field: str, value: ArrayLike) -> None:
    """Raise InputError when a concrete value has an entry that is not finite and > 0."""
    check_within(field, value, 1 / HUGE, words="finite and > 0, ")


def check_non_negative(field: str, value: ArrayLike) -> None:
    """Raise InputError when a concrete value has an entry that is not finite and >= 0."""
    check_within(field, value, 0.0, words="finite and >= 0, ")


def check_within(
    field: str, value: ArrayLike, minimum: float, maximum: float = HUGE, words: str = ""
) -> None:
    """Raise InputError when a concrete value has an entry outside a range."""
    if is_concrete(value):
        allowed = f"{words}{minimum:g} to {maximum:g}"
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or is_masked(value):
            raise InputError(field, value, allowed)
        bad = ~((array >= minimum) & (array <= maximum))
        if bad.any():
            raise InputError(field, array[bad].flat[0].item(), allowed)


def check_count(field: str, value: int, minimum: int = 1) -> None:
    """Raise InputError when an integer is below its least allowed value."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InputError(field, value, f"an integer >= {minimum}")


def check_covariance(field: str, matrix: Array) -> None:
    """Raise InputError unless a finite matrix is square, symmetric, positive semidefinite."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(field, matrix.shape, "a square matrix (d, d)")
    if is_concrete(matrix):
        values = np.asarray(matrix)
        # Rounding of eigenvalues of a singular Σ stays far below this; a real defect does not.
        scale = max(np.abs(values).max(), np.finfo(float).tiny)
        asymmetry = np.abs(values - values.T).max()
        if asymmetry > 1e-10 * scale:
            raise InputError(field, f"asymmetry {asymmetry:.3g}", "symmetric")
        smallest = np.linalg.eigvalsh(values)[0]
        if smallest < -1e-10 * scale * len(values):
            allowed = "positive semidefinite (no eigenvalue below 0)"
            raise InputError(field, f"eigenvalue {smallest:.6g}", allowed)


def seeded_key(field: str, seed: int) -> np.ndarray:
    """Random key (:mod:`sims.base.threefry`) of a seed in a named field.

    The field enters the key: the same seed in two fields gives independent draws. Otherwise the
    default seeds would give frames, target, queries and Σ's eigenbasis the same normals.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InputError(field, seed, "an integer from 0 to 2**63 - 1")
    return threefry.fold_in(threefry.root(int(seed)), zlib.crc32(field.encode()))


def device_key(field: str, seed: int) -> Array:
    """:func:`seeded_key` as a key of :mod:`jax.random`."""
    return jax.random.wrap_key_data(on_device(seeded_key(field, seed)), impl="threefry2x32")


def evaluate_calls(
    field: str, function: Callable[..., Any], form: str, *calls: tuple[Any, ...]
) -> list[np.ndarray]:
    """Values of a user's function at a few points, compiled together as in the engine.

    Args:
        field: name of the function's field, for errors.
        function: function of points, in ``jax.numpy``.
        form: allowed form, for errors.
        calls: for each call the expected shape of the values, then the arguments.

    Raises:
        InputError: the function fails or returns another shape.
    """
    try:
        # This also works inside a traced function.
        with jax.ensure_compile_time_eval():
            points = [tuple(map(np.asarray, arguments)) for _, *arguments in calls]
            program = jax.jit(
                lambda points: [jnp.asarray(function(*arguments)) for arguments in points]
            )
            values = [np.asarray(value) for value in program(points)]
    except InputError:
        raise
    except Exception as error:
        if isinstance(error, jax.errors.JAXTypeError):
            form += "; code of another library is for sims.montecarlo.HostReplicates"
        raise InputError(field, error_summary(error), form) from error
    for value, (shape, *_) in zip(values, calls, strict=True):
        if value.shape != shape:
            raise InputError(field, f"shape {value.shape} for {shape}", form)
        if value.dtype.kind not in "iuf":
            raise InputError(field, f"{value.dtype} values", f"real numbers, {form}")
    return values


def error_summary(error: Exception) -> str:
    """Kind of an exception and the first line of its text, for a one-line error.

    JAX's tracing exceptions are shortened to one statement.
    """
    kind = type(error).__name__
    lines = str(error).strip().splitlines()
    if isinstance(error, jax.errors.JAXTypeError):
        return f"{kind}: JAX cannot trace it"
    return f"{kind}: {lines[0][:120]}" if lines else kind
