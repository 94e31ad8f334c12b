"""The kernel sums and random bits in C++ for the CPU, compiled by the host's own compiler.

XLA's CPU code makes several passes over the weights, which leave the first-level cache in between.
``sums.cc`` makes one. Same contract as :func:`~sims.simulation.sums.streamed_sums`, same numbers
but for rounding. ``threefry.cc`` makes the bits of JAX's own streams, equal bit for bit.
``python -m sims.simulation.native`` compiles both (``make setup`` does), and so
does the engine before long work; without a compiler XLA does the work. The library lies in a
cache folder that is this user's alone, one for every host processor and source text, and is loaded
only if it is whole; otherwise it is compiled again. ``SIMS_NATIVE=0`` turns it off.
"""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from ctypes import cdll
from pathlib import Path
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims import files
from sims.errors import InputError
from sims.problem import Kernel
from sims.problem.kernels import GAUSSIAN, SOFTMAX
from sims.simulation.sums import Sums, anchors

KINDS = {GAUSSIAN: 0, SOFTMAX: 1}
"""The kernels that ``sums.cc`` knows."""
SOURCES = [Path(__file__).with_name(name) for name in ("sums.cc", "threefry.cc")]
LANES = 64
"""Keys are padded to a multiple of this: whole vectors in either precision."""
FLAGS = ("-O3", "-std=c++17", "-march=native", "-shared", "-fPIC", "-fno-math-errno", "-w")


def usable(kernel: Kernel, platform: str, evaluations: float = 0.0) -> bool:
    """Whether the C++ sums can do this work here.

    Args:
        kernel: gaussian or softmax can be done.
        platform: of the device; ``cpu`` can be done.
        evaluations: how many K_h(x, X_i); the library is compiled for work of 2e10 and more.
    """
    if os.environ.get("SIMS_NATIVE") == "0" or kernel not in KINDS or platform != "cpu":
        return False
    path = library()
    return (path.exists() or evaluations >= 2e10) and _loaded(path)


@functools.cache
def _loaded(path: Path) -> bool:
    try:
        build(path)
        handlers = cdll.LoadLibrary(str(path))
    except (OSError, subprocess.CalledProcessError, InputError):
        return False
    for name in ("sims_sums_float32", "sims_sums_float64", "sims_bits_32", "sims_bits_64"):
        handler = jax.ffi.pycapsule(getattr(handlers, name))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    return True


def native_sums(
    kernel: Kernel,
    queries: Float[Array, "Q p H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "c n"],
    bandwidth: Array,
    query_block: int,
    centres: Float[Array, "Q H"] | None = None,
) -> Sums:
    """A :data:`~sims.simulation.sums.KernelSums`; kernel gaussian or softmax, on a CPU."""
    n = keys.shape[-1]
    near, offset = anchors(kernel, queries, keys)
    padding = -n % LANES
    if padding:
        keys = jnp.pad(keys, [(0, 0), (0, 0), (0, padding)])
        columns = jnp.pad(columns, [(0, 0), (0, padding)])
    count, heads, width = len(queries), queries.shape[2], len(columns)
    pairs = (count, heads, heads)
    shapes = [(count, heads), pairs, (count, heads, width), (0,) if centres is None else pairs]
    call = jax.ffi.ffi_call(
        f"sims_sums_{keys.dtype.name}",
        [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes],
        vmap_method="sequential",
    )
    kind = KINDS[kernel]
    given = jnp.zeros((0,), keys.dtype) if centres is None else centres.astype(keys.dtype)
    peak, gram, linear, centred = call(
        queries, near, keys, columns, given, n=np.int64(n), kind=np.int64(kind)
    )
    return Sums(peak + offset, gram, linear, None if centres is None else centred)


def with_native_bits(key: Array) -> Array:
    """The same Threefry key, of the same streams, with its bits made in C++ (on a CPU)."""
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_native_threefry())


@functools.cache
def _native_threefry() -> Any:
    plain = jax.extend.random.threefry_prng_impl

    def bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
        if width not in (32, 64):
            return plain.random_bits(key, width, shape)
        out = jax.ShapeDtypeStruct(shape, f"uint{width}")
        return jax.ffi.ffi_call(f"sims_bits_{width}", out, vmap_method="broadcast_all")(key)

    return jax.extend.random.define_prng_impl(
        key_shape=plain.key_shape, seed=plain.seed, split=plain.split, fold_in=plain.fold_in,
        random_bits=bits, name="threefry2x32_native", tag="fry_native",
    )  # fmt: skip


def library() -> Path:
    """Where this host's library is, or would be once built."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES))
    digest.update(repr((FLAGS, _compiler(), jax.__version__, _processor())).encode())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return files.private(home / "nw-attention-sims") / f"sums-{digest.hexdigest()[:16]}.so"


def build(path: Path) -> None:
    """Compile the library, unless it is there, whole and this user's.

    Raises:
        OSError, subprocess.CalledProcessError: no compiler, or it failed.
        InputError: the library cannot be written.
    """
    with contextlib.suppress(InputError):
        if files.is_own(path) and files.read(path, path.stem):
            return
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "sums.so"
        include = f"-I{jax.ffi.include_dir()}"
        command = [_compiler(), *FLAGS, include, *map(str, SOURCES), "-o", str(built)]
        subprocess.run(command, check=True, capture_output=True)
        files.write(built.read_bytes(), path, path.stem)


def _compiler() -> str:
    return os.environ.get("CXX") or shutil.which("c++") or "g++"


@functools.cache
def _processor() -> str:
    """What ``-march=native`` depends on: a cache folder may be shared by several hosts."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        return "".join(line for line in lines if line.startswith(("model name", "flags")))
    except OSError:
        return platform.processor() or platform.machine()
