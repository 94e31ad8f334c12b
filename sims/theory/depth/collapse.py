"""How fast tokens become equal: the map near collapse, simplex tokens, positions.

The relative residual of tokens X = 1mᵀ + R is ``ρ = ‖R‖_F/‖X‖_F``, its log-odds are
``ω = log(1/ρ² − 1)``. A layer of one head is ``X ↦ softmax(X M Xᵀ) X W``.
"""

import numpy as np
from numpy.typing import ArrayLike


def near_collapse(
    mean: ArrayLike, centred: ArrayLike, score: ArrayLike, value: ArrayLike, plain: bool = False
) -> np.ndarray:
    """``R′ = C R M Cov_p(R) W``, to a relative error of order ρ².

    ``Cov_p(R) = Σ_j p_j r_j (r_j − r̄_p)ᵀ`` with p = softmax(m M Rᵀ).

    Args:
        mean: m, (d,).
        centred: R, (n, d).
        score: M, (d, d).
        value: W, (d, d).
        plain: whether p = 1/n is taken instead; the relative error is then of order ρ.
    """
    m, r = np.asarray(mean, float), np.asarray(centred, float)
    seen = np.zeros(len(r)) if plain else r @ (m @ np.asarray(score))
    p = np.exp(seen - seen.max())
    p = p / p.sum()
    covariance = (r * p[:, None]).T @ (r - p @ r)
    out = r @ np.asarray(score) @ covariance @ np.asarray(value)
    return np.asarray(out - out.mean(0))


ORDER = 3
"""``‖R′‖ ~ ‖R‖³``: steps of log ρ grow by this factor without positions, mask or residual."""


def log_pull(log_score: ArrayLike, n: int) -> np.ndarray:
    """log f of ``f(b) = (e^b − 1)/(e^b − 1 + n)``, b = e^{log_score} > 0, however large or small.

    It is log b − log n for small b, and −n e^{−b} for large.
    """
    log_b = np.asarray(log_score, float)
    b = np.exp(np.minimum(log_b, 7.0))  # beyond, e^{−b} is below any number
    # log(e^b − 1) = b + log b + log((1 − e^{−b})/b).
    small = b < 1e-300
    ratio = np.where(small, 1.0, -np.expm1(-b) / np.where(small, 1.0, b))
    raised = np.where(log_b > 7.0, np.exp(np.minimum(log_b, 700.0)), b + log_b + np.log(ratio))
    return np.asarray(-np.logaddexp(0.0, np.log(n) - raised))


def simplex_factor(size: ArrayLike, scale: float, n: int) -> np.ndarray:
    """``f = (e^{βa²} − 1)/(e^{βa²} − 1 + n)``, by which attention shrinks simplex tokens.

    Tokens ``x_i = m + a(e_i − 1/n)``, m orthogonal to all ``e_i − 1/n``, under M = βI, W = wI
    become tokens of the same kind with ``a′ = w f a``, at every n and β.

    Args:
        size: a.
        scale: β.
        n: tokens.
    """
    with np.errstate(divide="ignore"):
        log_score = np.log(scale) + 2 * np.log(np.abs(np.asarray(size, float)))
    return np.asarray(np.exp(log_pull(log_score, n)))


def simplex_log_sizes(size: float, scale: float, n: int, layers: int) -> np.ndarray:
    """log a after every layer of pure attention with w = 1, the first included, (layers + 1,).

    In logarithms, since a falls below any number within ten layers.
    """
    out = [np.log(size)]
    with np.errstate(over="ignore"):
        for _ in range(layers):
            out.append(out[-1] + float(log_pull(np.log(scale) + 2 * out[-1], n)))
    return np.array(out)


def simplex_sizes(size: float, scale: float, n: int, layers: int) -> np.ndarray:
    """a of :func:`simplex_log_sizes`; 0 where it is below any number."""
    return np.exp(simplex_log_sizes(size, scale, n, layers))


def simplex_lifetime(size: float, scale: float, n: int) -> float:
    """About ``e^{βa²}/(2nβa²)`` layers until simplex tokens of large βa² collapse, w = 1."""
    exponent = scale * size**2
    return float(np.exp(exponent) / (2 * n * exponent))


def simplex_ratios(
    ratio: float, scale: float, n: int, layers: int, value: float, size: float = 1.0
) -> np.ndarray:
    """a/m after every layer ``X ↦ norm(X + AX·w)``, (layers + 1,): ``(a/m)(1 + wf)/(1 + w)``.

    The norm is one of every token over its root mean square, times ``size``: after it
    ``‖x_i‖² = m² + a²(1 − 1/n) = size²``, which gives the a of the next f.

    Args:
        ratio: a/‖m‖ at the start.
        scale: β.
        n: tokens.
        layers: how many.
        value: w ≠ −1.
        size: norm of every token, as it enters each layer.
    """
    out = [ratio]
    for _ in range(layers):
        a = size * out[-1] / np.sqrt(1 + out[-1] ** 2 * (1 - 1 / n))
        factor = float(simplex_factor(a, scale, n))
        out.append(out[-1] * (1 + value * factor) / (1 + value))
    return np.array(out)


def late_rate(attention: ArrayLike) -> float:
    """``log|λ₂|`` of the attention matrix of equal tokens: the slope of log ρ with positions.

    ``R′ ≈ C A_∞ R W``: with a score bias or a mask that does not depend on tokens collapse is
    geometric. Of a causal mask A_∞ is the Cesàro matrix with eigenvalues 1, ½, ⅓, …
    """
    sizes = np.sort(np.abs(np.linalg.eigvals(np.asarray(attention, float))))
    return float(np.log(sizes[-2]))
