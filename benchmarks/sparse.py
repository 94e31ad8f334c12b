"""Sparse weight rules beside softmax: the same work but for the weights, in one run on one core."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contestants import engine
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.weights import FACTORIES

REFERENCE = "softmax"
RULES = {
    REFERENCE: REFERENCE,
    "sparsemax": FACTORIES["sparsemax"]("distance"),
    "1.5-entmax": FACTORIES["entmax"](alpha=1.5, scores="distance"),
    "4/3-entmax": FACTORIES["entmax"](nu=3.0, scores="distance"),
    "entmax, ν = 2.5": FACTORIES["entmax"](nu=2.5, scores="distance"),
    "ReLU of the gap": FACTORIES["relu_gap"](scores="distance"),
    "sparsemax, dot products": FACTORIES["sparsemax"]("dot"),
    "1.5-entmax, dot products": FACTORIES["entmax"](alpha=1.5, scores="dot"),
}
BATCHES = 2


def contestant(work: Work, native: str) -> Callable[[int], Any]:
    """The engine with its C++ sums ("1"), or with XLA alone ("0")."""
    call = engine(work, "float32", BATCHES)

    def run(seed: int) -> Any:
        os.environ["SIMS_NATIVE"] = native
        return call(seed)

    return run


def main(repeats: int = 5, temperatures: tuple[float, ...] = (1.0, 4.0)) -> None:
    """Print the table."""
    work, rows = Work(), []
    for temperature in temperatures:
        calls = {}
        for name, rule in RULES.items():
            ruled = Work(rule=rule, bandwidth=temperature**0.5)
            for native in "10":
                calls[name, native] = contestant(ruled, native)
        noise = {name: calls[name, "1"](0)["noise_variance"].values.mean() for name in RULES}
        took = cpu_seconds(calls, repeats)
        for name in RULES:
            ratios = [took[name, native] / took[REFERENCE, "1"] for native in "10"]
            each = 1e3 * took[name, "1"] / (BATCHES * work.replicates)
            # Effective keys as the noise has them: σ² over its mean.
            effective = work.noise_sd**2 / noise[name]
            cells = [f"{np.asarray(effective):.3g}", f"{each:.2f}"]
            rows.append([name, f"{temperature:g}", *cells, *(f"{ratio:.2f}" for ratio in ratios)])
    note = (
        f"H = {work.heads}, d_k = {work.width}, n = {work.n}, {work.queries} queries, float32: "
        "draws, heads, all pair sums. " + description()
    )
    columns = ("", "temperature", "n_eff", "ms a replicate", "÷ softmax", "plain XLA ÷ softmax")
    show("CPU time beside softmax in C++", columns, rows, note)
