"""Time the engine and its peers on the same work in one run, and print a table.

Every contestant runs several times, in turn; the best time counts, since other work on the
machine only ever adds to it. The first call of each (compilation) is not timed.
"""

import argparse
import os
import platform
import time

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.contestants import Contestant, engine, numpy_loop
from benchmarks.problem import Work


def best_times(contestants: dict[str, Contestant], repeats: int) -> dict[str, tuple[float, float]]:
    """Wall and CPU seconds of the best of ``repeats`` runs of each."""
    best = dict.fromkeys(contestants, (float("inf"), 0.0))
    for run in contestants.values():
        run(0)
    for seed in range(1, repeats + 1):
        for name, run in contestants.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run(seed)
            took = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = min(best[name], took)
    return best


def processor() -> str:
    """The CPU's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--batches", type=int, default=16, help="engine batches a run (default 16)")
    options = parser.parse_args()
    work = Work()
    loops = 2 * work.replicates // 8
    rows = {
        "engine float32": (
            engine(work, "float32", options.batches),
            options.batches * work.replicates,
        ),
        "engine float64": (
            engine(work, "float64", options.batches),
            options.batches * work.replicates,
        ),
        "NumPy loop float32": (numpy_loop(work, "float32", loops), loops),
        "NumPy loop float64": (numpy_loop(work, "float64", loops), loops),
    }
    times = best_times({name: run for name, (run, _) in rows.items()}, options.repeats)
    rates = {name: work.evaluations(rows[name][1]) / times[name][0] for name in rows}
    base = rates["NumPy loop float64"]

    title = "Kernel evaluations a second, with all head-pair sums, drawn labels and the draws"
    table = Table(title=title)
    for heading in ("", "evaluations/s", "x NumPy float64", "cores busy", "evaluations/CPU s"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate in rates.items():
        wall, cpu = times[name]
        table.add_row(
            name,
            f"{rate:.2e}",
            f"{rate / base:.1f}",
            f"{cpu / wall:.1f}",
            f"{rate * wall / cpu:.2e}",
        )
    console = Console(width=110)
    console.print(table)
    console.print(
        f"H = {work.heads}, d_k = {work.width}, d = {work.dimension}, n = {work.n}, "
        f"{work.queries} queries, gaussian kernel, {work.replicates} replicates a batch"
    )
    console.print(
        f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"{len(jax.devices())} x {jax.devices()[0].device_kind}; "
        f"Python {platform.python_version()}, jax {jax.__version__}, NumPy {np.__version__}"
    )


if __name__ == "__main__":
    main()
