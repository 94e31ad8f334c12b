"""Outcomes of a problem: whether a quantity falls over pairs, rises, or is level. No JAX.

Let r and f be the largest true relative rise and fall over a problem's pairs, and t a tolerance.
The claim that it falls holds if r ≤ t < f, fails if r > t, and makes no difference (level) if both
are at most t. Bounds are simultaneous over the pairs and the looks, by Bonferroni.
"""

import numpy as np
from scipy.special import stdtrit

from sims.judgement import conventions

HOLDS, FAILS, UNDECIDED, LEVEL = 1.0, -1.0, 0.0, 2.0
"""Calls of a problem."""


def bound(freedom: np.ndarray | float, comparisons: int) -> np.ndarray:
    """Standard errors between an estimate and its simultaneous bound.

    All comparisons of a problem hold together with :data:`~sims.judgement.conventions.SURE`.

    Args:
        freedom: degrees of freedom of the standard error, batches less one.
        comparisons: pairs times looks.
    """
    tail = (1 - conventions.SURE) / 2 / comparisons
    return np.asarray(-stdtrit(freedom, tail))


def outcome_calls(
    falls: np.ndarray, error: np.ndarray, freedom: np.ndarray, looks: int, tolerance: float
) -> np.ndarray:
    """Call of each problem, (N,): 1 holds, −1 fails, 2 level, 0 undecided, NaN without pairs.

    Args:
        falls: relative falls over P pairs, (N, P); NaN for a problem without pairs.
        error: their standard errors, (N, P).
        freedom: degrees of freedom of the errors, (N,).
        looks: number of looks at which a problem may have stopped.
        tolerance: t.
    """
    far = bound(freedom, falls.shape[1] * looks)[:, None] * error
    most_rise = (far - falls).max(1)
    certain_rise = (-falls - far).max(1)
    most_fall = (falls + far).max(1)
    certain_fall = (falls - far).max(1)
    small_rise = most_rise <= tolerance
    return np.select(
        [
            np.isnan(falls).any(1),
            certain_rise > tolerance,
            small_rise & (certain_fall > tolerance),
            small_rise & (most_fall <= tolerance),
        ],
        [np.nan, FAILS, HOLDS, LEVEL],
        UNDECIDED,
    )
