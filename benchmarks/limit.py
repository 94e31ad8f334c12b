"""How near the engine comes to a plain loop over keys that does nothing but the same sums.

The limit is ``limit.cc``: 8 heads of width 4, scores ⟨q, k⟩ − |k|²/2, exponentials, sums against
three columns and all pair sums, for AVX-512, without shifts, checks or any other size. The
engine's sums by themselves, and the whole engine with its draws, run beside it on the same core.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from ctypes import c_int64, c_void_p, cdll
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.contestants import engine
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.problem import Kernel
from sims.simulation.native import FLAGS, native_sums, usable
from sims.simulation.sums import streamed_sums

SOURCE = Path(__file__).with_name("limit.cc")
COLUMNS = 3


def arrays(work: Work, precision: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries (Q, p, H), keys (p, H, n) and columns (3, n), the last of them ones."""
    rng = np.random.default_rng(1)
    keys = rng.normal(size=(work.width, work.heads, work.n))
    columns = [*rng.normal(size=(COLUMNS - 1, work.n)), np.ones(work.n)]
    queries = 0.5 * rng.normal(size=(work.queries, work.width, work.heads))
    return queries.astype(precision), keys.astype(precision), np.asarray(columns, precision)


def plain_loop(work: Work, precision: str, library: Path) -> Callable[[int], np.ndarray]:
    """A call of the loop for the sums of a batch's replicates; returns the last pair sums."""
    call = getattr(cdll.LoadLibrary(str(library)), f"loop_{precision}")
    call.argtypes = [*[c_void_p] * 4, c_int64, c_int64, c_void_p, c_void_p]
    queries, keys, columns = arrays(work, precision)
    starts = -0.5 / np.log(2) * (keys.astype(float) ** 2).sum(0)
    inputs = [aligned(x) for x in (queries / np.log(2), keys, starts, columns)]
    inputs = [aligned(x.astype(precision)) for x in inputs]
    gram = np.empty((work.queries, work.heads * (work.heads + 1) // 2), precision)
    linear = np.empty((work.queries, work.heads, COLUMNS), precision)

    def run(seed: int) -> np.ndarray:
        del seed
        given = [x.ctypes.data for x in inputs]
        for _ in range(work.replicates):
            call(*given, work.queries, work.n, gram.ctypes.data, linear.ctypes.data)
        return gram

    return run


def aligned(values: np.ndarray) -> np.ndarray:
    """The same numbers at an address that is a multiple of 64."""
    space = np.empty(values.nbytes + 64, np.uint8)
    start = -space.ctypes.data % 64
    copy = space[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[:] = values
    return copy


def sums_alone(work: Work, precision: str, kernel_sums) -> dict:
    """A call that computes the kernel sums of a batch's replicates, without drawing them."""
    heads = work.problem()[1]
    q, keys, columns = map(jnp.asarray, arrays(work, precision))

    @partial(jax.jit, static_argnames="kernel")
    def run(shift, q, keys, columns, kernel: Kernel):
        # One after another, as in the engine: a call by itself would count its fixed cost.
        def one(total, step):
            sums = kernel_sums(kernel, q + step, keys, columns, 1.0, min(8, work.queries))
            return jax.tree.map(jnp.add, total, sums), None

        zero = jax.tree.map(jnp.zeros_like, kernel_sums(kernel, q, keys, columns, 1.0, 1))
        return lax.scan(one, zero, shift + 1e-3 * jnp.arange(work.replicates, dtype=q.dtype))[0]

    return {
        "sums": lambda seed: run(
            jnp.asarray(1e-2 * seed, precision), q, keys, columns, heads.kernel
        )
    }


def main(repeats: int = 5) -> dict[str, float]:
    """Print the table; shares of the limit are returned, none where the loop cannot be run."""
    kernel = Work().problem()[1].kernel
    if not usable(kernel, "cpu", np.inf):
        print("No limit: it needs a C++ compiler.")
        return {}
    ratios, rows = {}, []
    before = os.environ.get("SIMS_NATIVE", "1")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "limit.so"
        command = [os.environ.get("CXX", "c++"), *FLAGS, str(SOURCE), "-o", str(library)]
        if subprocess.run(command, capture_output=True).returncode:
            print("No limit: it needs a processor with AVX-512.")
            return {}
        for precision in ("float32", "float64"):
            for queries in (64, 512):
                work = Work(n=4096, queries=queries, replicates=8192 // queries)
                batches = {"engine": 2, "sums": 1, "loop": 1}
                for way, sums in {"XLA": streamed_sums, "C++": native_sums}.items():
                    os.environ["SIMS_NATIVE"] = "1" if way == "C++" else "0"
                    calls = {
                        "engine": engine(work, precision, batches["engine"]),
                        "loop": plain_loop(work, precision, library),
                    } | sums_alone(work, precision, sums)
                    took = cpu_seconds(calls, repeats)
                    rate = {
                        name: work.evaluations(batches[name] * work.replicates) / seconds
                        for name, seconds in took.items()
                    }
                    numbers = [f"{rate[name]:.3g}" for name in ("loop", "sums", "engine")]
                    row = [f"{way} {precision}", str(queries), *numbers]
                    for part in ("sums", "engine"):
                        share = rate[part] / rate["loop"]
                        row.append(f"{share:.0%}")
                        ratios[f"{part} ÷ limit, {row[0]}, {queries} queries"] = share
                    rows.append(row)
    os.environ["SIMS_NATIVE"] = before
    titles = ("", "queries", "loop", "sums", "engine", "sums/loop", "engine/loop")
    show("Kernel evaluations a CPU second: H = 8, d_k = 4, n = 4096", titles, rows, description())
    return ratios
