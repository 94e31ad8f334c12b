"""How JAX is set up, in one place: precision, host devices, memory.

Importing :mod:`sims.problem` applies it, so every entry point computes alike.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

from sims.errors import InputError

Item = TypeVar("Item")
Out = TypeVar("Out")


def host_devices() -> int:
    """How many cores to use: ``SIMS_HOST_DEVICES``, or all that this process may run on."""
    text = os.environ.get("SIMS_HOST_DEVICES")
    if text is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not text.isdigit() or int(text) < 1:
        raise InputError("SIMS_HOST_DEVICES", text, "a positive integer")
    return int(text)


def configure() -> None:
    """Set 64-bit mode, exact float32 products and one CPU device per core.

    - Theory is float64 throughout; the engine asks for float32 explicitly where it is enough.
    - ``highest`` matmul precision keeps accelerators from silently rounding products to TF32.
    - One host device per core: a single jit call leaves CPU cores idle, sharding over host
      devices does not. ``SIMS_HOST_DEVICES`` overrides the number.
    - Without preallocation several jobs can share one GPU.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_threefry_partitionable", True)
    # A host program may have started JAX already; the engine then uses the devices it finds.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", host_devices())


def in_threads(function: Callable[[Item], Out], items: Iterable[Item]) -> list[Out]:
    """``function`` of each item, in order, in a thread a core: XLA and NumPy release Python's lock.

    An exception stops what has not begun, and is raised.
    """
    with ThreadPoolExecutor(host_devices()) as pool:
        try:
            return list(pool.map(function, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
