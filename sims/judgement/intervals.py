"""Intervals for the mean of iid batch estimates that hold at every number of batches at once.

Sampling stops when a verdict is reached, so an interval must cover at *any* stopping time: it has
to be a confidence sequence. For iid normal batches with unknown variance the Bayes factor of the
standardised effect μ/s ~ N(0, 1) against μ = 0, with the right-Haar prior on s,

::

    E_B(t) = (1 + B)^{−1/2} · [(1 + t²/ν) / (1 + t²/(ν(1 + B)))]^{B/2}

with ν = B − 1 and t = mean/MCSE is a nonnegative martingale in B under μ = 0 with mean 1, so that
P(E_B ≥ 1/α at any B) ≤ α (Ville). The values of μ that it does not reject are an interval in closed
form. Widths at 32 to 1000 batches hardly depend on the prior's variance: within 7 % from ¼ to 4,
at α from 5 % to 0.05 %. Batches are means of many replicates, hence nearly normal. What skewness
they are left with goes into t by Hall's transformation; ``tests/judgement/test_audit.py`` measures
how well that does.

Source: Lai (1976), doi:10.1214/aos/1176343406; Gönen et al. (2005), doi:10.1198/000313005X55233;
Wang & Ramdas (2024), arXiv 2310.03722; Hall (1992), J. R. Statist. Soc. B 54, 221–228. No jax.
"""

import numpy as np
from scipy.special import stdtr, stdtrit

Numbers = np.ndarray | float

TURN = 4.5
"""κt from which on Hall's transformation would take ever less off t: it stays at t/4."""
SYMMETRIC = 1e-6
"""Skewness below which the transformation is its limit, the identity, to rounding."""


def sequence_half_width(error: Numbers, batches: Numbers, alpha: Numbers) -> np.ndarray:
    """Half the width of the confidence sequence at B batches.

    ``error · √(ν (A − 1) / (1 − A/(1 + B)))`` with ``A = (√(1 + B)/α)^{2/B}``; infinite where
    A ≥ 1 + B, which is to say that so few batches can exclude nothing at that α.

    Args:
        error: MCSE of the mean, ≥ 0; any shape.
        batches: B ≥ 2; broadcasts.
        alpha: the mean is ever outside with at most this probability, in (0, 1).
    """
    spread = 1 + batches
    factor = np.exp(2 / batches * (0.5 * np.log(spread) - np.log(alpha)))
    left = 1 - factor / spread
    with np.errstate(divide="ignore", invalid="ignore"):
        half = error * np.sqrt((batches - 1) * (factor - 1) / left)
    return np.where(error == 0, 0.0, np.where(left > 0, half, np.inf))


def sequence_p(distance: Numbers, error: Numbers, batches: Numbers) -> np.ndarray:
    """Anytime-valid p-value ``min(1, 1/E_B)`` of a mean that far from its null value.

    Args:
        distance: of the estimate from the null value; negative or 0 gives 1 (one-sided; the
            two-sided martingale is used, which is conservative).
        error: MCSE, ≥ 0; with 0 any positive distance gives 0.
        batches: B ≥ 2.
    """
    spread, freedom = 1 + batches, batches - 1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = (distance / error) ** 2 / freedom
        # At an infinite t the ratio tends to 1 + B.
        ratio = np.where(np.isfinite(square), (1 + square) / (1 + square / spread), spread)
        p = np.exp(0.5 * np.log(spread) - 0.5 * batches * np.log(ratio))
    p = np.where(error == 0, 0.0, np.minimum(p, 1.0))
    return np.where(distance > 0, p, 1.0)


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
