"""Hundreds of independent runs, and when each is looked at."""

import numpy as np

from sims.judgement.evidence import FEWEST

LEVEL = 0.95
"""Nominal, of every verdict and interval."""
SURE = 0.99
"""For all rows of a table together: each gets its share of the 1 %."""
LEAST = FEWEST
"""Batches at the first look, which fewer decide nothing; each after it is at twice as many."""
SIZES = np.array([1.0, 2.0, 4.0, 8.0])
"""Where power laws are measured."""
CANDIDATES = 4


def looks(batches: int) -> list[int]:
    """When a run is looked at."""
    counts, count = [], LEAST
    while count < batches:
        counts.append(count)
        count *= 2
    return [c for c in counts if c < batches] + [batches]


def power_law(rng: np.random.Generator, runs: int, count: int, shared: float) -> np.ndarray:
    """Batches (runs, count, k) of 3/x at :data:`SIZES`, 2 % off; ``shared``: of the variance."""
    own = rng.normal(size=(runs, count, len(SIZES)))
    common = rng.normal(size=(runs, count, 1))
    off = np.sqrt(1 - shared) * own + np.sqrt(shared) * common
    return np.asarray(3 / SIZES * (1 + 0.02 * off))


def candidates(rng: np.random.Generator, runs: int, count: int) -> np.ndarray:
    """Batches (runs, count, k) of candidates that are all as good (mean 1) and share draws."""
    own, common = rng.normal(size=(runs, count, CANDIDATES)), rng.normal(size=(runs, count, 1))
    return np.asarray(1 + 0.1 * own + 0.3 * common)
