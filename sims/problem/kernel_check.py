"""Whether a kernel of one's own keeps the promises that the engine and exact theory build on."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.errors import InputError
from sims.problem.kernels import Kernel

RADII = np.array([0.02, 0.2, 0.5, 0.9, 1.3, 2.5, 6.0])
"""Distances of the probed keys from the query, in units of b."""
FORM = "log_value(query (p, …), key (p, …), bandwidth) -> (…) in jax.numpy, coordinates first"


@functools.lru_cache(maxsize=256)
def check_kernel(kernel: Kernel, width: int) -> None:
    """Evaluate a kernel at a few points and bandwidths.

    Args:
        kernel: as given by the user.
        width: p, the coordinates of a projected point.

    Raises:
        InputError: ``log_value`` fails, has another shape, or is NaN or +∞; ``scaled`` or
            ``support`` does not hold; ``log_ratio`` is not the difference of two ``log_value``.
    """
    field = f"heads.kernel {kernel.name!r}"
    rng = np.random.default_rng(0)
    query = rng.normal(size=(width, 3, 1))
    direction = rng.normal(size=(width, 3, len(RADII)))
    direction /= np.sqrt((direction**2).sum(0))
    for b in (0.5, 1.7):
        key = query + b * RADII * direction
        value, scaled = (
            _evaluate(field, kernel.log_value, q, k, s)
            for q, k, s in ((query, key, b), (query / b, key / b, 1.0))
        )
        for logs in (value, scaled):
            if np.isnan(logs).any() or np.isposinf(logs).any():
                allowed = "finite logarithms, or -inf where the kernel vanishes"
                raise InputError(field, logs[~np.isfinite(logs)][0].item(), allowed)
        if kernel.scaled and not _equal_weights(value, scaled):
            allowed = "Kernel(…, scaled=False), or a function of q/b and k/b alone"
            raise InputError(field, f"other weights at b = {b} than of q/b and k/b", allowed)
        if kernel.support is not None:
            outside = kernel.support < RADII
            if np.isfinite(value[:, outside]).any():
                allowed = "a kernel that is -inf from there on"
                raise InputError(field, f"support {kernel.support:g}", allowed)
    if kernel.log_ratio is not None:
        anchor = np.roll(key, 1, axis=2)
        ratio = _evaluate(field, kernel.log_ratio, query, key, anchor)
        far, near = (
            _evaluate(field, kernel.log_value, query, point, 1.0) for point in (key, anchor)
        )
        known = np.isfinite(far) & np.isfinite(near)
        if not np.allclose(ratio[known], (far - near)[known], rtol=1e-6, atol=1e-9):
            allowed = "log K(q, k) - log K(q, a) at b = 1"
            raise InputError(f"{field}, log_ratio", "another number", allowed)


def _evaluate(
    field: str,
    function: Callable[..., Array],
    query: np.ndarray,
    key: np.ndarray,
    last: np.ndarray | float,
) -> np.ndarray:
    try:
        # Also where heads are made inside a traced function, and as the engine will: compiled.
        with jax.ensure_compile_time_eval():
            value = jax.jit(function)(*map(jnp.asarray, (query, key, last)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(field, type(error).__name__, FORM) from error
    shape = np.broadcast_shapes(query.shape, key.shape)[1:]
    if np.shape(value) != shape:
        raise InputError(field, f"shape {np.shape(value)} for {shape}", FORM)
    return np.asarray(value)


def _equal_weights(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal but for a term that is the same for every key of a query."""
    known = np.isfinite(one)
    if (known != np.isfinite(other)).any():
        return False
    for a, b, some in zip(one, other, known, strict=True):
        gap = a[some] - b[some]
        if gap.size and np.ptp(gap) > 1e-6 * (1 + np.abs(a[some]).max()):
            return False
    return True
