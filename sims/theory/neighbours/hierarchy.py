"""Hierarchical scores, ``S = Σ_l λ_l Z_l M_l Z_lᵀ``: cost, definiteness, truncation, mixtures.

Levels l = 0, …, L − 1 hold 2^{−l} of the tokens. Derived in ``docs/theory/hierarchy.md``.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import beta, betainc, roots_legendre

NODES = 200
"""Of the quadrature behind :func:`psd_probability`."""


def relative_cost(levels: int) -> float:
    """``Σ_{l<L} 4^{−l} = (4/3)(1 − 4^{−L})``: scores of all levels over those of level 0.

    Exact where 2^{L−1} divides the number of tokens, and no mask is made use of.
    """
    return 4 / 3 * (1 - 4.0**-levels)


def relative_cost_rounded(tokens: int, levels: int) -> float:
    """The same for any number of tokens T: ``Σ_l ⌈T/2^l⌉²/T²``."""
    return sum((1 + (tokens - 1) // 2**level) ** 2 for level in range(levels)) / tokens**2


def relative_layer_cost(ratio: float, levels: int) -> float:
    """Cost of a whole layer over that of plain attention, at T = ratio·d.

    ``(T(1 + s) + 4d + 2pd)/(2T + 4d)``, s = Σ_{l<L} 4^{−l}, p = Σ_{1≤l<L} 2^{−l}: projections of
    queries, keys, values and outputs (4Td²), scores (sT²d), averages (T²d) and the projections of
    the coarser queries and keys (2pTd²).
    """
    s, p = relative_cost(levels), 1 - 2.0 ** (1 - levels)
    return (ratio * (1 + s) + 4 + 2 * p) / (2 * ratio + 4)


def psd_probability(width: int, head_width: int, levels: int = 1) -> float:
    """Probability that M^s of independent Gaussian W_Q, W_K (d, d_k) is ⪰ 0 at all levels.

    0 for d_k < d. Else U and N are independent, and ``(UUᵀ + NNᵀ)^{−½}UUᵀ(…)^{−½}`` is a matrix
    Beta(d_k/2, d_k/2), whose eigenvalues all have to be at least ½. Their joint density is
    proportional to ``Π(x_i(1 − x_i))^{(d_k − d − 1)/2} Π|x_i − x_j|``; the integral over the
    ordered region is a Pfaffian (de Bruijn 1955).
    """
    if head_width < width:
        return 0.0
    exponent = (head_width - width + 1) / 2  # of x in the incomplete Beta function
    return float(_ordered(width, exponent, 0.5) / _ordered(width, exponent, 0.0)) ** levels


def _ordered(size: int, exponent: float, low: float) -> float:
    """Integral of ``Π(x(1 − x))^{exponent − 1} Π_{i<j}(x_j − x_i)`` over low ≤ x_1 ≤ … ≤ 1.

    Up to a factor that does not depend on ``low``.
    """
    nodes, weights = roots_legendre(NODES)
    start = np.arcsin(np.sqrt(low))
    angle = start + (np.pi / 2 - start) * (nodes + 1) / 2
    # x = sin² of an angle takes the ends' singularities away.
    x = np.sin(angle) ** 2
    density = 2 * (np.sin(angle) * np.cos(angle)) ** (2 * exponent - 1)
    measure = weights * (np.pi / 2 - start) / 2 * density
    powers = np.arange(size)
    values = x ** powers[:, None]

    def below(at: ArrayLike) -> np.ndarray:
        a = exponent + powers[:, None]
        inside = betainc(a, exponent, at) - betainc(a, exponent, low)
        return np.asarray(inside * beta(a, exponent))

    whole = below(1.0)
    skew = np.einsum("in,jn,n->ij", 2 * below(x) - whole, values, measure)
    skew = 0.5 * (skew - skew.T)
    if size % 2:
        skew = np.block([[skew, whole], [-whole.T, np.zeros((1, 1))]])
    return float(np.sqrt(np.abs(np.linalg.det(skew))))


def pair_count(width: int, levels: int) -> tuple[int, int, int]:
    """dim span{Z_lEZ_lᵀ}, of its symmetric and of its antisymmetric part: generic tokens.

    ``Ld²``, ``Ld(d + 1)/2`` and ``Ld(d − 1)/2``, if the coarsest level has at least d tokens.
    """
    d = width
    return levels * d * d, levels * d * (d + 1) // 2, levels * d * (d - 1) // 2


def tail_weight(weights: ArrayLike, kept: int) -> float:
    """τ_L, what the levels l ≥ L weigh in all."""
    weights = np.asarray(weights, float)
    return float(weights[kept:].sum() / weights.sum())


def token_moments(taps: ArrayLike, tokens: int, levels: int) -> Float[np.ndarray, "levels 2"]:
    """tr K_l and tr K_l² of ``K_l = B_lᵀB_l``, B_l (T, T) the map from tokens X to Z_l.

    Args:
        taps: c, of every down-sampling.
        tokens: T.
        levels: L.
    """
    rows, moments = np.eye(tokens), []
    for level in range(levels):
        whole = rows[np.arange(tokens) // 2**level]
        square = whole.T @ whole
        moments.append((np.trace(square), np.sum(square**2)))
        coarse = np.zeros((-(-len(rows) // 2), tokens))
        for k, tap in enumerate(np.asarray(taps, float)):
            source = 2 * np.arange(len(coarse)) - k
            coarse[source >= 0] += tap * rows[source[source >= 0]]
        rows = coarse
    return np.array(moments)


def rank_error(
    weights: ArrayLike,
    singular_values: Float[np.ndarray, " d"],
    kept: int,
    moments: Float[np.ndarray, "levels 2"],
) -> float:
    """``E‖Σ_l λ_l Z_l(M_l − M_l|_r)Z_lᵀ‖² = Σ_l λ_l² (Σ_{i>r} s_i²)((tr K_l)² + 2 tr K_l²/d)``.

    For independent M_l = U diag(s) Vᵀ with U and V uniform on the rotations, M_l|_r its r leading
    singular values, and tokens with independent N(0, 1) features. Levels add in squares.

    Args:
        weights: λ.
        singular_values: s in falling order, of every level.
        kept: r.
        moments: of :func:`token_moments`.
    """
    trace, square = np.asarray(moments, float).T
    lost = float(np.sum(singular_values[kept:] ** 2))
    size = trace**2 + 2 * square / len(singular_values)
    return float(np.asarray(weights, float) ** 2 @ size) * lost


def score_mixture_bandwidth(weights: ArrayLike, bandwidths: ArrayLike) -> float:
    """``(Σλ_l/h_l²)^{−½}``: of levels mixed in *scores*, with common keys. One estimator."""
    return float(np.sum(np.asarray(weights) / np.asarray(bandwidths) ** 2) ** -0.5)


def noise_correlation(first: ArrayLike, second: ArrayLike, width: int) -> np.ndarray:
    """``(2hh′/(h² + h′²))^{d_k/2}``: of two NW estimators with common keys, to first order."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    return np.asarray((2 * a * b / (a**2 + b**2)) ** (width / 2))


def output_mixture(
    weights: ArrayLike, bandwidths: Sequence[float] | np.ndarray, width: int
) -> tuple[float, float]:
    """Of levels mixed in *outputs*: h̄² = Σλ_lh_l² and the variance functional λᵀCλ.

    To first order, common keys of uniform density: the bias is ½Δm·h̄², the variance σ²/(n·density)
    times λᵀCλ, ``C_lm = (2π(h_l² + h_m²))^{−d_k/2}``.
    """
    share, h = np.asarray(weights, float), np.asarray(bandwidths, float)
    c = (2 * np.pi * np.add.outer(h**2, h**2)) ** (-width / 2)
    return float(share @ h**2), float(share @ c @ share)


def single_variance(squared_bandwidth: float, width: int) -> float:
    """``(4πh²)^{−d_k/2}``: the variance functional of one bandwidth.

    By Jensen's inequality no convex mixture of the same bias is below it.
    """
    return float((4 * np.pi * squared_bandwidth) ** (-width / 2))
