"""How far a curve without sampling error is from a law ``y = a + b z(x)``, b > 0."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog


def deviation(x: ArrayLike, y: ArrayLike, exponent: float = 1.0) -> float:
    """Largest distance of y from the nearest ``a + b (log x)^exponent``, as a share of y's rise.

    The nearest law is Chebyshev's: no other a and b ≥ 0 have a smaller largest distance. The rise
    is the last y less the first; a curve that does not rise is off by 1.

    For scale: from x = 10² to 10⁸ the square root of log x is 4.1 % off the law of log x.

    Args:
        x: > 1, (k,), in any order.
        y: (k,).
        exponent: of log x.
    """
    order = np.argsort(x)
    log_x, y = np.log(np.asarray(x, float)[order]), np.asarray(y, float)[order]
    rise = y[-1] - y[0]
    if not rise > 0:
        return 1.0
    z, one = log_x**exponent, np.ones(len(y))
    above = np.stack([one, z / np.abs(z).max(), -one], axis=1)
    below = above * [-1, -1, 1]
    level = (y - y[0]) / rise
    fitted = linprog(
        [0, 0, 1],
        A_ub=np.vstack([above, below]),
        b_ub=np.hstack([level, -level]),
        bounds=[(None, None), (0, None), (0, None)],
    )
    return float(fitted.fun)


def deviation_error(x: ArrayLike, y: ArrayLike, bounds: ArrayLike, exponent: float = 1.0) -> float:
    """How far off a :func:`deviation` is at most, if y is off by up to some bounds.

    The largest distance from the nearest law moves by no more than y does, ``e = max_i e_i``, and
    the rise R by at most ``s = e_1 + e_k``, so that a deviation d moves by at most
    ``(e + d s)/(R − s)``. A curve that falls for sure is off by 1 for sure; of one that might rise
    or fall nothing is known (inf).

    Args:
        x: > 1, (k,), in any order.
        y: (k,).
        bounds: e ≥ 0, (k,).
        exponent: of log x.
    """
    ends = np.argsort(x)[[0, -1]]
    bounds = np.asarray(bounds, float)
    rise, moved = np.diff(np.asarray(y, float)[ends])[0], bounds[ends].sum()
    if rise + moved <= 0:
        return 0.0
    if rise - moved <= 0:
        return float("inf")
    return float((bounds.max() + deviation(x, y, exponent) * moved) / (rise - moved))
