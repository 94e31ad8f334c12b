"""Kernels: how a head weighs a key, given the projected query and the projected keys."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from sims.errors import InputError

LogKernel = Callable[[Array, Array, Array], Array]
"""``(query (p, …), key (p, …), bandwidth ()) -> log K (…)``, coordinates first."""


@dataclass(frozen=True)
class Kernel:
    """A non-negative head kernel K(q, k) of the projected query q and key k.

    Attributes:
        name: as written in experiment files.
        log_value: ``(query, key, bandwidth) -> log K``. Coordinates come first: query (p, …) and
            key (p, …) broadcast against each other, and the result has shape (…). A compact
            kernel returns −inf where it vanishes.
    """

    name: str
    log_value: LogKernel


def gaussian_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``−‖q − k‖²/(2b²)``."""
    return -0.5 * jnp.sum(((query - key) / bandwidth) ** 2, axis=0)


def softmax_log(query: Array, key: Array, bandwidth: Array) -> Array:
    """``⟨q, k⟩/s`` with temperature s = b² (a Transformer's default is s = √d_k)."""
    return jnp.sum((query / bandwidth) * (key / bandwidth), axis=0)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("gaussian", gaussian_log),
        Kernel("softmax", softmax_log),
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
