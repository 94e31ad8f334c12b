"""The sums over keys in CUDA for an NVIDIA GPU, compiled for the sizes of a problem.

XLA's code goes through memory for weights that ``sums.cu`` keeps in registers: a thread has a
query, its block shares a tile of keys. H, d_k and the number of columns are compiled in: a library
takes some 10 seconds, once, is kept next to that of the CPU, and is used only if its first sums on
the device are those of float64 in NumPy. nvcc compiles it; without nvcc NVRTC, with a C++ compiler
for the part that runs on the host. Without either, or with ``SIMS_NATIVE=0``, XLA does the work.
"""

import ctypes
import functools
import importlib.util
import os
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.problem import Heads, Kernel
from sims.problem.kernels import GaussianKernel, QuadraticKernel
from sims.simulation.heads import UNIT, Columns, ProjectedKeys, ProjectedQueries
from sims.simulation.native import FLAGS as HOST_FLAGS
from sims.simulation.native import FOLDER, LEAST_WORK, build, compiler, in_cache
from sims.simulation.sums import Sums

SOURCE = FOLDER / "sums.cu"
FLAGS = ("-O3", "-std=c++17", "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC", "-w")
KERNELS = ("weigh", "weigh_again", "weigh_centred", "weigh_centred_again", "finish")
"""Those of the source, in the order in which it launches them."""
COLUMNS = 2
"""The target's values and ones are summed against the weights."""
MOST_HEADS, MOST_WIDTH = 16, 64
"""More take too many registers, or too much of a block's memory."""
LARGEST = 128.0
"""Of |⟨q, k⟩| + |k|²/2 in single precision, which moves an exponent by half a unit of rounding of
that, 8e-6; beyond it scores are made in double precision."""
TOLERANCE = {"float32": 1e-5, "float64": 1e-11}
"""Of the largest sum of its kind: first sums that differ by more from those of NumPy are wrong."""


def cuda_usable(heads: Heads, precision: str, device: jax.Device, evaluations: float = 0.0) -> bool:
    """True if the CUDA sums can do this work here, and are right.

    Args:
        heads: gaussian or softmax can be done, to 16 heads with d_k up to 64.
        precision: "float32" or "float64".
        device: where the work is done.
        evaluations: how many K_h(x, X_i); a library is compiled for work of 2e10 and more.
    """
    if device.platform != "gpu" or os.environ.get("SIMS_NATIVE") == "0":
        return False
    if not (shutil.which("nvcc") or has_nvrtc()):
        return False
    if not isinstance(heads.rule, QuadraticKernel):
        return False
    if heads.count > MOST_HEADS or heads.width > MOST_WIDTH:
        return False
    target = "sm_" + str(getattr(device, "compute_capability", "")).replace(".", "")
    sizes = (heads.count, heads.width, COLUMNS, precision)
    path = in_cache("cuda", (SOURCE,), compile_command(heads.kernel, *sizes, target))
    if not path.exists() and evaluations < LEAST_WORK:
        return False
    return _loaded(heads.kernel, *sizes, target)


def has_nvrtc() -> bool:
    """True if NVRTC is installed: with the extra "cuda" it is."""
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False


def _name(kernel: Kernel, heads: int, width: int, columns: int, precision: str) -> str:
    return f"sims_cuda_{kernel.name}_{heads}_{width}_{columns}_{precision}"


def compile_command(
    kernel: Kernel, heads: int, width: int, columns: int, precision: str, target: str
) -> tuple[str, ...]:
    """Options of nvcc or, without it, of the C++ compiler for host code."""
    real = {"float32": "float", "float64": "double"}[precision]
    sizes = {"HEADS": heads, "WIDTH": width, "COLUMNS": columns, "REAL": real}
    macros = {**sizes, "GAUSSIAN": int(isinstance(kernel, GaussianKernel))}
    include = f"-I{jax.ffi.include_dir()}"
    defined = [f"-D{k}={v}" for k, v in macros.items()]
    if shutil.which("nvcc"):
        return ("nvcc", *FLAGS, f"-arch={target}", include, *defined, str(SOURCE))
    return (compiler(), *HOST_FLAGS, include, *defined, "-x", "c++", str(SOURCE))


def load(path: Path, command: tuple[str, ...], name: str, target: str) -> None:
    """Compile the library of a command unless it is there, and register it under a name."""
    build(path, command)
    if command[0] == "nvcc":
        library = ctypes.CDLL(str(path))
    else:
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(path))
        compiled = by_nvrtc(command, target, path.parent / "nvrtc")
        handles = [int(compiled.get_kernel(kernel).handle) for kernel in KERNELS]
        library.sims_kernels((ctypes.c_void_p * len(handles))(*handles))
    handler = jax.ffi.pycapsule(library.sims_sums_cuda)
    jax.ffi.register_ffi_target(name, handler, platform="CUDA")


@functools.cache  # the kernels live as long as the returned object
def by_nvrtc(command: tuple[str, ...], target: str, folder: Path) -> Any:
    """The kernels under the macros of a command; a folder keeps them for later processes."""
    from cuda.core import Program, ProgramOptions
    from cuda.core.utils import FileStreamProgramCache

    macros = [tuple(word[2:].split("=")) for word in command if word.startswith("-D")]
    options = ProgramOptions(
        arch=target, std="c++17", define_macro=macros, device_as_default_execution_space=True
    )
    with FileStreamProgramCache(folder) as kept:
        return Program(SOURCE.read_text(), "c++", options).compile("cubin", cache=kept)


@functools.cache
def _loaded(
    kernel: Kernel, heads: int, width: int, columns: int, precision: str, target: str
) -> bool:
    sizes = (heads, width, columns, precision)
    command = compile_command(kernel, *sizes, target)
    reason = ""
    path = in_cache("cuda", (SOURCE,), command)
    try:
        load(path, command, _name(kernel, *sizes), target)
        if (error := largest_error(kernel, *sizes)) <= TOLERANCE[precision]:
            return True
        reason = f"sums are off by {error:.2g}"
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
    except Exception as error:  # whatever it is, XLA's sums are right
        reason = str(error)
    warnings.warn(f"CUDA sums of {_name(kernel, *sizes)}, left to XLA: {reason}", stacklevel=2)
    return False


def largest_error(kernel: Kernel, heads: int, width: int, columns: int, precision: str) -> float:
    """Largest difference from float64 sums in NumPy, as a share of the largest sum of its kind.

    Of keys that single precision serves, and of others so far out that scores are made in double.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    count, n = 70, 1700
    compute = jax.jit(functools.partial(cuda_sums, kernel))
    for scale in (width**-0.25, 20 * width**-0.5):
        q, keys, labels, centres = (
            (size * rng.normal(size=shape)).astype(precision)
            for size, shape in (
                (scale, (count, width, heads)),
                (scale, (width, heads, n)),
                (1.0, (columns, n)),
                (1.0, (count, heads)),
            )
        )
        labels[-1] = 1.0
        sums = compute(*map(jnp.asarray, (q, keys, labels)), centres=jnp.asarray(centres))
        worst = max(worst, error_of(sums, kernel, q, keys, labels, centres))
    return worst


def error_of(
    sums: Sums,
    kernel: Kernel,
    queries: Float[np.ndarray, "Q p H"],
    keys: Float[np.ndarray, "p H n"],
    columns: Float[np.ndarray, "c n"],
    centres: Float[np.ndarray, "Q H"],
) -> float:
    """Largest error of sums in float64 of NumPy, a share of the largest of its kind; NaN is ∞."""
    q, k, labels, centre = (np.asarray(x, float) for x in (queries, keys, columns, centres))
    logs: Any = kernel.log_value(np.moveaxis(q, 1, 0)[..., None], k[:, None], UNIT)  # type: ignore[arg-type]
    top = logs.max(-1)
    u = np.exp(logs - top[..., None])
    z = u * (labels[0] - centre[..., None])
    true = (u @ np.swapaxes(u, 1, 2), u @ labels.T, z @ np.swapaxes(z, 1, 2))
    shift = np.exp(np.asarray(sums.peak) - top)[..., None]
    factor = shift * np.swapaxes(shift, 1, 2)
    ours = (sums.gram * factor, sums.linear * shift, sums.centred * factor)
    errors = [np.abs(x - y).max() / np.abs(y).max() for x, y in zip(ours, true, strict=True)]
    return float(np.nan_to_num(np.max(errors), nan=np.inf))


def cuda_sums(
    kernel: Kernel,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    bandwidth: float | Array = UNIT,
    query_block: int = 1,
    centres: Float[Array, "Q H"] | None = None,
    *,
    name: str | None = None,
) -> Sums:
    """:func:`~sims.simulation.sums.streamed_sums` in CUDA, as far as :func:`cuda_usable` says.

    ``name`` is of the library, where it is not the usual one.
    """
    count, width, heads = queries.shape
    dtype = keys.dtype
    longest = jnp.sqrt(jnp.square(queries).sum(1).max())
    if isinstance(kernel, GaussianKernel):  # the longest key for which no score is beyond LARGEST
        reach = jnp.sqrt(longest**2 + 2 * LARGEST) - longest
    else:
        reach = LARGEST / longest
    pairs = (count, heads, heads)
    dummy = (1,)  # no empty arrays: not every device takes them
    shapes = ((count, heads), pairs, (count, heads, len(columns)))
    peak, gram, linear, centred = jax.ffi.ffi_call(
        name or _name(kernel, heads, width, len(columns), dtype.name),
        [
            jax.ShapeDtypeStruct(shape, jnp.float64)
            for shape in (*shapes, dummy if centres is None else pairs)
        ],
        vmap_method="broadcast_all",
    )(
        queries.transpose(1, 2, 0),
        keys,
        columns,
        jnp.zeros(dummy, dtype) if centres is None else centres.T.astype(dtype),
        reach if dtype == jnp.float32 else jnp.full((), jnp.inf, dtype),
        centred=np.int64(centres is not None),
    )
    points = jnp.moveaxis(queries, 1, 0).astype(jnp.float64)
    offset = kernel.log_value(points, jnp.zeros_like(points), UNIT)
    return Sums(peak + offset, gram, linear, None if centres is None else centred)
