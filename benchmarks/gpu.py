"""``python -m benchmarks.gpu``: are the sums right on a GPU, and how fast are they and the engine?

Pieces: ``right`` (sums against float64), ``rates`` (sums in CUDA, XLA beside them), ``engine``,
``sweep`` (how busy is the device?). Every finding is a line of JSON. Evaluations a second are at
H = 8, d_k = 4 in float32. `pytest -m gpu tests/gpu` compares the engine with a CPU's.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.problem import Work
from sims.problem import KERNELS, Heads
from sims.simulation import estimate
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.native import cuda, in_cache
from sims.simulation.plan import ROWS
from sims.simulation.sums import streamed_sums
from sims.study.code import accelerated

CASES = [
    *itertools.product(["gaussian", "softmax"], [(8, 4), (4, 2), (1, 1)], [3], ["float32"]),
    ("gaussian", (8, 4), 2, "float32"),
    *itertools.product(["gaussian"], [(8, 4), (16, 64)], [3], ["float64"]),
    *itertools.product(["softmax"], [(16, 4), (8, 64), (16, 64), (12, 5)], [3], ["float32"]),
]
"""Kernel, (H, d_k), columns and precision."""
REPEATS = 5


def say(**finding: Any) -> None:
    """Print a finding."""
    print(json.dumps(finding), flush=True)


def best(run: Callable[[int], Any], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of a few calls, after one that compiles."""
    run(0)
    took = []
    for seed in range(1, repeats):
        start = time.perf_counter()
        run(seed)
        took.append(time.perf_counter() - start)
    return min(took)


def sizes(case: tuple) -> tuple:
    """Arguments of the library of a case."""
    kernel, (heads, width), columns, precision = case
    return KERNELS[kernel], heads, width, columns, precision


def load(case: tuple) -> Callable[..., Any]:
    """The CUDA sums of a case, compiled for the device."""
    target = "sm_" + jax.devices()[0].compute_capability.replace(".", "")
    command = cuda.compile_command(*sizes(case), target)
    name = cuda._name(*sizes(case))
    cuda.load(in_cache("cuda", (cuda.SOURCE,), command), command, name, target)
    return lambda *arrays, **given: cuda.cuda_sums(*arrays, name=name, **given)


def right() -> None:
    """Largest errors of every library, as a share of the largest sum of its kind."""
    for case in CASES:
        load(case)
        error = cuda.largest_error(*sizes(case))
        say(case=case, error=error, right=error <= cuda.TOLERANCE[case[-1]])


def rate(sums: Callable[..., Any], queries: int, replicates: int, n: int = 65536) -> float:
    """Evaluations a second of sums alone in float32, in ten calls after each other."""
    rng = np.random.default_rng(0)
    q = jnp.asarray(rng.normal(size=(queries, 4, 8)) / 2, jnp.float32)
    keys = jnp.asarray(rng.normal(size=(replicates, 4, 8, n)), jnp.float32)
    columns = jnp.asarray(rng.normal(size=(replicates, 3, n)), jnp.float32).at[:, 2].set(1)
    one = jax.jit(jax.vmap(lambda k, c: sums(KERNELS["gaussian"], q, k, c)))
    seconds = best(lambda _: jax.block_until_ready([one(keys, columns) for _ in range(10)]))
    return queries * replicates * 8 * n * 10 / seconds


def blocks(kernel: Any, q: Any, keys: Any, columns: Any) -> Any:
    """XLA's sums, in blocks of the engine's size for eight replicates."""
    parts = [x.reshape(*x.shape[:-1], -1, DRAW_BLOCK) for x in (keys, columns)]
    keys, columns = parts[0].transpose(2, 0, 1, 3), parts[1].transpose(1, 0, 2)
    block = ROWS // 8
    return lax.map(lambda kc: streamed_sums(kernel, q, *kc, 1.0, block).gram, (keys, columns))


def rates() -> None:
    """Evaluations a second of the sums alone, in CUDA and by XLA."""
    sums = load(CASES[0])
    for queries, replicates in ((1024, 8), (64, 32), (16, 32)):
        found = rate(sums, queries, replicates)
        say(sums="CUDA", queries=queries, replicates=replicates, rate=found)
    say(sums="XLA", queries=1024, replicates=8, rate=rate(blocks, 1024, 8))


def engine() -> None:
    """Evaluations a second of ``estimate``, with the sums in CUDA and by XLA."""
    for native, (queries, replicates, batches) in itertools.product(
        "10", [(1024, 8, 2), (64, 32, 2), (1024, 64, 8), (64, 64, 16)]
    ):
        os.environ["SIMS_NATIVE"] = native
        work = Work(8, 4, n=65536, queries=queries, replicates=replicates)
        task, heads, points = work.problem()
        options = {"batches": batches, "replicates_per_batch": replicates}
        given = (task, heads, work.n, points)
        seconds = best(lambda seed, given=given, own=options: estimate(*given, seed, **own))
        rate = work.evaluations(batches * replicates) / seconds
        say(engine=native, queries=queries, **options, seconds=seconds, rate=rate)


def sweep(points: int = 48, batches: int = 64) -> None:
    """A sweep over bandwidths, and how busy the device is meanwhile."""
    work = Work(8, 4, n=65536, queries=64, replicates=64)
    task, heads, at = work.problem()
    seen: list[float] = []
    stop = threading.Event()

    def look() -> None:
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not stop.wait(0.2):
            seen.append(float(subprocess.run(query, capture_output=True, text=True).stdout))

    def run(count: int) -> None:
        for k in range(count):
            of = Heads(heads.frames, "gaussian", 0.8 + 0.01 * k)
            estimate(task, of, work.n, at, k, batches=batches, replicates_per_batch=64)

    run(1)
    watch = threading.Thread(target=look)
    watch.start()
    begun = time.perf_counter()
    run(points)
    seconds = time.perf_counter() - begun
    stop.set()
    watch.join()
    rate = work.evaluations(64 * batches) * points / seconds
    busy = sum(seen) / max(len(seen), 1)
    say(points=points, batches=batches, seconds=seconds, rate=rate, busy_percent=busy)


PIECES = {f.__name__: f for f in (right, rates, engine, sweep)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("piece", nargs="?", choices=PIECES, help="default: all of them")
    options = parser.parse_args()
    if not accelerated() or shutil.which("nvidia-smi") is None:
        parser.exit(
            2, "benchmarks.gpu: no NVIDIA GPU here, or JAX without it: make setup EXTRA=cuda\n"
        )
    for piece in [options.piece] if options.piece else PIECES:
        PIECES[piece]()


if __name__ == "__main__":
    main()
