"""``python -m benchmarks.gpu``: are the sums right on a GPU, and how fast are they and the engine?

Pieces, each in a process of its own with a time limit, so that none stops another: ``build`` (the
libraries, no GPU needed), ``right`` (sums against float64), ``rates`` (sums in CUDA over threads
and splits, XLA beside them), ``engine``, ``sweep`` (how busy is the device?), ``tests``. Every
finding is a line of JSON, printed at once and appended to ``--out``; pieces that are done in that
file are passed over. Evaluations a second are at H = 8, d_k = 4 in float32, if not said otherwise.
"""

import argparse
import cProfile
import io
import itertools
import json
import pstats
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sims.study.code import accelerated

LIMITS = {"build": 120, "right": 90, "rates": 110, "engine": 100, "sweep": 60, "tests": 100}
"""Seconds of each piece."""
CASES = [
    *itertools.product(["gaussian", "softmax"], [(8, 4), (4, 2), (1, 1)], [3], ["float32"]),
    ("gaussian", (8, 4), 2, "float32"),
    *itertools.product(["gaussian"], [(8, 4), (16, 64)], [3], ["float64"]),
    *itertools.product(["softmax"], [(16, 4), (8, 64), (16, 64), (12, 5)], [3], ["float32"]),
]
"""Kernel, (H, d_k), columns and precision."""
CUTS = [(threads, waves) for threads in (128, 64, 256) for waves in (4, 2, 8)]
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
    from sims.problem import KERNELS

    kernel, (heads, width), columns, precision = case
    return KERNELS[kernel], heads, width, columns, precision


def target() -> str:
    """The device's architecture, as compilers name it."""
    import jax

    return "sm_" + jax.devices()[0].compute_capability.replace(".", "")


def build() -> None:
    """All libraries at once: an error of a compiler is shown in full."""
    from sims.simulation.native import build, cuda, in_cache

    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    chip = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    chip = "sm_" + chip.split()[0].replace(".", "")
    cuts = [(f"-DTHREADS={t}", f"-DWAVES={w}") for t, w in CUTS]
    plain = [cuda.compile_command(*sizes(case), chip) for case in CASES]
    commands = [*plain, *((*plain[0], *cut) for cut in cuts)]

    def one(command: tuple[str, ...]) -> None:
        begun, said = time.perf_counter(), "compiled"
        try:
            path = in_cache("cuda", (cuda.SOURCE,), command)
            build(path, command)
            if command[0] != "nvcc":
                cuda.by_nvrtc(command, chip, path.parent / "nvrtc")
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace")[:3000]
        except Exception as error:
            said = str(error)[:3000]
        words = " ".join(word for word in command if word.startswith("-D"))
        say(library=words, seconds=round(time.perf_counter() - begun, 1), said=said)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, commands))


def load(case: tuple, *macros: str) -> Callable[..., Any]:
    """The CUDA sums of a library, registered under a name of its own."""
    from sims.simulation.native import cuda, in_cache

    command = (*cuda.compile_command(*sizes(case), target()), *macros)
    name = cuda._name(*sizes(case)) + "".join(macros)
    cuda.load(in_cache("cuda", (cuda.SOURCE,), command), command, name, target())
    return lambda *arrays, **given: cuda.cuda_sums(*arrays, name=name, **given)


def right() -> None:
    """Largest errors of every library, as a share of the largest sum of its kind."""
    from sims.simulation.native import cuda

    for case in CASES:
        try:
            load(case)
            error = cuda.largest_error(*sizes(case))
            say(case=case, error=error, right=error <= cuda.TOLERANCE[case[-1]])
        except Exception:
            say(case=case, failed=traceback.format_exc()[-2000:])


def inputs(queries: int, replicates: int, n: int) -> tuple:
    """Queries, keys and columns in float32."""
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    q = jnp.asarray(rng.normal(size=(queries, 4, 8)) / 2, jnp.float32)
    keys = jnp.asarray(rng.normal(size=(replicates, 4, 8, n)), jnp.float32)
    return q, keys, jnp.asarray(rng.normal(size=(replicates, 3, n)), jnp.float32).at[:, 2].set(1)


def rates(n: int = 65536) -> None:
    """Evaluations a second of the sums alone; of XLA's in blocks of the engine's size."""
    import jax
    from jax import lax

    from sims.problem import KERNELS
    from sims.simulation.draws import DRAW_BLOCK
    from sims.simulation.plan import ROWS
    from sims.simulation.sums import streamed_sums

    def rate(
        sums: Callable[..., Any], queries: int, replicates: int, calls: int, scale=1.0
    ) -> float:
        q, keys, columns = inputs(queries, replicates, n)
        one = jax.jit(jax.vmap(lambda k, c: sums(KERNELS["gaussian"], q * scale, k, c)))
        keys = keys * scale
        seconds = best(lambda _: jax.block_until_ready([one(keys, columns) for _ in range(calls)]))
        return queries * replicates * 8 * n * calls / seconds

    for (threads, waves), (queries, replicates) in itertools.product(CUTS, [(1024, 8), (64, 32)]):
        cut = {"threads": threads, "waves": waves, "queries": queries, "replicates": replicates}
        try:
            sums = load(CASES[0], f"-DTHREADS={threads}", f"-DWAVES={waves}")
            say(sums="CUDA", **cut, rate=rate(sums, queries, replicates, 10))
        except Exception:
            say(sums="CUDA", **cut, failed=traceback.format_exc()[-2000:])
    plain = load(CASES[0])
    say(sums="CUDA, in double", queries=1024, rate=rate(plain, 1024, 8, 3, 10.0))
    say(sums="CUDA", queries=16, rate=rate(plain, 16, 32, 10))

    def blocks(kernel: Any, q: Any, keys: Any, columns: Any) -> Any:
        parts = [x.reshape(*x.shape[:-1], -1, DRAW_BLOCK) for x in (keys, columns)]
        keys, columns = parts[0].transpose(2, 0, 1, 3), parts[1].transpose(1, 0, 2)
        block = max(1, ROWS // 8)
        return lax.map(lambda kc: streamed_sums(kernel, q, *kc, 1.0, block).gram, (keys, columns))

    say(sums="XLA", queries=1024, replicates=8, rate=rate(blocks, 1024, 8, 1))


def engine() -> None:
    """Evaluations a second of ``estimate``, and where the host's time goes."""
    import os

    from benchmarks.problem import Work
    from sims.simulation import estimate

    for native, (queries, replicates, batches) in itertools.product(
        "10", [(1024, 8, 2), (64, 32, 2), (1024, 64, 8), (64, 64, 16)]
    ):
        if native == "0" and batches > 2:
            continue
        os.environ["SIMS_NATIVE"] = native
        work = Work(8, 4, n=65536, queries=queries, replicates=replicates)
        task, heads, points = work.problem()

        def run(seed: int, given=(task, heads, work.n, points), b=batches, r=replicates) -> Any:
            return estimate(*given, seed, batches=b, replicates_per_batch=r)

        seconds, found = best(run, 4), run(1)
        say(
            engine=found.attrs["kernel_sums"],
            **{"queries": queries, "replicates": replicates, "batches": batches},
            **{"seconds": seconds, "rate": work.evaluations(batches * replicates) / seconds},
            mse=float(found["mse"].mean()),
        )
        if native == "1" and batches == 2:
            profile = cProfile.Profile()
            profile.runcall(run, 2)
            text = io.StringIO()
            pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(45)
            print(text.getvalue(), file=sys.stderr, flush=True)


def sweep(points: int = 48) -> None:
    """A sweep over bandwidths, and how busy the device is meanwhile."""
    from benchmarks.problem import Work
    from sims.problem import Heads
    from sims.simulation import estimate

    work = Work(8, 4, n=65536, queries=64, replicates=64)
    task, heads, at = work.problem()
    seen: list[float] = []
    stop = threading.Event()

    def look() -> None:
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not stop.is_set():
            seen.append(float(subprocess.run(query, capture_output=True, text=True).stdout))
            stop.wait(0.2)

    def run(batches: int, count: int) -> None:
        for k in range(count):
            of = Heads(heads.frames, "gaussian", 0.8 + 0.01 * k)
            estimate(task, of, work.n, at, k, batches=batches, replicates_per_batch=64)

    for batches in (16, 64):
        run(batches, 1)
        seen.clear(), stop.clear()
        watch = threading.Thread(target=look)
        watch.start()
        begun = time.perf_counter()
        run(batches, points)
        seconds = time.perf_counter() - begun
        stop.set()
        watch.join()
        rate = work.evaluations(64 * batches) * points / seconds
        busy = sum(seen) / max(len(seen), 1)
        say(points=points, batches=batches, seconds=seconds, rate=rate, busy_percent=busy)


def tests() -> None:
    """The engine's tests on a GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "gpu", "-k", "cuda or bits"]
    done = subprocess.run(
        [*command, "tests/gpu/test_engine_on_gpu.py"], capture_output=True, text=True
    )
    say(tests=done.stdout[-1500:], code=done.returncode)


PIECES = {f.__name__: f for f in (build, right, rates, engine, sweep, tests)}


def main() -> int:
    """Exit code 1 if a piece failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("pieces", nargs="*", default=list(PIECES), metavar="PIECE")
    parser.add_argument("--out", type=Path, default=Path("build/gpu.jsonl"))
    parser.add_argument("--inside", choices=PIECES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        PIECES[options.inside]()
        return 0
    if unknown := [piece for piece in options.pieces if piece not in PIECES]:
        parser.error(f"{unknown[0]}: no such piece; there are {', '.join(PIECES)}")
    if not accelerated() or shutil.which("nvidia-smi") is None:
        parser.exit(
            2, "benchmarks.gpu: no NVIDIA GPU here, or JAX without it: make setup EXTRA=cuda\n"
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {found.get("done") for found in map(json.loads, lines)}
    failed = False
    for piece in options.pieces:
        if piece in done:
            continue
        begun, limit = time.perf_counter(), str(LIMITS[piece])
        inside = [sys.executable, "-m", "benchmarks.gpu", "--inside", piece]
        with subprocess.Popen(
            ["timeout", "-k", "5", limit, *inside], stdout=subprocess.PIPE, text=True
        ) as child:
            for line in child.stdout or ():
                print(line, end="", flush=True)
                if line.startswith("{"):
                    with options.out.open("a") as out:
                        out.write(line)
        end = {"piece": piece, "code": child.returncode}
        end |= {"seconds": round(time.perf_counter() - begun, 1)}
        end |= {"done": piece} if child.returncode == 0 else {}
        failed |= child.returncode != 0
        with options.out.open("a") as out:
            out.write(json.dumps(end) + "\n")
        say(**end)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
