"""How fast the residual stream makes tokens alike: the growth of log-odds a layer.

``X ↦ X + A X W``, W of iid N(0, σ²/d) entries, new in every layer: under uniform attention R stays
and the mean becomes ``m(I + W)``, so ``ω = log(n‖m‖²/‖R‖²)`` grows by ``log(‖m(I + W)‖²/‖m‖²)``.
"""

from itertools import pairwise

import numpy as np
from scipy import integrate, special


def growth(dimension: int, variance: float) -> float:
    """``g(d, σ²) = log(2σ²/d) + Σ_j Poisson(j; d/2σ²) ψ(d/2 + j)``, the mean increment of ω.

    ``‖m(I + W)‖²/‖m‖²`` is σ²/d times a noncentral χ² of d degrees of freedom and noncentrality
    d/σ², a mixture of central ones. ``→ log(1 + σ²)`` as d → ∞, ``≈ σ²(1 − 2/d)`` for small σ;
    at d = 2 it is E₁(1/σ²), and at d = 1 negative for moderate σ. Computed, with r = d/2σ², as
    ``E₁(r) + ∫₀¹ e^{−rx} (1 − (1 − x)^{d/2 − 1})/x dx``, x = 1 − (1 − u)²: for small σ the sum is
    a difference of numbers that are nearly equal.

    Args:
        dimension: d.
        variance: σ² > 0.
    """
    rate = dimension / (2 * variance)

    def integrand(u: float) -> float:
        lost = -np.expm1((dimension - 2) * np.log1p(-u))
        return float(2 * np.exp(-rate * u * (2 - u)) * (1 - u) * lost / (u * (2 - u)))

    # It decays within 1/r.
    cuts = np.unique([0.0, *np.minimum(np.array([0.5, 4.0, 32.0, 400.0]) / rate, 0.5), 1.0])
    parts = [
        integrate.quad(integrand, low, high, epsabs=1e-300, epsrel=1e-12, limit=200)[0]
        for low, high in pairwise(cuts)
    ]
    return float(special.exp1(rate) + sum(parts))


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
