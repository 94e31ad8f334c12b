"""Rates at which tokens become equal: positions, the residual stream.

The relative residual of tokens X = 1mᵀ + R is ``ρ = ‖R‖_F/‖X‖_F``, its log-odds are
``ω = log(1/ρ² − 1)``. A layer of one head is ``X ↦ softmax(X M Xᵀ) X W``.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special


def late_rate(attention: ArrayLike) -> float:
    """``log|λ₂|`` of the attention matrix of equal tokens: the slope of log ρ with positions.

    ``R′ ≈ C A_∞ R W``: with a score bias or a mask that does not depend on tokens collapse is
    geometric. Of a causal mask A_∞ is the Cesàro matrix with eigenvalues 1, ½, ⅓, …
    """
    sizes = np.sort(np.abs(np.linalg.eigvals(np.asarray(attention, float))))
    return float(np.log(sizes[-2]))


def norm_rate(*dimensions: int) -> float:
    """Part of a norm per token in the slope of log ρ: ``½ Σ_k (ψ((k − 1)/2) − ψ(k/2))``.

    A norm takes away the part of R along the mean token. What stays of orthogonal directions is
    the sine of their angle after the layer's maps, whose mean logarithm this is.

    Args:
        dimensions: of the spaces that maps of iid normal entries lead to, one after another; of
            W_V W_O with a LayerNorm they are H d_k and d − 1.
    """
    k = np.array(dimensions)
    return float(np.sum(special.digamma((k - 1) / 2) - special.digamma(k / 2)) / 2)


def growth(dimension: int, variance: float) -> float:
    """``g(d, σ²) = log(2σ²/d) + Σ_j Poisson(j; d/2σ²) ψ(d/2 + j)``, the mean increment of ω.

    Of ``X ↦ X + A X W``, W of iid N(0, σ²/d) entries, new in every layer: under uniform attention R
    stays and the mean becomes ``m(I + W)``, so ``ω = log(n‖m‖²/‖R‖²)`` grows by
    ``log(‖m(I + W)‖²/‖m‖²)``.

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
    total = 0.0
    for low, high in pairwise(cuts):
        total += integrate.quad(integrand, low, high, epsabs=1e-300, epsrel=1e-12, limit=200)[0]
    return float(special.exp1(rate) + total)
