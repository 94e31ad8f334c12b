"""Intervals and p-values for the mean of iid batch estimates, at a number of batches fixed before.

Batches are means of many replicates, hence nearly normal. What skewness they are left with goes
into t by Hall's transformation; ``tests/judgement/test_audit.py`` measures how well that does.

Source: Hall (1992), J. R. Statist. Soc. B 54, 221–228. No jax.
"""

import numpy as np
from scipy.special import stdtr, stdtrit

Numbers = np.ndarray | float

TURN = 4.5
"""κt from which on Hall's transformation would take ever less off t: it stays at t/4."""
SYMMETRIC = 1e-6
"""Skewness below which the transformation is its limit, the identity, to rounding."""


def fixed_half_width(error: Numbers, freedom: Numbers, alpha: Numbers) -> np.ndarray:
    """Half the width of the two-sided t interval: valid at a number of batches fixed beforehand."""
    return np.asarray(stdtrit(freedom, 1 - alpha / 2) * error)


def fixed_p(distance: Numbers, error: Numbers, freedom: Numbers) -> np.ndarray:
    """Two-sided p-value of the t test that belongs to :func:`fixed_half_width`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(freedom, -distance / error)
    return np.where(distance > 0, np.where(error == 0, 0.0, p), 1.0)


def skewed_half_width(half: Numbers, error: Numbers, skewness: Numbers) -> np.ndarray:
    """Half the width of an interval for a mean, from that for a normal one: Hall's transformation.

    With κ the skewness of the estimate, ``g(t) = t + κt²/3 + κ²t³/27 + κ/6`` is nearer to Student's
    law than t is. It is increasing, so an interval ±q of g has ends of t in closed form. They are
    not symmetric; both sides get the farther one, ``(3/κ)(1 + ∛(κp − 1))`` with ``p = q + κ/6``,
    κ > 0. Where κp > 9/8 that would fall again: there it is 4p, so that more skewness never gives
    a narrower interval.

    Args:
        half: of the normal one, q in units of the error; any shape.
        error: MCSE, ≥ 0.
        skewness: κ, of either sign.
    """
    k = np.abs(skewness)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = half / error + k / 6
        wide = np.where(k * p < TURN / 4, 3 / k * (1 + np.cbrt(k * p - 1)), 4 * p)
    return np.where((error > 0) & (k > SYMMETRIC), wide * error, half)


def skewed_distance(distance: Numbers, error: Numbers, skewness: Numbers) -> np.ndarray:
    """The distance from a null value that would have the same p-value without skewness.

    The inverse of :func:`skewed_half_width`: ``error·(t − κt²/3 + κ²t³/27 − κ/6)``, t the distance
    in units of the error, κ > 0; and ``error·(t/4 − κ/6)`` where κt is above 9/2.
    """
    k = np.abs(skewness)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.minimum(k * distance / error, TURN)
    near = distance * (1 - u / 3 + u**2 / 27) - error * k / 6
    return np.where((error > 0) & (k > SYMMETRIC), near, distance)
