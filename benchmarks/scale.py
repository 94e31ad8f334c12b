"""How cost and memory grow with n, replicates, queries and heads."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.machine import description, show
from benchmarks.problem import Work
from sims.simulation import estimate
from sims.simulation.native import usable

LADDER = [1, 2, 5, 10, 20, 50, 100]
CASES = {
    "n": ({"n": 32768, "queries": 64}, 8, LADDER),
    "replicates": ({"n": 16384, "queries": 64}, 16, LADDER),
    "queries": ({"n": 4096, "queries": 1024}, 4, LADDER),
    "heads": ({"n": 4096, "queries": 512, "heads": 4}, 4, [1, 2, 4, 8, 16]),
}
"""By axis: the smallest sizes, the replicates, and what the axis is multiplied by.

The smallest sizes are such that what a call costs anyway (some 20 milliseconds, and the keys of
each replicate where queries grow) is a seventh of them at most.
"""
MOST = 16
"""Calls of the smallest sizes in a round: as much time as the largest, or as near as this gets."""


def runner(axis: str, factor: int):
    """``seed -> CPU seconds`` of the simulation at so many times the smallest size, compiled."""
    base, replicates, _ = CASES[axis]
    sizes = dict(base)
    if axis == "replicates":
        replicates *= factor
    else:
        sizes[axis] *= factor
    return simulation(replicates, **sizes)


def simulation(replicates: int, **sizes):
    """``seed -> CPU seconds`` of one call of the engine, compiled.

    Heads grow in a space of fixed dimension, so that drawing the keys costs the same.
    """
    work = Work(**sizes, dimension=256 if "heads" in sizes else 32)
    task, heads, queries = work.problem()
    at_once = 2 if replicates < 16 else 4

    def run(seed: int, batches: int = replicates // at_once) -> float:
        begun = time.process_time()
        estimate(
            task,
            heads,
            work.n,
            queries,
            seed,
            batches=batches,
            replicates_per_batch=at_once,
            raw_labels=False,
            keep_queries=False,
            devices=jax.devices()[:1],
        )
        return time.process_time() - begun

    run(0, 2)
    return run


def mean_seconds(runs: dict[int, Any], rounds: int) -> np.ndarray:
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


def exponent(sizes, seconds) -> tuple[float, float]:
    """Slope of log cost on log size and half its 95 % interval (Student t)."""
    from scipy.stats import linregress, t

    fit = linregress(np.log(sizes), np.log(seconds))
    return fit.slope, float(t.ppf(0.975, len(sizes) - 2)) * fit.stderr


def polynomial(heads: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, float]:
    """(a, b, c) of a + b·H + c·H², none negative, and the largest relative gap to ``seconds``.

    Relative least squares, so that few heads count as much as many.
    """
    from scipy.optimize import nnls

    powers = np.vander(heads, 3, increasing=True)
    law, _ = nnls(powers / seconds[:, None], np.ones(len(heads)))
    return law, float(np.abs(powers @ law / seconds - 1).max())


def peak(n: int, replicates: int, queries: int = 16) -> float:
    """Peak resident MiB of a fresh process that simulates so much, by its own account."""
    code = f"from benchmarks.scale import worker; worker({n}, {replicates}, {queries})"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(out.stdout.split()[-1])


def worker(n: int, replicates: int, queries: int) -> None:
    """Simulate and print the peak resident MiB."""
    task, heads, x = Work(n=n, queries=queries).problem()
    estimate(
        task,
        heads,
        n,
        x,
        0,
        batches=max(2, replicates // 8),
        replicates_per_batch=min(8, replicates // 2),
        keep_queries=False,
    )
    # Not getrusage's ru_maxrss, which begins at the parent's.
    status = Path("/proc/self/status").read_text().split()
    print(int(status[status.index("VmHWM:") + 1]) / 1024)


def main(repeats: int = 3) -> None:
    """Print the tables."""
    usable(Work(n=1).problem()[1].kernel, "cpu", np.inf)  # the C++ sums, if they can be had
    tiny = simulation(4, n=32, queries=64)
    fixed = np.mean([tiny(seed) for seed in range(1, 21)])
    rows = []
    for axis, (base, replicates, ladder) in CASES.items():
        seconds = mean_seconds({factor: runner(axis, factor) for factor in ladder}, repeats)
        fits = [exponent(ladder, seconds - part) for part in (0.0, fixed)]
        text = ", ".join(f"{s:.3g}" for s in seconds)
        first = replicates if axis == "replicates" else base[axis]
        sizes = f"{first} to {first * ladder[-1]}"
        rows.append([axis, sizes, text, *(f"{slope:.3f} ± {half:.3f}" for slope, half in fits)])
        print(rows[-1], flush=True)
        if axis == "heads":
            counts = first * np.asarray(ladder, float)
            law, gap = polynomial(counts, seconds)
            shares = law[2] * counts**2 / (np.vander(counts, 3, increasing=True) @ law)
    columns = ("axis", "sizes", "CPU seconds", "exponent (95 %)", "less the fixed cost")
    parts = " + ".join(f"{1e3 * c:.3g}{x}" for c, x in zip(law, ("", " H", " H²"), strict=True))
    note = (
        f"{description()} Fixed cost of a call: {1e3 * fixed:.0f} ms. Heads: {parts} ms, within "
        f"{gap:.1%}; share of H²: " + ", ".join(f"{share:.0%}" for share in shares) + "."
    )
    show("How cost grows, float32", columns, rows, note)
    cases = [(4096, 16), (4096, 160), (4096, 1600), (10**5, 4), (10**6, 4), (10**7, 4)]
    rows = [[str(n), str(r), f"{peak(n, r):.0f}"] for n, r in cases]
    note = "Whole process; the imports alone take most of it. 16 queries, H = 8."
    show("Peak memory, MiB", ("n", "replicates", "MiB"), rows, note)
