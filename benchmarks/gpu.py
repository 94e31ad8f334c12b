"""``python -m benchmarks.gpu``: is the GPU kernel right on this device, and how fast is it?

One call checks every kernel against plain XLA in float64, sweeps the tile, times the sums and the
whole engine on Pallas and on plain XLA, and prints tables beside the goals. Without a GPU it says
so and checks a tiny problem in Pallas' interpreter.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from rich.console import Console
from rich.table import Table

from benchmarks.problem import Work
from sims.problem import KERNELS
from sims.simulation import Tuning, estimate
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.pallas import Tile, pallas_sums
from sims.simulation.sums import streamed_sums

HEADS, WIDTH = 8, 4
RATE, SPEEDUP, TOLERANCE = 1e12, 5.0, 1e-5
"""Goals on an H100: evaluations a second, times plain XLA; and the largest relative error."""
REPEATS = 5


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


def check(console: Console, sums: Callable[..., Any], queries: int, n: int, heads: int) -> bool:
    """Print the error of every kernel; n is no multiple of a tile."""
    table = Table("kernel", "largest relative error", title=f"Q = {queries}, n = {n}, H = {heads}")
    errors = {name: error(name, sums, queries, n, heads) for name in KERNELS}
    for name, value in errors.items():
        table.add_row(name, f"{value:.1e}")
    console.print(table)
    good = all(value <= TOLERANCE for value in errors.values())
    console.print(f"Correct to {TOLERANCE:g}: {'yes' if good else 'NO'}.")
    return good


def rate(sums: Callable[..., Any], queries: int, n: int, replicates: int) -> float:
    """Evaluations a second of the sums alone, keys in blocks of the engine's size."""
    q, keys, columns, _ = arrays("gaussian", queries, DRAW_BLOCK, lead=(replicates,))

    @jax.jit
    def run(q: Any, keys: Any, columns: Any) -> Any:
        def one(keys: Any, columns: Any) -> Any:
            def step(total: Any, shift: Any) -> tuple[Any, None]:
                # Other keys in every step, or the compiler would take the loop apart.
                found = sums(KERNELS["gaussian"], q, keys + shift, columns, 1.0, queries)
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


def measure(console: Console, queries: int, n: int, replicates: int) -> None:
    """The sweep over tiles, then both engines at the best of them."""
    plain = rate(streamed_sums, queries, n, replicates)
    table = Table("tile: queries", "keys", "warps", "evaluations/s", "× plain XLA")
    best, tile = 0.0, Tile()
    for sizes in product((1, 2, 4), (32, 64, 128), (1, 2, 4)):
        found = rate(partial(pallas_sums, tile=Tile(*sizes)), queries, n, replicates)
        table.add_row(*map(str, sizes), f"{found:.3g}", f"{found / plain:.1f}")
        if found > best:
            best, tile = found, Tile(*sizes)
    console.print(table)
    work = Work(HEADS, WIDTH, n=n, queries=queries, replicates=replicates)
    whole = {
        "plain XLA": (plain, engine_rate(streamed_sums, work)),
        f"Pallas, {tile}": (best, engine_rate(partial(pallas_sums, tile=tile), work)),
    }
    table = Table("engine", "sums alone, evaluations/s", "whole engine, evaluations/s")
    for name, (alone, all_of_it) in whole.items():
        table.add_row(name, f"{alone:.3g}", f"{all_of_it:.3g}")
    console.print(table)
    console.print(
        f"Goals on an H100: {RATE:.0e} evaluations/s: {'met' if best >= RATE else 'MISSED'}; "
        f"{SPEEDUP:g}× plain XLA: {'met' if best >= SPEEDUP * plain else 'MISSED'}."
    )


def main() -> int:
    """Exit code 1 if a sum is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--queries", type=int, default=1024)
    parser.add_argument("--n", type=int, default=65536, help="keys, a multiple of 4096")
    parser.add_argument("--replicates", type=int, default=8)
    options = parser.parse_args()
    console = Console(width=100)
    device = jax.devices()[0]
    if device.platform != "gpu":
        console.print(f"No GPU here ({device.device_kind}): Pallas' interpreter, tiny, not timed.")
        tiny = partial(pallas_sums, tile=Tile(2, 16), interpret=True)
        return 0 if check(console, tiny, 3, 37, 2) else 1
    console.print(f"{device.device_kind}, jax {jax.__version__}, H = {HEADS}, d_k = {WIDTH}")
    if not check(console, pallas_sums, 256, 4096 - 37, HEADS):
        return 1
    measure(console, options.queries, options.n, options.replicates)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
