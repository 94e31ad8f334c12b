"""How cost and memory grow with n, replicates and queries."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import linregress, t

from benchmarks.contestants import engine
from benchmarks.machine import description, show
from benchmarks.problem import Work
from sims.simulation.native import usable

LADDER = [1, 2, 5, 10, 20, 50, 100]
CASES = {
    "n": Work(n=32768, replicates=8),
    "replicates": Work(n=16384, replicates=16),
    "queries": Work(n=4096, queries=1024, replicates=4),
}
"""By axis the smallest sizes, which are multiplied by those of the ladder.

They are such that what a call costs anyway (some 20 milliseconds, and the keys of each replicate
where queries grow) is a seventh of them at most.
"""
MOST = 16
"""Calls of the smallest sizes in a round: as much time as the largest, or as near as this gets."""


def simulation(work: Work) -> Callable[[int], float]:
    """``seed -> CPU seconds`` of one call of the engine for all replicates, compiled."""
    at_once = 2 if work.replicates < 16 else 4
    options = {"replicates_per_batch": at_once, "keep_queries": False}
    call = engine(work, "float32", work.replicates // at_once, **options)
    engine(work, "float32", 2, **options)(0)

    def run(seed: int) -> float:
        begun = time.process_time()
        call(seed)
        return time.process_time() - begun

    return run


def mean_seconds(runs: dict[int, Callable[[int], float]], rounds: int) -> np.ndarray:
    """Mean CPU seconds of each size, all sizes in random order.

    Not the best of a few: a call of seconds cannot be as lucky as one of milliseconds, so that on
    a shared machine the best makes cost look steeper than it is. Small sizes are called more often.
    """
    largest = max(runs)
    calls = [f for f in runs for _ in range(rounds * min(MOST, largest // f))]
    np.random.default_rng(0).shuffle(calls)
    took: dict[int, list[float]] = {factor: [] for factor in runs}
    for seed, factor in enumerate(calls, 1):
        took[factor].append(runs[factor](seed))
    return np.array([np.mean(times) for times in took.values()])


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Slope of log cost on log size and half its 95 % interval (Student t)."""
    fit = linregress(np.log(sizes), np.log(seconds))
    return fit.slope, float(t.ppf(0.975, len(sizes) - 2)) * fit.stderr


def peak(n: int, replicates: int) -> float:
    """Peak resident MiB of a fresh process that simulates so much, by its own account."""
    code = f"from benchmarks.scale import worker; worker({n}, {replicates})"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(out.stdout.split()[-1])


def worker(n: int, replicates: int) -> None:
    """Simulate and print the peak resident MiB."""
    work = Work(n=n, queries=16, replicates=min(8, replicates // 2))
    engine(work, "float32", max(2, replicates // 8), keep_queries=False)(0)
    # Not getrusage's ru_maxrss, which begins at the parent's.
    status = Path("/proc/self/status").read_text().split()
    print(int(status[status.index("VmHWM:") + 1]) / 1024)


def main(repeats: int = 3) -> None:
    """Print the tables."""
    usable(Work(n=1).problem()[1].kernel, "cpu", np.inf)  # the C++ sums, if they can be had
    tiny = simulation(Work(n=32, replicates=4))
    fixed = np.mean([tiny(seed) for seed in range(1, 21)])
    rows = []
    for axis, work in CASES.items():
        first = getattr(work, axis)
        runs = {}
        for factor in LADDER:
            runs[factor] = simulation(replace(work, **{axis: factor * first}))
        seconds = mean_seconds(runs, repeats)
        fits = [exponent(LADDER, seconds - part) for part in (0.0, fixed)]
        text = ", ".join(f"{s:.3g}" for s in seconds)
        sizes = f"{first} to {first * LADDER[-1]}"
        rows.append([axis, sizes, text, *(f"{slope:.3f} ± {half:.3f}" for slope, half in fits)])
        print(rows[-1], flush=True)
    columns = ("axis", "sizes", "CPU seconds", "exponent (95 %)", "less the fixed cost")
    note = f"{description()} Fixed cost of a call: {1e3 * fixed:.0f} ms."
    show("How cost grows, float32", columns, rows, note)
    cases = [(4096, 16), (4096, 160), (4096, 1600), (10**5, 4), (10**6, 4), (10**7, 4)]
    rows = [[str(n), str(r), f"{peak(n, r):.0f}"] for n, r in cases]
    note = "The process with its imports, which take most of it. 16 queries, H = 8."
    show("Peak memory, MiB", ("n", "replicates", "MiB"), rows, note)
