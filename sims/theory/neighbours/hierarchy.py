"""Hierarchical scores, ``S = Σ_l λ_l Z_l M_l Z_lᵀ``: definiteness, errors of levels and ranks.

Levels l = 0, …, L − 1 hold 2^{−l} of the tokens. Derived in ``docs/theory/hierarchy.md``.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import beta, betainc, roots_legendre

NODES = 200
"""Nodes of the quadrature behind :func:`psd_probability`."""


def psd_probability(width: int, head_width: int) -> float:
    """Probability that M^s of independent Gaussian W_Q, W_K (d, d_k) is ⪰ 0, at one level.

    0 for d_k < d. Else U and N are independent, and ``(UUᵀ + NNᵀ)^{−½}UUᵀ(…)^{−½}`` is a matrix
    Beta(d_k/2, d_k/2), whose eigenvalues all have to be at least ½. Their joint density is
    proportional to ``Π(x_i(1 − x_i))^{(d_k − d − 1)/2} Π|x_i − x_j|``; the integral over the
    ordered region is a Pfaffian (de Bruijn 1955).
    """
    if head_width < width:
        return 0.0
    exponent = (head_width - width + 1) / 2  # of x in the incomplete Beta function
    return float(_ordered(width, exponent, 0.5) / _ordered(width, exponent, 0.0))


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

    def below(x: ArrayLike) -> np.ndarray:
        a = exponent + powers[:, None]
        inside = betainc(a, exponent, x) - betainc(a, exponent, low)
        return np.asarray(inside * beta(a, exponent))

    total = below(1.0)
    skew = np.einsum("in,jn,n->ij", 2 * below(x) - total, values, measure)
    skew = 0.5 * (skew - skew.T)
    if size % 2:
        skew = np.block([[skew, total], [-total.T, np.zeros((1, 1))]])
    return float(np.sqrt(np.abs(np.linalg.det(skew))))


def token_moments(
    taps: Sequence[float] | np.ndarray, tokens: int, levels: int
) -> Float[np.ndarray, "levels 2"]:
    """tr K_l and tr K_l² of ``K_l = B_lᵀB_l``, B_l (T, T) the map from tokens X to Z_l.

    Args:
        taps: c, of every down-sampling.
        tokens: T.
        levels: L.
    """
    rows = sparse.eye_array(tokens, format="csr")
    moments = []
    for level in range(levels):
        times = np.bincount(np.arange(tokens) // 2**level)  # rows of Z_l that are one token's
        overlap = (rows @ rows.T).tocoo()
        square = times[overlap.row] * times[overlap.col] * overlap.data**2
        moments.append((times @ overlap.diagonal(), square.sum()))
        count = len(times)
        bands = np.outer(taps, np.ones(count)), -np.arange(len(taps))
        half = sparse.dia_array(bands, shape=(count, count)).tocsr()[::2]
        rows = half @ rows
    return np.array(moments)


def level_errors(
    weights: ArrayLike,
    model: ArrayLike,
    singular_values: Float[np.ndarray, " d"],
    truncation: int,
    moments: Float[np.ndarray, "levels 2"],
) -> tuple[float, float, float]:
    """Mean squared errors of scores ``Σ_l λ̂_l Z_l M_l|_r Z_lᵀ`` about ``Σ_l λ_l Z_l M_l Z_lᵀ``.

    Of the truncation of levels ``Σ(λ_l − λ̂_l)²‖s‖²κ_l``, of the rank ``Σλ̂_l²Σ_{i>r}s_i²κ_l``, and
    of both ``Σ((λ_l − λ̂_l)²Σ_{i≤r}s_i² + λ_l²Σ_{i>r}s_i²)κ_l``, where
    ``κ_l = (tr K_l)² + 2 tr K_l²/d``: for independent M_l = U diag(s) Vᵀ with U, V uniform on the
    rotations, M_l|_r its r leading singular values, and tokens with independent N(0, 1) features.
    Levels add in squares.

    Args:
        weights: λ, of the target.
        model: λ̂, of the levels that are kept.
        singular_values: s in falling order, of every level.
        truncation: r.
        moments: moments of :func:`token_moments`.
    """
    target = np.asarray(weights, float)
    fitted = np.asarray(model, float)
    trace, square = np.asarray(moments, float).T
    size = trace**2 + 2 * square / len(singular_values)
    lead = float(np.sum(singular_values[:truncation] ** 2))
    lost = float(np.sum(singular_values[truncation:] ** 2))
    gap = float((target - fitted) ** 2 @ size)
    rank = float(fitted**2 @ size)
    rest = float(target**2 @ size)
    return gap * (lead + lost), rank * lost, gap * lead + rest * lost
