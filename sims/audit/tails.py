"""How often skewed batches mislead an interval at the level that Holm asks of a ledger's rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from sims.audit.runs import LEVEL, SURE, looks
from sims.judgement.intervals import fixed_half_width, sequence_half_width, skewed_half_width

ROWS = 305
"""About as many as a paper's tested claims: the first of them is held to a share 1/305."""
TIMES = 1.5
"""The share of misses, over the nominal one, up to which an interval holds."""
BATCHES = 256
"""The longest runs; the first look is at the fewest batches that may decide."""
CHUNK = 5000
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _gamma(skewness: float) -> Draw:
    shape = 4 / skewness**2
    return lambda rng, size: rng.gamma(shape, size=size) - shape


def _lognormal(variance: float) -> Draw:
    return lambda rng, size: (
        np.exp(np.sqrt(variance) * rng.normal(size=size)) - np.exp(variance / 2)
    )


SURROGATES: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "gamma, skewness ½": _gamma(0.5),
    "gamma, skewness 1": _gamma(1.0),
    "gamma, skewness 2": _gamma(2.0),
    "lognormal, skewness 1": _lognormal(0.0989),
}
"""Batches of mean 0. Those of the experiments have skewnesses up to about 2 (judgement.md)."""


def tails(runs: int) -> list[dict[str, Any]]:
    """Count the runs in which an interval at a share 1/305 of 5 % misses the mean.

    Args:
        runs: of each law of batches.

    Returns:
        A row an interval and law: interval, of, missed, runs, nominal (misses expected), most
        (allowed: what chance leaves at 99 %, for the whole table, of 1.5 times as many), holds.
    """
    alpha, at = (1 - LEVEL) / ROWS, looks(BATCHES)
    names = (f"t, {at[0]} batches", f"sequence, {at[0]} to {at[-1]} batches")
    share = (1 - SURE) / (len(names) * len(SURROGATES))
    most = int(binom.ppf(1 - share, runs, TIMES * alpha))
    rows = []
    for place, (of, draw) in enumerate(SURROGATES.items()):
        rng, missed = np.random.default_rng([9, place]), np.zeros(2, int)
        for size in [CHUNK] * (runs // CHUNK) + [runs % CHUNK]:
            missed += _missed(draw(rng, (size, BATCHES)), at, alpha)
        rows += [
            {"interval": name, "of": of, "missed": int(count), "runs": runs,
             "nominal": runs * alpha, "most": most, "holds": bool(count <= most)}
            for name, count in zip(names, missed, strict=True)
        ]  # fmt: skip
    return rows


def _missed(values: np.ndarray, at: list[int], alpha: float) -> np.ndarray:
    """Runs (run, batch) of mean 0 that t misses at the first look, and a sequence at any."""
    square = values * values
    sums = [
        np.add.reduceat(part, [0, *at[:-1]], axis=1).cumsum(1)
        for part in (values, square, square * values)
    ]
    count = np.array(at)
    mean, second, third = (part / count for part in sums)
    variance = second - mean**2
    error = np.sqrt(variance / (count - 1))
    skewness = (third - 3 * mean * second + 2 * mean**3) / variance**1.5 / np.sqrt(count)
    t, sequence = (
        np.abs(mean) > skewed_half_width(half, error, skewness)
        for half in (
            fixed_half_width(error, count - 1, alpha),
            sequence_half_width(error, count, alpha),
        )
    )
    return np.array([t[:, 0].sum(), sequence.any(1).sum()])
