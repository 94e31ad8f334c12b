"""Disjoint blocks: first-order terms of heads that see different coordinates of R^D.

Averaged over Gaussian-process targets and Gaussian queries, as the redundant views are
(:mod:`sims.theory.first_order.views`): products of one-dimensional Gaussian integrals. Relevance is
the same for every coordinate, so heads are exchangeable, and one head and one pair give every
number of heads. Reconstruction; the derivation is in ``docs/theory.md``, "Splitting a budget".
"""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_non_negative, check_positive
from sims.base.errors import InputError
from sims.theory.first_order.views import (
    average,
    check_averages,
    log_means,
    matern_mixture,
    remaining_variances,
)

Real = float | np.ndarray


class BlockTerms(NamedTuple):
    """First-order terms of two heads g, h; unit target and label variance, factor 1/n removed.

    Terms of the pair are NaN if two blocks do not fit into D coordinates.

    Attributes:
        limit_squared: ``E β_h²``, β = m* − m.
        limit_product: ``E β_h β_g``.
        limit_ratio: ``E β_h δ_h`` with the ratio bias ``δ/n``.
        cross_ratio: ``E β_g δ_h``.
        ratio_squared: ``E δ_h²``.
        ratio_product: ``E δ_h δ_g``.
        signal_variance: n times a head's signal variance.
        signal_covariance: n times the signal covariance of two heads.
        noise_variance: ``E r_hh``; for two heads, r_hg = 1.
    """

    limit_squared: np.ndarray
    limit_product: np.ndarray
    limit_ratio: np.ndarray
    cross_ratio: np.ndarray
    ratio_squared: np.ndarray
    ratio_product: np.ndarray
    signal_variance: np.ndarray
    signal_covariance: np.ndarray
    noise_variance: np.ndarray

    def variance(self, n: Real, heads: Real, noise_sd: float) -> np.ndarray:
        """Variance ``v/H + (1 − 1/H) c`` of the average of H heads."""
        signal = average(self.signal_variance / n, self.signal_covariance / n, heads)
        return signal + noise_sd**2 * self.noise(n, heads)

    def noise(self, n: Real, heads: Real) -> np.ndarray:
        """Noise part of the variance, for label noise of variance 1."""
        return average(self.noise_variance / n, np.where(self.fits, 1.0, np.nan) / n, heads)

    @property
    def fits(self) -> np.ndarray:
        """True where two blocks fit."""
        return np.isfinite(self.limit_product)

    def error(self, n: Real, heads: Real, noise_sd: float) -> np.ndarray:
        """Mean squared error of the average of H heads, all arguments broadcast; H real and ≥ 1."""
        single = self.limit_squared + 2 * self.limit_ratio / n + self.ratio_squared / n**2
        cross = self.limit_product + 2 * self.cross_ratio / n + self.ratio_product / n**2
        return average(single, cross, heads) + self.variance(n, heads, noise_sd)


def block_terms(
    width: ArrayLike,
    bandwidth: ArrayLike,
    *,
    dimension: int,
    relevance: float,
    query_scale: float,
    nu: float | None = None,
    kernel: Literal["gaussian", "softmax"] = "gaussian",
) -> BlockTerms:
    """Terms of heads that see disjoint blocks of d_k of the D coordinates of the keys.

    Keys ``N(0, I_D)``, queries ``N(0, κ²I)``. Target of unit variance with
    covariance ``exp(−½ λ ‖x − x'‖²)``, or the mixture of these over ``λ/g, g ~ Gamma(ν, ν)``.

    A tilt by the gaussian kernel makes ``x_j ~ N(a q_j, 1 − a)`` about the query q: by one head ``a
    = 1/(1 + b²)`` on its block, by the same head twice ``a = 2/(2 + b²)``, by two heads as by
    either on its block; 0 elsewhere. Softmax makes it ``N(a q_j, 1)`` with ``a = 1/b²`` and
    ``a = 2/b²`` in their places. As for redundant views, with τ = 0, everything is a product over
    coordinates of three kinds: d_k of this head, d_k of the other, D − 2 d_k of neither.

    Args:
        width: d_k, integers from 1 to D; broadcast against ``bandwidth``.
        bandwidth: b > 0.
        dimension: D ≥ 1.
        relevance: λ ≥ 0, of every coordinate.
        query_scale: κ ≥ 0; below 1/√2 for the gaussian kernel, below b²/2 for softmax.
        nu: ν > 0, or None for the squared-exponential target.
        kernel: ``gaussian`` or ``softmax``.

    Raises:
        InputError: an argument is outside its range.
    """
    width = np.asarray(width)
    b = np.asarray(as_floats("bandwidth", bandwidth))
    check_positive("bandwidth", b)
    check_non_negative("relevance", relevance)
    check_averages(kernel, b, 0.0, query_scale)
    if (np.asarray(width) < 1).any() or (np.asarray(width) > dimension).any():
        raise InputError("width", np.asarray(width).tolist(), f"1 to {dimension}")
    scales, weights = matern_mixture(nu)
    width = width[..., None]
    b = b[..., None]
    lam = relevance * scales.reshape(-1, *[1] * max(width.ndim, b.ndim))
    # Coordinates of head h, of head g, of neither; all of a sort are alike.
    counts = np.concatenate([width, width, dimension - 2 * width], axis=-1)
    unit_h, unit_g, _ = np.eye(3)
    if kernel == "gaussian":
        once = 1 / (1 + b**2)
        same = 2 / (2 + b**2)
        log_c = np.log((1 + b**2) / (b * np.sqrt(2 + b**2)))
        q = same - 2 * once
    else:
        once = 1 / b**2
        same = 2 / b**2
        log_c = np.zeros_like(b)
        q = -2 * once**2
    # How far a tilt moves each sort towards the query.
    place = {
        "query": np.ones(3),
        "h": once * unit_h,
        "g": once * unit_g,
        "pair": once * (unit_h + unit_g),
        "hh": same * unit_h,
        "gg": same * unit_g,
    }
    spread = remaining_variances(kernel, place)

    @cache
    def mean(powers: tuple[int, int], first: str = "", second: str = "") -> np.ndarray:
        """``E r_hh^p r_gg^k E_m[E_first m · E_second m]``; without tilts ``E r_hh^p r_gg^k``."""
        power = np.array([*powers, 0])
        if first > second:
            return mean(powers, second, first)
        parts: tuple[Real, ...] = ()
        if first:
            parts = lam, place[first] - place[second], spread[first] + spread[second]
        logs = log_means(power * log_c, power * q, query_scale, *parts)
        means = np.exp(np.einsum("...j,...j->...", counts, logs))
        return np.tensordot(weights, means, 1) if first else means

    def product(
        powers: tuple[int, int], first_gap: tuple[str, str], second_gap: tuple[str, str]
    ) -> np.ndarray:
        """Expected product of two differences of tilted means."""
        (plus, minus), (gain, loss) = first_gap, second_gap
        return (
            mean(powers, plus, gain)
            - mean(powers, plus, loss)
            - mean(powers, minus, gain)
            + mean(powers, minus, loss)
        )

    bias = ("h", "query")
    second_bias = ("g", "query")
    ratio = ("h", "hh")
    second_ratio = ("g", "gg")
    fits = 2 * width[..., 0] <= dimension
    return BlockTerms(
        product((0, 0), bias, bias),
        np.where(fits, product((0, 0), bias, second_bias), np.nan),
        product((1, 0), bias, ratio),
        np.where(fits, product((1, 0), second_bias, ratio), np.nan),
        product((2, 0), ratio, ratio),
        np.where(fits, product((1, 1), ratio, second_ratio), np.nan),
        mean((1, 0)) - 2 * mean((1, 0), "hh", "h") + mean((1, 0), "h", "h"),
        np.where(fits, 1 - 2 * mean((0, 0), "pair", "h") + mean((0, 0), "h", "g"), np.nan),
        mean((1, 0)),
    )
