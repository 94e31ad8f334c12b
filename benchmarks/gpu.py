"""``python -m benchmarks.gpu``: is the GPU kernel right on this device, and how fast is it?

In this order: every kernel against plain XLA in float64; the sums alone on plain XLA and on Pallas
by tile; the whole engine on both; how busy a sweep of many points keeps the device; every
experiment at paper fidelity. What is measured is kept at once, with a page beside it. A call ends
after ``--minutes`` with exit code 75 if something is left, and the same command goes on.
Without a GPU it says so and checks a tiny problem in Pallas' interpreter.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.pieces import GO_ON, OutOfTime, Pieces
from benchmarks.problem import Work
from sims import files
from sims.montecarlo.compiled import divisor
from sims.places import place
from sims.problem import KERNELS, Heads
from sims.provenance import versions
from sims.simulation import Tuning, estimate
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.pallas import Tile, pallas_sums
from sims.simulation.plan import ROWS
from sims.simulation.sums import streamed_sums
from sims.study.code import EXPERIMENTS, code

HEADS, WIDTH = 8, 4
RATE, SPEEDUP, TOLERANCE, BUSY = 1e12, 5.0, 1e-5, 0.8
"""Goals on an H100: evaluations a second, times plain XLA; largest relative error; share busy."""
REPEATS = 5
TILES = tuple(product((1, 2, 4), (32, 64, 128), (1, 2, 4)))
POINTS = 48
"""Of the sweep that is to keep the device busy."""


def arrays(kernel: str, queries: int, n: int, heads: int = HEADS, lead: tuple[int, ...] = ()):
    """Random float32 queries (Q, p, H), keys (…, p, H, n), columns (…, 3, n), and bandwidth.

    The first query is so far that its gaussian kernels underflow; compact kernels are 0 there.
    """
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(*lead, 3, n))
    columns[..., -1, :] = 1.0
    points = rng.normal(size=(queries, WIDTH, heads)) / 2
    points[0] += 10.0
    made = (points, rng.normal(size=(*lead, WIDTH, heads, n)), columns)
    made = (jnp.asarray(x, jnp.float32) for x in made)
    b = 1.0 if KERNELS[kernel].scaled else jnp.full((heads, 1), 0.8, jnp.float32)
    return (*made, b)


def error(kernel: str, sums: Callable[..., Any], queries: int, n: int, heads: int) -> float:
    """Largest relative error of Σ w_h w_g and Σ w_h c, against plain XLA in float64.

    Not finite where even the empty neighbourhoods differ, or a sum is NaN.
    """
    given = arrays(kernel, queries, n, heads)
    found = jax.jit(partial(sums, KERNELS[kernel]))(*given)
    wide = [jnp.asarray(x, jnp.float64) for x in given[:3]]
    b = given[3] if KERNELS[kernel].scaled else given[3].astype(jnp.float64)
    exact = jax.jit(partial(streamed_sums, KERNELS[kernel]))(*wide, b)
    if not bool(jnp.array_equal(jnp.isfinite(found.peak), jnp.isfinite(exact.peak))):
        return float("inf")

    def weighed(sums: Any) -> tuple[Any, Any]:
        # What the engine makes of the sums: Σ w_h w_g and Σ w_h c. No key in reach: zeros.
        mass = sums.linear[..., -1:]
        inverse = jnp.where(mass == 0, 0.0, 1 / mass)
        return sums.gram * inverse * inverse.mT, sums.linear * inverse

    (pairs, means), (gram, linear) = weighed(found), weighed(exact)
    own = jnp.diagonal(gram, axis1=1, axis2=2)
    size = jnp.sqrt(own[:, :, None] * own[:, None, :])
    gap = jnp.abs(pairs - gram)
    relative = jnp.where(gap == 0, 0.0, gap / size).max()
    return float(jnp.maximum(relative, (jnp.abs(means - linear) / jnp.abs(wide[2]).max()).max()))


def rate(sums: Callable[..., Any], queries: int, n: int, replicates: int) -> float:
    """Evaluations a second of the sums alone, keys and queries in blocks of the engine's size."""
    q, keys, columns, _ = arrays("gaussian", queries, DRAW_BLOCK, lead=(replicates,))

    block = divisor(queries, max(1, ROWS // replicates))

    @jax.jit
    def run(q: Any, keys: Any, columns: Any) -> Any:
        def one(keys: Any, columns: Any) -> Any:
            def step(total: Any, shift: Any) -> tuple[Any, None]:
                # Other keys in every step, or the compiler would take the loop apart.
                found = sums(KERNELS["gaussian"], q, keys + shift, columns, 1.0, block)
                return total + found.gram, None

            start = jnp.zeros((queries, HEADS, HEADS))
            return lax.scan(step, start, jnp.linspace(0, 1e-3, n // DRAW_BLOCK, dtype=q.dtype))[0]

        return jax.vmap(one)(keys, columns)

    jax.block_until_ready(run(q, keys, columns))
    took = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(run(q, keys, columns))
        took.append(time.perf_counter() - start)
    return replicates * queries * HEADS * (n // DRAW_BLOCK * DRAW_BLOCK) / min(took)


def engine_rate(sums: Callable[..., Any], work: Work) -> float:
    """Evaluations a second of ``estimate``: draws, target and merging of blocks included."""
    task, heads, queries = work.problem()

    def run(seed: int) -> float:
        start = time.perf_counter()
        estimate(
            task, heads, work.n, queries, seed, batches=2, replicates_per_batch=work.replicates,
            tuning=Tuning(memory_budget=2**35, kernel_sums=sums),
        )  # fmt: skip
        return time.perf_counter() - start

    run(0)
    return work.evaluations(2 * work.replicates) / min(run(seed) for seed in range(1, REPEATS))


@contextmanager
def utilisation() -> Iterator[list[float]]:
    """Shares of the time in which a kernel ran on the device, five a second, while it is open."""
    command = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
    watch = subprocess.Popen(
        [*command, "-i", "0", "-lms", "200"], stdout=subprocess.PIPE, text=True
    )
    seen: list[float] = []
    try:
        yield seen
    finally:
        watch.terminate()
        lines = watch.communicate()[0].split("\n")
        seen += [float(line) / 100 for line in lines if line.strip().isdigit()]


def sweep(sums: Callable[..., Any], work: Work) -> dict[str, float | None]:
    """How busy the device is, and the rate, over points that differ in their bandwidth."""
    task, heads, queries = work.problem()

    def run(bandwidth: float) -> None:
        estimate(
            task, Heads(heads.frames, "gaussian", bandwidth), work.n, queries, 0, batches=4,
            replicates_per_batch=work.replicates,
            tuning=Tuning(memory_budget=2**35, kernel_sums=sums),
        )  # fmt: skip

    run(1.0)
    begun = time.perf_counter()
    with utilisation() as seen:
        for bandwidth in np.linspace(0.5, 1.5, POINTS):
            run(float(bandwidth))
    rate = POINTS * work.evaluations(4 * work.replicates) / (time.perf_counter() - begun)
    return {"busy": float(np.mean(seen)) if seen else None, "evaluations/s": rate}


def at_paper(pieces: Pieces, name: str, folder: Path) -> dict[str, float | str]:
    """Minutes that an experiment took at paper fidelity, or why it did not fit.

    Raises:
        OutOfTime: it was told to stop; what it has finished is kept for the next call.
    """
    spent = folder / f"{name}.seconds"
    before = float(spent.read_text()) if spent.exists() else 0.0
    # Beside no experiments of its own, that folder's are the checkout's; results go below it.
    begun = time.monotonic()
    running = subprocess.Popen(
        [sys.executable, "-m", "sims", "run", name, "--fidelity", "paper"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = running.communicate(timeout=max(pieces.left() - 30, 1))[1]
    except subprocess.TimeoutExpired:
        running.terminate()
        running.communicate()
        spent.write_text(str(before + time.monotonic() - begun))
        raise OutOfTime(name) from None
    if running.returncode:
        return {"failed": (said.strip().splitlines() or ["no word"])[-1]}
    return {"minutes": (before + time.monotonic() - begun) / 60}


def small_error(kernel: str) -> float:
    """The error of a kernel on this device.

    Raises:
        ArithmeticError: it is above the tolerance, or not finite.
    """
    found = error(kernel, pallas_sums, 256, 4096 - 37, HEADS)
    if not found <= TOLERANCE:
        raise ArithmeticError(f"{kernel}: relative error {found:.1e}, above {TOLERANCE:g}")
    return found


def measure(pieces: Pieces, options: argparse.Namespace) -> None:
    """Everything, in the order in which a wrong or slow answer saves the rest.

    Raises:
        OutOfTime: the rest takes another call.
        ArithmeticError: a sum is wrong.
    """
    for kernel in KERNELS:
        pieces(f"error/{kernel}", partial(small_error, kernel))
    size = (options.queries, options.n, options.replicates)
    pieces("sums/plain XLA", partial(rate, streamed_sums, *size))
    rates = {}
    for sizes in TILES:
        sums = partial(pallas_sums, tile=Tile(*sizes))
        rates[sizes] = pieces(f"sums/{_tile(sizes)}", partial(rate, sums, *size))
    best = max(rates, key=rates.__getitem__)
    work = Work(HEADS, WIDTH, n=options.n, queries=options.queries, replicates=options.replicates)
    engines = {
        "plain XLA": streamed_sums, _tile(best): partial(pallas_sums, tile=Tile(*best))
    }  # fmt: skip
    for name, sums in engines.items():
        pieces(f"engine/{name}", partial(engine_rate, sums, work))
    for name, sums in engines.items():
        pieces(f"sweep/{name}", partial(sweep, sums, work))
    for path in sorted(place(EXPERIMENTS).glob("*/experiment.yaml")):
        name = path.parent.name
        pieces(f"paper/{name}", partial(at_paper, pieces, name, options.output))


def _tile(sizes: tuple[int, int, int]) -> str:
    return "Pallas, tile {} × {}, {} warps".format(*sizes)


def page(conditions: Mapping[str, str], results: Mapping[str, Any], outcome: str) -> str:
    """What was measured, as Markdown, and how far it got."""

    def rows(part: str) -> dict[str, Any]:
        return {k.split("/", 1)[1]: v for k, v in results.items() if k.startswith(f"{part}/")}

    def table(*columns: str) -> list[str]:
        return ["", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]

    lines = ["# The engine on a GPU, measured", ""]
    lines += [f"{name}: {value}  " for name, value in conditions.items()]
    lines += ["", outcome]
    lines += table("kernel", f"largest relative error (goal {TOLERANCE:g})")
    lines += [f"| {name} | {value:.1e} |" for name, value in rows("error").items()]
    for part, title in (("sums", "sums alone"), ("engine", "whole engine")):
        found = rows(part)
        plain = found.get("plain XLA", float("nan"))
        lines += table(title, f"evaluations/s (goal {RATE:.0e})", f"× plain (goal {SPEEDUP:g})")
        lines += [f"| {name} | {v:.3g} | {v / plain:.2f} |" for name, v in found.items()]
    lines += table(f"sweep of {POINTS} points", f"device busy (goal {BUSY:.0%})", "evaluations/s")
    for name, value in rows("sweep").items():
        busy = "not seen" if value["busy"] is None else f"{value['busy']:.0%}"
        lines.append(f"| {name} | {busy} | {value['evaluations/s']:.3g} |")
    lines += table("experiment at paper fidelity", "minutes")
    for name, value in rows("paper").items():
        took = f"{value['minutes']:.1f}" if "minutes" in value else f"failed: {value['failed']}"
        lines.append(f"| {name} | {took} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Exit code 1 if a sum is wrong, 75 if the same command is to be called again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--queries", type=int, default=1024)
    parser.add_argument("--n", type=int, default=65536, help="keys, a multiple of 4096")
    parser.add_argument("--replicates", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=9.0, help="of this call (default 9)")
    parser.add_argument("--output", type=Path, default=Path("results/gpu"))
    options = parser.parse_args()
    device = jax.devices()[0]
    if device.platform != "gpu":
        print(f"No GPU here ({device.device_kind}): Pallas' interpreter, tiny, not timed.")
        tiny = partial(pallas_sums, tile=Tile(2, 16), interpret=True)
        errors = {name: error(name, tiny, 3, 37, 2) for name in KERNELS}
        print("\n".join(f"{name:24} {value:.1e}" for name, value in errors.items()))
        return int(not all(value <= TOLERANCE for value in errors.values()))
    options.output.mkdir(parents=True, exist_ok=True)
    conditions = {
        "device": device.device_kind,
        "jax": versions()["jax"],
        "code": code("simulate", place(EXPERIMENTS) / "angles"),
        "size": f"H = {HEADS}, d_k = {WIDTH}, Q = {options.queries}, n = {options.n}, "
        f"{options.replicates} replicates",
    }
    pieces = Pieces(options.output / "gpu.json", conditions, 60 * options.minutes)
    exit_code, outcome = 0, "All is measured."
    try:
        measure(pieces, options)
    except OutOfTime as left:
        exit_code, outcome = GO_ON, f"Left at {left}: the same command goes on."
    except ArithmeticError as wrong:
        exit_code, outcome = 1, f"WRONG: {wrong}"
    text = page(conditions, pieces.results, outcome)
    files.write(text, options.output / "gpu.md", "gpu.md")
    print(text)
    return exit_code


if __name__ == "__main__":
    raise SystemExit(main())
