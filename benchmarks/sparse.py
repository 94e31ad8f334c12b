"""Sparse weight rules beside softmax: the same work but for the weights, in one run on one core."""

import os

import jax
import numpy as np

from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.problem import Heads
from sims.simulation import estimate
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


def contestant(work: Work, rule, temperature: float, plain: bool = False):
    """The engine under a rule; ``plain`` is XLA alone."""
    task, heads, queries = work.problem()
    heads = Heads(heads.frames, rule, temperature**0.5)

    def run(seed: int):
        os.environ["SIMS_NATIVE"] = "0" if plain else "1"
        return estimate(
            task,
            heads,
            work.n,
            queries,
            seed,
            batches=BATCHES,
            precision="float32",
            replicates_per_batch=work.replicates,
            devices=jax.devices()[:1],
        )

    return run


def main(repeats: int = 5, temperatures: tuple[float, ...] = (1.0, 4.0)) -> list[list[str]]:
    """Print the table; its rows are returned."""
    work, rows = Work(), []
    for temperature in temperatures:
        calls = {}
        for name, rule in RULES.items():
            for plain in (False, True):
                calls[name, plain] = contestant(work, rule, temperature, plain)
        noise = {name: calls[name, False](0)["noise_variance"].values.mean() for name in RULES}
        took = cpu_seconds(calls, repeats)
        for name in RULES:
            ratios = [took[name, plain] / took[REFERENCE, False] for plain in (False, True)]
            each = 1e3 * took[name, False] / (BATCHES * work.replicates)
            # Effective keys as the noise has them: σ² over its mean.
            effective = work.problem()[0].noise_sd ** 2 / noise[name]
            cells = [f"{np.asarray(effective):.3g}", f"{each:.2f}"]
            rows.append([name, f"{temperature:g}", *cells, *(f"{ratio:.2f}" for ratio in ratios)])
    note = (
        f"H = {work.heads}, d_k = {work.width}, n = {work.n}, {work.queries} queries, float32: "
        "draws, labels, heads, all pair sums. " + description()
    )
    columns = ("", "temperature", "n_eff", "ms a replicate", "÷ softmax", "plain XLA ÷ softmax")
    show("CPU time beside softmax in C++", columns, rows, note)
    return rows
