"""How fast the residual stream makes tokens alike: the growth of log-odds a layer.

``X ↦ X + A X W``, W of iid N(0, σ²/d) entries, new in every layer: under uniform attention R stays
and the mean becomes ``m(I + W)``, so ``ω = log(n‖m‖²/‖R‖²)`` grows by ``log(‖m(I + W)‖²/‖m‖²)``.
"""

import numpy as np
from scipy import special, stats

REACH = 12.0
"""Standard deviations of the Poisson variable that the sum goes to: what is left out is below
1e-30."""


def growth(dimension: int, variance: float) -> float:
    """``g(d, σ²) = log(2σ²/d) + Σ_j Poisson(j; d/2σ²) ψ(d/2 + j)``, the mean increment of ω.

    ``‖m(I + W)‖²/‖m‖²`` is σ²/d times a noncentral χ² of d degrees of freedom and noncentrality
    d/σ², a mixture of central ones. ``→ log(1 + σ²)`` as d → ∞, ``≈ σ²(1 − 2/d)`` for small σ;
    at d = 2 it is E₁(1/σ²), and at d = 1 negative for moderate σ.

    Args:
        dimension: d.
        variance: σ² > 0.
    """
    rate = dimension / (2 * variance)
    spread = REACH * (np.sqrt(rate) + REACH)
    j = np.arange(max(0, int(rate - spread)), int(rate + spread) + 1)
    mixed = stats.poisson.pmf(j, rate) @ special.digamma(dimension / 2 + j)
    return float(np.log(2 * variance / dimension) + mixed)


def normed_growth(dimension: int, variance: float) -> float:
    """``g + σ²/((1 + σ²)d)``, about: with a norm of every token after each layer.

    The norm takes the part of R along the new mean away, whose mean share of R's energy that is.
    """
    return growth(dimension, variance) + variance / ((1 + variance) * dimension)


def scaled_variance(variance: float, branch: float = 1.0, skip: float = 1.0) -> float:
    """σ² of ``skip·X + branch·AXW``: ``(branch/skip)²σ²``. With branch = 1/√L ω stays bounded."""
    return (branch / skip) ** 2 * variance


def initial_variance(dimension: int, sd: float) -> float:
    """σ² of W = W_V W_O summed over heads of total width d, entries of that sd: ``d² sd⁴``.

    At d = 768 and sd = 0.02, as in BERT, 0.0944, where g is 0.0900 a layer.
    """
    return dimension**2 * sd**4
