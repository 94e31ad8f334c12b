"""Set-up of JAX, in one place: precision, host devices, memory.

Importing :mod:`sims.problem` applies it, so every entry point computes alike.
"""

import contextlib
import functools
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import jax

from sims.base.errors import InputError
from sims.base.identity import digest, edition

Item = TypeVar("Item")
Out = TypeVar("Out")


def host_devices() -> int:
    """Number of cores to use: ``SIMS_HOST_DEVICES``, or all that this process may use.

    A Slurm job uses its allotted cores (``SLURM_CPUS_PER_TASK``), even if it could use others.
    """
    text = os.environ.get("SIMS_HOST_DEVICES")
    if text is None:
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        allotted = os.environ.get("SLURM_CPUS_PER_TASK", "")
        return min(cores, int(allotted)) if re.fullmatch("[1-9][0-9]*", allotted) else cores
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise InputError("SIMS_HOST_DEVICES", text, "an integer from 1 to 9999")
    return int(text)


@functools.cache
def memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process may use: the machine's, or its control groups' if less.

    Control groups can be nested, each with a limit, as for a step of a Slurm job. They are read
    once.

    Args:
        root: folder of ``proc`` and ``sys``.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    groups = root / "sys/fs/cgroup"
    group = ""
    with contextlib.suppress(OSError):
        group = (root / "proc/self/cgroup").read_text().partition("0::/")[2].strip()
    for folder in (groups / group, *(groups / group).parents):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int((folder / "memory.max").read_text()))
    return min(limits)


def forget_compiled(root: Path = Path("/")) -> None:
    """Drop JAX's compiled programs once they take half of the memory mappings of a process.

    The check runs once per second, since it takes as long as a small problem. Every compiled
    program keeps some mappings. Linux allows ``vm.max_map_count`` (65,530 by default) per process;
    beyond this, compilation runs out of memory, or the process dies.

    Args:
        root: folder of ``proc``.
    """
    _clear_if_full(root, int(time.monotonic()))


def forget_changed(*inputs: object) -> None:
    """Drop JAX's compiled programs if one may hold what a function no longer says.

    A program keeps what a function read when it was traced: a global of a notebook, an attribute of
    a class. Programs are dropped once any digest differs from the last of the same function, and
    whenever a digest is impossible.

    Args:
        inputs: user's functions, or what holds them.
    """
    try:
        digest(*inputs)
    except InputError:
        jax.clear_caches()
    _clear_of_other_edition(edition())


@functools.lru_cache(maxsize=1)
def _clear_of_other_edition(number: int) -> None:
    if number:
        jax.clear_caches()


@functools.lru_cache(maxsize=1)
def _clear_if_full(root: Path, second: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # another system, with other limits
        mappings = (root / "proc/self/maps").read_bytes().count(b"\n")
        if mappings > int((root / "proc/sys/vm/max_map_count").read_text()) // 2:
            jax.clear_caches()


def configure() -> None:
    """Set 64-bit mode, exact float32 products and one CPU device per core.

    - Theory is float64 throughout; the engine asks for float32 explicitly where it is enough.
    - ``highest`` matmul precision keeps accelerators from silently rounding products to TF32.
    - One host device per core: a single jit call leaves CPU cores idle, sharding over host
      devices does not. ``SIMS_HOST_DEVICES`` overrides the number.
    - As many XLA threads as devices, unless ``NPROC`` sets their number: with more, small
      operations move between threads, and concurrent processes take twice as long.
    - Without preallocation several jobs can share one GPU.

    Raises:
        InputError: ``JAX_PLATFORMS`` or ``JAX_PLATFORM_NAME`` requests missing devices.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("NPROC", str(host_devices()))
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_threefry_partitionable", True)
    # A host program may have started JAX already; the engine then uses the devices it finds.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", host_devices())
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"):
        platform = os.environ.get(name, "")
        if platform in ("", "cpu"):
            continue
        try:
            jax.devices()
        except (RuntimeError, AssertionError):  # the latter where a plug-in is missing
            raise InputError(name, platform, "cpu, or devices of this machine") from None


def lost_digits(platform: str) -> list[str]:
    """Phrases that explain why arithmetic is coarser than configured; empty if it is not.

    Args:
        platform: platform of the device, such as ``cpu``.
    """
    wide = getattr(jax.config, "jax_enable_x64", None)
    products = getattr(jax.config, "jax_default_matmul_precision", None)
    faults = [] if wide else ["64-bit arithmetic is off (jax_enable_x64)"]
    if platform != "cpu" and products not in ("highest", "float32"):
        faults.append(
            f"float32 products may be rounded to TF32 (jax_default_matmul_precision: {products})"
        )
    return faults


def in_threads(function: Callable[[Item], Out], items: Iterable[Item]) -> list[Out]:
    """Results of ``function`` for all items, in order, with one thread per core.

    XLA and NumPy release Python's lock. BLAS has one thread meanwhile, since its small products
    would otherwise wait for each other. An exception cancels items that have not begun, and is
    raised.
    """
    from joblib import Parallel, delayed
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        return list(Parallel(host_devices(), prefer="threads")(delayed(function)(i) for i in items))
