"""How near the engine comes to the limit that products and exponentials set.

The floor of a kernel evaluation: (flops of its exponent and of its part of the pair sums) ÷ the
rate of a large matrix product + 1 ÷ the rate of exponentials, both measured in the same run on the
same core. The exponent of width p costs 2p flops, the H(H + 1)/2 pair sums of a key H + 1 flops an
evaluation. The exponential is XLA's; the C++ sums have their own, so that their share can exceed
100 %.
"""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.problem import Kernel
from sims.simulation import estimate
from sims.simulation.native import native_sums, usable
from sims.simulation.sums import streamed_sums

REPEATED = 200
SIZE = 16384  # of the array of exponentials: in the second-level cache


def ceilings(precision: str) -> dict:
    """Calls whose time gives the two rates."""
    side = 1024
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(side, side)), precision)
    exponents = jnp.linspace(-8, 0, SIZE, dtype=precision)

    @jax.jit
    def product(seed):
        return lax.fori_loop(0, 4, lambda _, a: (a @ matrix) / side, matrix + seed)

    @jax.jit
    def exponentials(seed):
        return lax.fori_loop(0, REPEATED, lambda _, x: jnp.exp(-x), exponents + seed)

    return {
        "product": lambda seed: product(jnp.asarray(seed, precision)),
        "exp": lambda seed: exponentials(jnp.asarray(1e-3 * seed, precision)),
    }


def sums_alone(work: Work, precision: str, kernel_sums) -> dict:
    """A call that computes the kernel sums of a batch's replicates, without drawing them."""
    heads = work.problem()[1]
    rng = np.random.default_rng(1)
    shape = (work.width, work.heads, work.n)
    keys = jnp.asarray(rng.normal(size=shape), precision)
    columns = jnp.asarray([*rng.normal(size=(2, work.n)), np.ones(work.n)], precision)
    q = jnp.asarray(0.5 * rng.normal(size=(work.queries, *shape[:2])), precision)

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


def main(repeats: int = 5) -> list[list[str]]:
    """Print the table; its rows are returned."""
    rows, before = [], os.environ.get("SIMS_NATIVE", "1")
    for precision in ("float32", "float64"):
        for queries in (64, 512):
            work = Work(n=4096, queries=queries, replicates=8192 // queries)
            ways = {"XLA": streamed_sums}
            if usable(work.problem()[1].kernel, "cpu", np.inf):
                ways["C++"] = native_sums
            for way, sums in ways.items():
                task, heads, x = work.problem()

                def engine(seed, work=work, way=way, task=task, heads=heads, x=x, p=precision):
                    os.environ["SIMS_NATIVE"] = "1" if way == "C++" else "0"
                    return estimate(
                        task,
                        heads,
                        work.n,
                        x,
                        seed,
                        batches=2,
                        precision=p,
                        replicates_per_batch=work.replicates,
                        devices=jax.devices()[:1],
                    )

                calls = {"engine": engine} | ceilings(precision)
                calls |= sums_alone(work, precision, sums)
                took = cpu_seconds(calls, repeats)
                os.environ["SIMS_NATIVE"] = before
                gemm, exp = 4 * 2 * 1024**3 / took["product"], REPEATED * SIZE / took["exp"]
                floor = (2 * work.width + work.heads + 1) / gemm + 1 / exp
                rates = {
                    "engine": work.evaluations(2 * work.replicates) / took["engine"],
                    "sums": work.evaluations(work.replicates) / took["sums"],
                }
                shares = [f"{floor * rates[name]:.0%}" for name in ("sums", "engine")]
                numbers = [
                    f"{gemm:.3g}",
                    f"{exp:.3g}",
                    f"{1 / floor:.3g}",
                    f"{rates['engine']:.3g}",
                ]
                rows.append([f"{way} {precision}", str(queries), *numbers, *shares])
    heads_ = (
        "",
        "queries",
        "matmul flop/s",
        "exp/s",
        "limit",
        "engine",
        "sums/limit",
        "engine/limit",
    )
    show("Kernel evaluations a CPU second: H = 8, d_k = 4, n = 4096", heads_, rows, description())
    return rows
