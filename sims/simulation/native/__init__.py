"""Sums over keys, and random bits, in C++ for the CPU, compiled by the host's compiler.

XLA's CPU code makes several passes over the weights, which leave the first-level cache in between.
``sums.cc`` makes one. It has the same contract as :func:`~sims.simulation.sums.streamed_sums` and
the same numbers up to rounding. ``rules.cc`` has the weight rules with a threshold: it searches
only keys within reach of the best, and sums over attended keys. ``threefry.cc`` generates the bits
of JAX's streams, equal bit for bit. ``python -m sims.simulation.native`` compiles them (``make
setup`` does), and so does the engine before long work; without a compiler XLA does the work. The
library is in a private cache folder, one for every host processor and source text, and is loaded
only if it is intact; otherwise it is compiled again. ``SIMS_NATIVE=0`` turns it off.
"""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Hashable, Sequence
from ctypes import cdll
from pathlib import Path
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from sims.base import files
from sims.base.errors import InputError
from sims.problem import Kernel
from sims.problem.kernels import GAUSSIAN, GaussianKernel, SoftmaxKernel
from sims.simulation.heads import Columns, ProjectedKeys, ProjectedQueries
from sims.simulation.sums import Sums, anchors
from sims.weights import SCORES, WeightRule, Weights
from sims.weights.entmax import Entmax
from sims.weights.sparse import Relu, ReluGap

SCORE_KINDS = {SCORES["dot"]: 2, SCORES["distance"]: 3}
"""The scores that ``rules.cc`` knows."""
FOLDER = Path(__file__).parent
SOURCES = [FOLDER / name for name in ("sums.cc", "rules.cc", "threefry.cc")]
HANDLERS = [f"sims_{name}_float{width}" for name in ("sums", "rules") for width in (32, 64)]
LEAST_WORK = 2e10
"""Evaluations from which compiling a library pays."""
LANES = 64
"""Keys are padded to a multiple of this, which fills vectors in either precision."""
FLAGS = ("-O3", "-std=c++17", "-march=native", "-shared", "-fPIC", "-fno-math-errno", "-w")


def _attributes(rule: Kernel | WeightRule) -> dict[str, Any] | None:
    """How the C++ call names a kernel or rule; None for one that it does not know."""
    match rule:
        case GaussianKernel():
            return {"kind": np.int64(0)}
        case SoftmaxKernel():
            return {"kind": np.int64(1)}
        case WeightRule(scores=scores) if scores in SCORE_KINDS:
            return _weight_attributes(rule.weights, SCORE_KINDS[scores])
    return None


def _weight_attributes(weights: Weights, kind: int) -> dict[str, Any] | None:
    offset = 0.0
    empty = ""  # the weights of a row without a positive entry
    match weights:
        case Entmax(nu=power):
            number = 0
        case ReluGap(gain=power):
            number = 1
        case Relu(gain=power, offset=offset, empty=empty):
            number = 2
        case _:
            return None
    return {
        "kind": np.int64(kind),
        "rule": np.int64(number),
        "uniform": np.int64(empty == "uniform"),
        "nu": np.float64(power),
        "offset": np.float64(offset),
    }


def usable(rule: Kernel | WeightRule, platform: str, evaluations: float = 0.0) -> bool:
    """True if the C++ sums can do this work here.

    Args:
        rule: gaussian or softmax can be done; of weight rules with scores ``dot`` or ``distance``
            α-entmax and both ReLU.
        platform: platform of the device; ``cpu`` can be done.
        evaluations: how many K_h(x, X_i); a library is compiled for :data:`LEAST_WORK` and more.
    """
    if os.environ.get("SIMS_NATIVE") == "0" or platform != "cpu" or _attributes(rule) is None:
        return False
    path = library()
    return (path.exists() or evaluations >= LEAST_WORK) and _loaded(path)


@functools.cache
def _loaded(path: Path) -> bool:
    try:
        build(path)
        handlers = cdll.LoadLibrary(str(path))
    except (OSError, subprocess.CalledProcessError, InputError):
        return False
    for name in (*HANDLERS, "sims_bits_32", "sims_bits_64"):
        handler = jax.ffi.pycapsule(getattr(handlers, name))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    return True


def _call(
    name: str,
    dtype: DTypeLike,
    shapes: Sequence[tuple[int, ...]],
    *arrays: Array,
    method: str = "sequential",
    **attributes: Any,
) -> Sequence[Array]:
    """Outputs of the library, which is compiled and loaded where that was not done yet."""
    if not _loaded(library()):
        raise InputError("SIMS_NATIVE", "no working C++ compiler", "the sums of XLA")
    outputs = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.ffi.ffi_call(name, outputs, vmap_method=method)(*arrays, **attributes)


def native_sums(
    kernel: Kernel,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    bandwidth: float | Array,
    query_block: int,
    centres: Float[Array, "Q H"] | None = None,
) -> Sums:
    """:func:`~.sums.streamed_sums` in C++; kernel gaussian or softmax, on a CPU."""
    near, offset = anchors(kernel, queries, keys)
    count, _, heads = queries.shape
    width = len(columns)
    pairs = (count, heads, heads)
    shapes = [(count, heads), pairs, (count, heads, width), (0,) if centres is None else pairs]
    peak, gram, linear, centred = _call(
        f"sims_sums_{keys.dtype.name}",
        jnp.float64,
        shapes,
        queries,
        near,
        _pad(keys),
        _pad(columns),
        jnp.zeros((0,), keys.dtype) if centres is None else centres.astype(keys.dtype),
        n=np.int64(keys.shape[-1]),
        **(_attributes(kernel) or {}),
    )
    return Sums(peak + offset, gram, linear, None if centres is None else centred)


def native_rule_sums(
    rule: WeightRule,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    bandwidth: Float[Array, " H"],
) -> tuple[Float[Array, "Q H C"], Float[Array, "Q H H"]]:
    """Weighted sums under a rule of :func:`usable`, on a CPU, in float64.

    Args:
        rule: its weights w_hi are those of n keys at a query.
        queries: projected, query first.
        keys: projected.
        columns: vectors to be summed against the weights.
        bandwidth: bandwidth of every head.

    Returns:
        ``Σ_i w_hi c_i`` for every column and then ``Σ_i w_hi``, 0 for a query that attends to no
        key; and ``Σ_i w_hi w_gi``.
    """
    count, _, heads = queries.shape
    width, n = columns.shape
    shapes = [(count, heads, width + 1), (count, heads, heads)]
    linear, gram = _call(
        f"sims_rules_{keys.dtype.name}",
        jnp.float64,
        shapes,
        queries,
        _pad(keys),
        _pad(columns),
        bandwidth,
        n=np.int64(n),
        **(_attributes(rule) or {}),
    )
    return linear, gram


def _pad(x: Float[Array, "*lead n"]) -> Float[Array, "*lead m"]:
    padding = -x.shape[-1] % LANES
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, padding)]) if padding else x


def with_native_bits(key: Array) -> Array:
    """The same Threefry key, of the same streams, with its bits made in C++ (on a CPU)."""
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=_native_threefry())


def with_quick_bits(key: Array) -> Array:
    """The same Threefry key, its bits made in C++ where they can be; in any case the same bits.

    For replicates that JAX traces, on the default device's platform. XLA makes the bits on an
    accelerator, and where the library is not there (:func:`usable`).
    """
    here = usable(GAUSSIAN, jax.default_backend())
    return with_native_bits(key) if here else key


@functools.cache
def _native_threefry() -> Any:
    plain = jax.extend.random.threefry_prng_impl

    def bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
        if width not in (32, 64):
            return plain.random_bits(key, width, shape)
        name = f"sims_bits_{width}"
        dtype = f"uint{width}"
        (out,) = _call(name, dtype, [shape], key, method="broadcast_all")
        return out

    return plain._replace(random_bits=bits, name="threefry2x32_native", tag="fry_native")


def library() -> Path:
    """Where this host's library is, or would be once built."""
    sources = (FOLDER / "vectors.h", *SOURCES)
    return in_cache("sums", sources, (FLAGS, compiler(), _processor()))


def in_cache(name: str, sources: tuple[Path, ...], choices: Hashable) -> Path:
    """Where the library of sources, compiled by such choices, is or would be."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return _file_of(home, name, sources, choices)


@functools.cache
def _file_of(home: Path, name: str, sources: tuple[Path, ...], choices: Hashable) -> Path:
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    digest.update(repr((choices, jax.__version__)).encode())
    return files.private_folder(home / "nw-attention-sims") / f"{name}-{digest.hexdigest()[:16]}.so"


def build(path: Path, command: Sequence[str] = ()) -> None:
    """Compile a library, for this host or by a command, unless an intact private one exists.

    Raises:
        OSError, subprocess.CalledProcessError: no compiler, or it failed.
        InputError: the library cannot be written.
    """
    with contextlib.suppress(InputError):
        if files.is_private(path) and files.read(path, path.stem):
            return
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "sums.so"
        include = f"-I{jax.ffi.include_dir()}"
        command = command or [compiler(), *FLAGS, include, *map(str, SOURCES)]
        subprocess.run([*command, "-o", str(built)], check=True, capture_output=True)
        files.write(built.read_bytes(), path, path.stem)


def compiler() -> str:
    """The C++ compiler: of the environment, or the system's."""
    return os.environ.get("CXX") or shutil.which("c++") or "g++"


@functools.cache
def _processor() -> str:
    """Features that ``-march=native`` depends on: several hosts may share a cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return "".join(line for line in lines if line.startswith(("model name", "flags")))
