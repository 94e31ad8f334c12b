"""The CUDA sums without a GPU: as C++ with a shim, compiled by nvcc and NVRTC, and lowered."""

import ctypes
import shutil
import subprocess
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from sims.problem import KERNELS
from sims.simulation import native
from sims.simulation.native import cuda
from sims.simulation.native.cuda import cuda_sums, error_of
from sims.simulation.sums import Sums

SHIM = Path(__file__).parent / "cuda"
SIZES = {  # kernel, H, d_k, columns, precision
    "house": ("gaussian", 8, 4, 3, "float32"),
    "few": ("softmax", 3, 1, 2, "float32"),
    "wide": ("gaussian", 16, 9, 3, "float32"),
    "double": ("softmax", 5, 2, 2, "float64"),
}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """``(sizes, arrays) -> (sums, share of blocks done again)`` of the source compiled as C++."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("emulated")

    def run(name, queries, keys, columns, centres, reach):
        kernel, heads, width, count, precision = SIZES[name]
        path = folder / f"{name}.so"
        command = cuda.compile_command(KERNELS[kernel], heads, width, count, precision, "sm_90")
        macros = [word for word in command if word[:2] in ("-D", "-I")]
        flags = ["-Og", "-std=c++20", "-shared", "-fPIC", "-pthread", "-w", f"-I{SHIM}"]
        if not path.exists():
            source = [str(SHIM / "emulated.cc"), "-o", str(path)]
            subprocess.run(["g++", *flags, *macros, *source], check=True)
        given = [
            np.ascontiguousarray(x, precision) for x in (queries, keys, columns, centres, reach)
        ]
        batches, queries_, n = len(given[4]), given[0].shape[-1], given[1].shape[-1]
        pairs = (batches, queries_, heads, heads)
        out = [np.full(s, np.nan) for s in (pairs[:3], pairs, (*pairs[:3], count), pairs)]
        blocks = np.zeros(2, np.int64)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *out, blocks)]
        sizes = [ctypes.c_int64(x) for x in (batches, queries_, n)]
        ctypes.CDLL(str(path)).emulated(*pointers[:5], *sizes, *pointers[5:])
        return out, blocks[1] / blocks[0]

    return run


@pytest.mark.parametrize("name", SIZES)
def test_emulated_sums_are_those_of_numpy(emulated, name):
    """Two batches, tails of keys and queries, and blocks that are to be done again."""
    for again in (False, True):
        for queries, n in (1, 1), (7, 129), (29, 1300):
            check(emulated, name, queries, n, again)


def check(emulated, name, queries, n, again):
    kernel, heads, width, count, precision = SIZES[name]
    rng, scale = np.random.default_rng(n), (12.0 if again else 1.0) / width**0.25
    q, keys, labels, centres = (
        rng.normal(size=(2, *shape)).astype(precision)
        for shape in ((queries, width, heads), (width, heads, n), (count - 1, n), (queries, heads))
    )
    q, keys = scale * q, scale * keys
    columns = np.concatenate([labels, np.ones((2, 1, n))], axis=1)
    reach = np.full(2, np.inf if precision == "float64" else 0.01 if again else 50.0)
    (peak, gram, linear, centred), redone = emulated(
        name, q.transpose(0, 2, 3, 1), keys, columns, centres.swapaxes(1, 2), reach
    )
    if precision == "float32" or not again:
        assert (redone > 0) == again
    for b in range(2):
        points = np.moveaxis(q[b].astype(float), 1, 0)
        offset = KERNELS[kernel].log_value(points, np.zeros_like(points), 1.0)
        found = Sums(peak[b] + offset, gram[b], linear[b], centred[b])
        given = (q[b], keys[b], columns[b], centres[b])
        assert error_of(found, KERNELS[kernel], *given) <= cuda.TOLERANCE[precision]


def test_a_late_key_that_outweighs_the_first_ones(emulated):
    """Its weight would overflow under the shift of the first keys: the block is done again."""
    _, heads, width, _, _ = SIZES["few"]
    q, keys = np.full((1, width, heads), 30.0), np.full((width, heads, 600), -2.0)
    keys[..., 500] = 2.0
    columns, centres = np.ones((2, 600)), np.full((1, heads), 0.5)
    out, redone = emulated(
        "few", q.transpose(1, 2, 0)[None], keys[None], columns[None], centres.T[None], [9.0]
    )
    assert redone > 0
    found = Sums(*(value[0] for value in out))
    assert error_of(found, KERNELS["softmax"], q, keys, columns, centres) <= 1e-5


def test_compiles_for_a_gpu_that_is_not_here(tmp_path, monkeypatch):
    """By NVRTC and the C++ compiler where NVRTC is (see .ci/run), else by nvcc."""
    if cuda.has_nvrtc():
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif shutil.which("nvcc") is None:
        pytest.skip("neither nvcc nor NVRTC")
    kernel, *sizes = SIZES["house"]
    command = cuda.compile_command(KERNELS[kernel], *sizes, "sm_90")
    native.build(tmp_path / "sums.so", command)
    if cuda.has_nvrtc():
        kernels = cuda.by_nvrtc(command, "sm_90", tmp_path / "kept").code
        assert all(b".text." + name.encode() + b"\0" in kernels for name in cuda.KERNELS)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_lowers_for_a_gpu_that_is_not_here(kernel):
    """Under the batch of replicates, with and without centres."""
    q, keys, columns = jnp.ones((5, 2, 3)), jnp.ones((4, 2, 3, 50)), jnp.ones((4, 2, 50))
    name = f"sims_cuda_{kernel}_3_2_2_float64"
    allowed = [export.DisabledSafetyCheck.custom_call(name)]
    for centres in (None, jnp.zeros((5, 3))):
        sums = partial(cuda_sums, KERNELS[kernel], centres=centres)
        one = jax.jit(jax.vmap(lambda k, c, sums=sums: sums(q, k, c)))
        lowered = export.export(one, platforms=["cuda"], disabled_checks=allowed)(keys, columns)
        assert lowered.mlir_module().count(f"@{name}") == 1
        assert lowered.out_avals[0].shape == (4, 5, 3)
