"""How cost and memory grow with n, replicates, queries and heads."""

import math
import resource
import subprocess
import sys
import time

import jax
import numpy as np

from benchmarks.machine import description, show
from benchmarks.problem import Work
from sims.simulation import estimate

SIZES = {
    "n": (4096 * np.array([1, 3, 10, 30, 100])).tolist(),
    "replicates": [16, 48, 160, 480, 1600],
    "queries": [16, 48, 160, 480, 1600],
    "heads": [4, 8, 16, 32, 64],
}
"""Two decades of everything but the heads."""


def cost(axis: str, size: int, repeats: int) -> float:
    """CPU seconds of the simulation at that size of one axis; best of ``repeats``."""
    sizes = {"n": 4096, "queries": 16, "heads": 8, "replicates": 16} | {axis: size}
    replicates = sizes.pop("replicates")
    work = Work(**sizes, dimension=4 * sizes["heads"] if axis == "heads" else 32)
    task, heads, queries = work.problem()
    best = math.inf
    for seed in range(repeats + 1):
        begun = time.process_time()
        estimate(
            task, heads, work.n, queries, seed, batches=replicates // 8, replicates_per_batch=8,
            raw_labels=False, keep_queries=False, devices=jax.devices()[:1],
        )  # fmt: skip
        if seed:
            best = min(best, time.process_time() - begun)
    return best


def exponent(sizes, seconds) -> tuple[float, float]:
    """Slope of log cost on log size and half its 95 % interval (Student t)."""
    from scipy.stats import linregress, t

    fit = linregress(np.log(sizes), np.log(seconds))
    return fit.slope, float(t.ppf(0.975, len(sizes) - 2)) * fit.stderr


def peak(n: int, replicates: int, queries: int = 16) -> float:
    """Peak resident MiB of a fresh process that simulates so much, by its own account."""
    code = (
        "from benchmarks.scale import worker; "
        f"worker({n}, {replicates}, {queries})"
    )  # fmt: skip
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(out.stdout.split()[-1])


def worker(n: int, replicates: int, queries: int) -> None:
    """Simulate and print the peak resident MiB."""
    task, heads, x = Work(n=n, queries=queries).problem()
    estimate(
        task, heads, n, x, 0, batches=max(2, replicates // 8),
        replicates_per_batch=min(8, replicates // 2), keep_queries=False,
    )  # fmt: skip
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(repeats: int = 3) -> None:
    """Print the tables."""
    rows = []
    for axis, sizes in SIZES.items():
        seconds = [cost(axis, size, repeats) for size in sizes]
        slope, half = exponent(sizes, seconds)
        text = ", ".join(f"{s:.3g}" for s in seconds)
        rows.append([axis, f"{sizes[0]} to {sizes[-1]}", text, f"{slope:.3f} ± {half:.3f}"])
    columns = ("axis", "sizes", "CPU seconds", "exponent (95 %)")
    show("Cost: others at n = 4096, 16 queries, H = 8, 16 replicates", columns, rows, description())
    cases = [(4096, 16), (4096, 160), (4096, 1600), (10**5, 16), (10**6, 16), (10**7, 4)]
    rows = [[str(n), str(r), f"{peak(n, r):.0f}"] for n, r in cases]
    note = "Whole process; the imports alone take most of it. 16 queries, H = 8."
    show("Peak memory, MiB", ("n", "replicates", "MiB"), rows, note)
