"""``python -m benchmarks.gpu``: how fast are the sums and the engine on a GPU?

Evaluations a second at H = 8, d_k = 4 in float32: of the sums over a block of keys alone, and of
the whole engine, draws, target and merging of blocks included.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.machine import description, show
from benchmarks.problem import Work
from sims.montecarlo.compiled import divisor
from sims.problem import KERNELS
from sims.simulation import estimate
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.plan import ROWS
from sims.simulation.sums import streamed_sums

REPEATS = 5


def best(run: Callable[[int], Any]) -> float:
    """Seconds of the fastest of a few calls, after one that compiles."""
    run(0)
    took = []
    for seed in range(1, REPEATS):
        start = time.perf_counter()
        run(seed)
        took.append(time.perf_counter() - start)
    return min(took)


def sums_rate(work: Work) -> float:
    """Evaluations a second of the sums alone, in blocks of the engine's size."""
    rng = np.random.default_rng(0)
    q = jnp.asarray(rng.normal(size=(work.queries, work.width, work.heads)) / 2, jnp.float32)
    keys, columns = (
        jnp.asarray(rng.normal(size=(work.replicates, *shape, DRAW_BLOCK)), jnp.float32)
        for shape in ((work.width, work.heads), (3,))
    )
    block = divisor(work.queries, max(1, ROWS // work.replicates))

    @jax.jit
    def run(q: Any, keys: Any, columns: Any) -> Any:
        def one(keys: Any, columns: Any) -> Any:
            def step(total: Any, shift: Any) -> tuple[Any, None]:
                # Other keys in every step, or the compiler would take the loop apart.
                found = streamed_sums(KERNELS["gaussian"], q, keys + shift, columns, 1.0, block)
                return total + found.gram, None

            start = jnp.zeros((work.queries, work.heads, work.heads))
            shifts = jnp.linspace(0, 1e-3, work.n // DRAW_BLOCK, dtype=q.dtype)
            return lax.scan(step, start, shifts)[0]

        return jax.vmap(one)(keys, columns)

    seconds = best(lambda seed: jax.block_until_ready(run(q, keys, columns)))
    return work.evaluations(work.replicates) / seconds


def engine_rate(work: Work) -> float:
    """Evaluations a second of ``estimate``."""
    task, heads, queries = work.problem()
    seconds = best(
        lambda seed: estimate(
            task, heads, work.n, queries, seed, batches=2, replicates_per_batch=work.replicates
        )
    )
    return work.evaluations(2 * work.replicates) / seconds


def main() -> int:
    """Exit code 1 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--n", type=int, default=65536, help="keys, a multiple of 4096")
    options = parser.parse_args()
    device = jax.devices()[0]
    if device.platform != "gpu":
        print(f"No GPU here ({device.device_kind}).")
        return 1
    rows = []
    for queries, replicates in ((64, 32), (1024, 8)):
        work = Work(8, 4, n=options.n, queries=queries, replicates=replicates)
        rates = (sums_rate(work), engine_rate(work))
        rows.append([str(queries), str(replicates), *(f"{rate:.3g}" for rate in rates)])
    columns = ("queries", "replicates", "sums alone", "engine")
    show("Evaluations a second, float32", columns, rows, f"{device.device_kind}. {description()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
