"""Kernels: how a head weighs a key, given the projected query and the projected keys."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from sims.errors import InputError

LogKernel = Callable[[Array, Array, Array], Array]
"""``(query (p, …), key (p, …), bandwidth ()) -> log K (…)``, coordinates first."""


LogRatio = Callable[[Array, Array, Array], Array]
"""``(query (p, …), key (p, …), anchor (p, …)) -> log K(q, k)/K(q, a) (…)`` at b = 1."""


@dataclass(frozen=True)
class Kernel:
    """A non-negative head kernel K(q, k) of the projected query q and key k.

    Attributes:
        name: as written in experiment files.
        log_value: ``(query, key, bandwidth) -> log K``. Coordinates come first: query (p, …) and
            key (p, …) broadcast against each other, and the result has shape (…). A compact
            kernel returns −inf where it vanishes. It depends on q/b and k/b alone, but for a term
            that is the same for every key (which cancels from the weights).
        log_ratio: optionally ``(query, key, anchor) -> log K(q, k) − log K(q, a)`` at b = 1, for
            any anchor a, without forming the two logarithms: small where k is near a, however
            far q is. The engine takes the point nearest q in the keys' bounding box, keeps
            float32 accurate by it, and is about 1.5 times faster.
    """

    name: str
    log_value: LogKernel
    log_ratio: LogRatio | None = None


def gaussian_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−‖q − k‖²/(2b²)``."""
    return -0.5 * jnp.sum(((query - key) / bandwidth) ** 2, axis=0)


def gaussian_log_ratio(query: Array, key: Array, anchor: Array) -> Array:
    """``⟨k − a, (q − a) − (k − a)/2⟩``, which is ``(‖q − a‖² − ‖q − k‖²)/2``."""
    return _over_coordinates(
        lambda q, k, a: (k - a) * ((q - a) - 0.5 * (k - a)), query, key, anchor
    )


def softmax_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``⟨q, k⟩/s`` with temperature s = b² (a Transformer's default is s = √d_k)."""
    return jnp.sum((query / bandwidth) * (key / bandwidth), axis=0)


def softmax_log_ratio(query: Array, key: Array, anchor: Array) -> Array:
    """``⟨q, k − a⟩``."""
    return _over_coordinates(lambda q, k, a: q * (k - a), query, key, anchor)


def _over_coordinates(term: Callable[..., Array], *points: Array) -> Array:
    # Written out, since XLA's CPU code for a sum over a short leading axis is many times slower.
    terms = [term(*(point[i] for point in points)) for i in range(points[0].shape[0])]
    return functools.reduce(operator.add, terms)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("gaussian", gaussian_log, gaussian_log_ratio),
        Kernel("softmax", softmax_log, softmax_log_ratio),
    )
}
"""Every kernel by its name."""


def get_kernel(kernel: "str | Kernel") -> Kernel:
    """The kernel of that name, or the kernel itself."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise InputError("heads.kernel", kernel, ", ".join(sorted(KERNELS)))
    return KERNELS[kernel]
