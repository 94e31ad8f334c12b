"""Checks of a user's kernel: the properties that the engine and exact theory rely on."""

import functools
from typing import Any

import numpy as np

from sims.base.checks import evaluate_calls
from sims.base.errors import InputError
from sims.problem.kernels import Kernel

RADII = np.array([0.0, 0.02, 0.2, 0.5, 0.9, 1.3, 2.5, 6.0])
"""Distances of the probed keys from the query, in units of b."""
FORM = "log_value(query (p, …), key (p, …), bandwidth) -> (…) in jax.numpy, coordinates first"


@functools.lru_cache(maxsize=256)
def check_kernel(kernel: Kernel, width: int) -> None:
    """Check a kernel at a few points and bandwidths.

    Args:
        kernel: the user's kernel.
        width: p, the number of coordinates of a projected point.

    Raises:
        InputError: ``log_value`` fails, has another shape, or is NaN or +∞; ``scaled`` or
            ``support`` does not hold; ``log_ratio`` is not the difference of two ``log_value``.
    """
    from scipy.special import log_softmax

    field = f"heads.kernel {kernel.name!r}"
    rng = np.random.default_rng(0)
    query = rng.normal(size=(width, 3, 1))
    direction = rng.normal(size=(width, 3, len(RADII)))
    direction /= np.linalg.norm(direction, axis=0)
    shape = direction.shape[1:]
    bandwidths = (0.5, 1.7)
    keys = [query + b * RADII * direction for b in bandwidths]
    calls: list[tuple[Any, ...]] = []
    for b, key in zip(bandwidths, keys, strict=True):
        calls += [(shape, query, key, b), (shape, query / b, key / b, 1.0)]
    values = evaluate_calls(field, kernel.log_value, FORM, *calls)
    for b, value, scaled in zip(bandwidths, values[::2], values[1::2], strict=True):
        unusable = ~(np.maximum(value, scaled) < np.inf)
        if unusable.any():
            place = RADII[np.argwhere(unusable)[0][-1]]
            allowed = "finite logarithms, or -inf where the kernel vanishes"
            raise InputError(field, f"NaN or infinity at distance {place:g} b", allowed)
        with np.errstate(invalid="ignore"):  # where a kernel vanishes at all keys
            weights, scaled_weights = log_softmax([value, scaled], axis=2)
        if kernel.scaled and not np.allclose(
            weights, scaled_weights, rtol=1e-6, atol=1e-6, equal_nan=True
        ):
            allowed = "Kernel(…, scaled=False), or a function of q/b and k/b alone"
            raise InputError(field, f"different weights at b = {b} and at q/b, k/b", allowed)
        beyond = (np.inf if kernel.support is None else kernel.support) < RADII
        if np.isfinite(value[:, beyond]).any():
            allowed = "a kernel that is -inf from there on"
            raise InputError(field, f"support {kernel.support:g}", allowed)
    if kernel.log_ratio is not None:
        key = keys[1]
        anchor = np.roll(keys[1], 1, axis=2)
        (ratio,) = evaluate_calls(field, kernel.log_ratio, FORM, (shape, query, key, anchor))
        of_key = (shape, query, key, 1.0)
        of_anchor = (shape, query, anchor, 1.0)
        far, near = evaluate_calls(field, kernel.log_value, FORM, of_key, of_anchor)
        finite = np.isfinite(far) & np.isfinite(near)
        if not np.allclose(ratio[finite], (far - near)[finite], rtol=1e-6, atol=1e-9):
            allowed = "log K(q, k) - log K(q, a) at b = 1"
            raise InputError(f"{field}, log_ratio", "a different number", allowed)
