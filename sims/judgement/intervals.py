"""p-values for the mean of iid batch estimates, at a number of batches fixed in advance.

Batches are means of many replicates, hence nearly normal. Hall's transformation of t corrects for
their remaining skewness.

Source: Hall (1992), J. R. Statist. Soc. B 54, 221–228. No jax.
"""

import numpy as np
from scipy.special import stdtr, stdtrit

Numbers = np.ndarray | float

TURN = 4.5
"""κt above which Hall's correction of t would decrease; it is held constant there, at t/4."""
SYMMETRIC = 1e-6
"""Skewness below which the transformation is its limit, the identity, to rounding."""


def fixed_p(distance: Numbers, error: Numbers, freedom: Numbers) -> np.ndarray:
    """Two-sided p-value of the t test: valid at a number of batches fixed beforehand."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(freedom, -distance / error)
    return np.where(distance > 0, np.where(error == 0, 0.0, p), 1.0)


def skewed_distance(distance: Numbers, error: Numbers, skewness: Numbers) -> np.ndarray:
    """Distance from a null value that would have the same p-value without skewness.

    With κ the skewness of the estimate, ``g(t) = t + κt²/3 + κ²t³/27 + κ/6`` is nearer to Student's
    law than t is, t the distance in units of the error. Its sign is not known, so the farther side
    counts: ``error·(t − κt²/3 + κ²t³/27 − κ/6)``, κ > 0; and ``error·(t/4 − κ/6)`` where κt is
    above 9/2.

    Args:
        distance: distance of the estimate from the null value.
        error: MCSE, ≥ 0.
        skewness: κ, of either sign.
    """
    k = np.abs(skewness)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.minimum(k * distance / error, TURN)
    near = distance * (1 - u / 3 + u**2 / 27) - error * k / 6
    return np.where((error > 0) & (k > SYMMETRIC), near, distance)


def significant_distance(
    p: float, error: Numbers, skewness: Numbers, freedom: Numbers
) -> np.ndarray:
    """Smallest distance from a null value at which the p-value of :func:`skewed_distance` is p.

    With x = κt/3 the distance there is ``(1 − (1 − x)³)/κ − κ/6``, so ``x = 1 − ∛(1 − c)`` with
    ``c = κ(t_p + κ/6)``, t_p Student's quantile.

    Args:
        p: two-sided p-value.
        error: MCSE, ≥ 0.
        skewness: κ, of either sign.
        freedom: degrees of freedom.
    """
    k = np.abs(skewness)
    quantile = -stdtrit(freedom, p / 2)
    c = k * (quantile + k / 6)
    turned = np.where(c < TURN / 4, 3 * (1 - np.cbrt(1 - c)), 4 * c)
    curved = k > SYMMETRIC
    return np.asarray(error * np.where(curved, turned / np.where(curved, k, 1.0), quantile))
