"""Redundant views: first-order terms averaged over Gaussian-process targets and Gaussian queries.

Everything factorises over the latent coordinates, so the averages are products of one-dimensional
Gaussian integrals: no target or query is drawn, and every term is smooth in all its arguments.
Reconstruction; the derivation is in ``docs/theory/budget.md``.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import lgamma
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_non_negative, check_positive, check_within
from sims.base.errors import InputError
from sims.theory.arrays import Number

KERNELS_OF_VIEWS = ("gaussian", "softmax")
STEP, TAIL, TOP = 0.5, 1e-9, 6.0
"""Trapezoid rule in log g for the Gamma variable g of a Matérn spectrum: step, mass omitted below,
and upper end."""


class SplitTerms(NamedTuple):
    """First-order terms of two heads g, h of many; unit target and label variance, 1/n taken out.

    Terms of the pair are NaN if two heads do not fit into the coordinates.

    Attributes:
        limit_squared: ``E β_h²``, β = m* − m.
        limit_product: ``E β_h β_g``.
        limit_ratio: ``E β_h δ_h`` with the ratio bias ``δ/n``.
        cross_ratio: ``E β_g δ_h``.
        ratio_squared: ``E δ_h²``.
        ratio_product: ``E δ_h δ_g``.
        signal_variance: n times a head's signal variance.
        signal_covariance: n times the signal covariance of two heads.
        noise_variance: ``E r_hh``, so that n over it is n_eff (harmonic mean over queries).
        noise_covariance: ``E r_hg``.
    """

    limit_squared: Float[np.ndarray, "*shape"]
    limit_product: Float[np.ndarray, "*shape"]
    limit_ratio: Float[np.ndarray, "*shape"]
    cross_ratio: Float[np.ndarray, "*shape"]
    ratio_squared: Float[np.ndarray, "*shape"]
    ratio_product: Float[np.ndarray, "*shape"]
    signal_variance: Float[np.ndarray, "*shape"]
    signal_covariance: Float[np.ndarray, "*shape"]
    noise_variance: Float[np.ndarray, "*shape"]
    noise_covariance: Float[np.ndarray, "*shape"]

    def error(self, n: Number, heads: Number, noise_sd: Number) -> Float[np.ndarray, "*shape"]:
        """Mean squared error of the average of H heads, all arguments broadcast; H real and ≥ 1.

        As in the rest of the first-order theory, the square of the bias keeps its δ²/n².
        """
        single = self.limit_squared + 2 * self.limit_ratio / n + self.ratio_squared / n**2
        cross = self.limit_product + 2 * self.cross_ratio / n + self.ratio_product / n**2
        return average(single, cross, heads) + self.variance(n, heads, noise_sd)

    def variance(self, n: Number, heads: Number, noise_sd: Number) -> Float[np.ndarray, "*shape"]:
        """Variance ``v/H + (1 − 1/H) c`` of the average of H heads."""
        signal = average(self.signal_variance, self.signal_covariance, heads)
        return signal / n + noise_sd**2 * self.noise(n, heads)

    def noise(self, n: Number, heads: Number) -> Float[np.ndarray, "*shape"]:
        """Noise part of the variance, for label noise of variance 1."""
        return average(self.noise_variance, self.noise_covariance, heads) / n


def average(single: np.ndarray, cross: np.ndarray, heads: Number) -> np.ndarray:
    """Average ``own/H + (1 − 1/H) cross``; one head needs no pair."""
    return np.where(np.asarray(heads) == 1, single, single / heads + (1 - 1 / heads) * cross)


@np.errstate(over="ignore", invalid="ignore")  # beyond float64 is inf or NaN
def view_terms(
    width: ArrayLike,
    bandwidth: ArrayLike,
    *,
    noise: float,
    relevance: ArrayLike,
    query_scale: float,
    nu: float | None = None,
    kernel: Literal["gaussian", "softmax"] = "gaussian",
) -> SplitTerms:
    """Terms of heads that see ``z_1…z_{d_k}`` through independent noise τ.

    Latent z ~ N(0, I_r); target of unit variance with covariance ``exp(−½ Σ_j λ_j (z_j − z'_j)²)``,
    or the Matérn-ν mixture of these over ``λ/g, g ~ Gamma(ν, ν)``. Queries ``N(0, κ²I)``, ξ = 0.

    A tilt makes z_j ~ N(a x_j, w). Gaussian kernel, with ``v = τ² + b²``: by one head ``a =
    1/(1+v)``, by the same head twice the same with b²/2 for b², by two heads ``a = 2/(2+v)``;
    always ``w = 1 − a``. Softmax, ``s = b²``: by one head ``a = 1/s``, by the same head twice or by
    two ``a = 2/s``; always ``w = 1``. Unseen coordinates have a = 0 and w = 1, the query itself
    a = 1 and w = 0. Then for two tilts s, t

        E_m[E_s m · E_t m] = Π_j T_j^{−1/2} exp(−λ_j (a_s − a_t)² x_j²/2T_j)
        T_j = 1 + λ_j (w_s + w_t)
        r = Π_{j ≤ d_k} C exp(−½ q x_j²)
        r_hh: C = (1+v)/(b √(2+2τ²+b²)),  q = 2/(2+2τ²+b²) − 2/(1+v)
        r_hg: C = (1+v)/√(v(2+v)),        q = 2/(2+v) − 2/(1+v)
        softmax: C = 1,  q_hh = −2(1+τ²)/s²,  q_hg = −2/s²

    and queries integrate out by ``E e^{−½qx²} = (1 + κ²q)^{−1/2}``.

    Args:
        width: d_k, integers from 0 to r; broadcast against ``bandwidth``.
        bandwidth: b > 0.
        noise: τ ≥ 0.
        relevance: λ ≥ 0, (r,).
        query_scale: κ ≥ 0, so small that all averages are finite (δ² has 2q_hh): κ < 1/√2 for the
            gaussian kernel (q_hh ≥ −1), ``2κ√(1+τ²) < b²`` for softmax.
        nu: ν > 0, or None for the squared-exponential target.
        kernel: ``gaussian`` or ``softmax``.

    Raises:
        InputError: an argument is outside its range.
    """
    relevance = np.asarray(as_floats("relevance", relevance))
    b = np.asarray(as_floats("bandwidth", bandwidth))
    check_positive("bandwidth", b)
    check_non_negative("noise", noise)
    check_non_negative("relevance", relevance)
    check_averages(kernel, b, noise, query_scale)
    width = np.asarray(width)
    count = len(relevance)
    check_within("width", width, 0, count)
    scales, weights = matern_mixture(nu)
    # A tilt puts z_j at a_j x_j and leaves it a variance; an overlap is log C_j and q_j. They
    # belong to a seen coordinate; an unseen one has zeros (docs/theory/budget.md).
    rank = max(width.ndim, b.ndim)
    reshaped = b.reshape(*[1] * (rank - b.ndim), *b.shape, 1)
    once, same, pair, overlap, pair_overlap = tilts_of(kernel, reshaped, noise)
    none = np.zeros(1)
    place = {"h": once, "hh": same, "hg": pair}
    query = {"query": np.ones(1)}
    unseen = Tilts(dict.fromkeys(place, none) | query, [np.zeros((2, 1))] * 3)
    seen = Tilts(place | query, [overlap, overlap, pair_overlap])
    scaled = relevance * scales.reshape(-1, *[1] * (rank + 1))

    def product(unseen: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Product over coordinates, the first d_k of them seen, from logarithms (…, *b, r)."""
        steps = np.broadcast_to(seen - unseen, (*seen.shape[:-1], count))
        logs = np.zeros((*steps.shape[:-1], count + 1))
        steps.cumsum(-1, out=logs[..., 1:])
        last = width.reshape(*[1] * (logs.ndim - 1 - width.ndim), *width.shape, 1)
        unseen = np.broadcast_to(unseen, (*unseen.shape[:-1], count)).sum(-1)
        return np.exp(unseen + np.take_along_axis(logs, last, -1)[..., 0])

    law = TargetLaw(kernel, query_scale, scaled, weights)
    return split_terms(law, [unseen, seen], product, apart=False)


class TargetLaw(NamedTuple):
    """What terms are averaged over, and the heads' kernel.

    Attributes:
        kernel: of the heads.
        query_scale: κ.
        relevance: λ of K squared-exponential targets, the first axis.
        weights: of these targets, (K,).
    """

    kernel: str
    query_scale: float
    relevance: np.ndarray
    weights: Float[np.ndarray, " K"]


class Tilts(NamedTuple):
    """Laws of coordinates of a sort under products of the kernels of two heads g, h.

    Attributes:
        place: how far a tilt moves a coordinate towards the query, by its name: ``h``, ``hh``
            (twice by h), ``hg`` and so on; ``query`` is the query itself.
        overlaps: log C and q of r_hh, r_gg and r_hg.
    """

    place: dict[str, np.ndarray]
    overlaps: Sequence[Number]


def tilts_of(kernel: str, b: np.ndarray, noise: float) -> tuple[np.ndarray, ...]:
    """Shares a of tilts by one head, by it twice, by two heads; (log C, q) of r_hh and r_hg.

    See :func:`view_terms`.
    """
    if kernel == "gaussian":
        v = noise**2 + b**2
        twice = 2 + 2 * noise**2 + b**2
        once = 1 / (1 + v)
        same = 2 / twice
        pair = 2 / (2 + v)
        overlap = np.stack([np.log((1 + v) / (b * np.sqrt(twice))), same - 2 * once])
        shared = np.stack([np.log((1 + v) / np.sqrt(v * (2 + v))), pair - 2 * once])
        return once, same, pair, overlap, shared
    # A dot product moves the keys and does not narrow them: the law keeps its variance.
    once = 1 / b**2
    q = -2 * once**2
    shared = np.stack([0 * q, q])
    return once, 2 * once, 2 * once, (1 + noise**2) * shared, shared


def split_terms(
    law: TargetLaw, sorts: Sequence[Tilts], product: Callable[..., np.ndarray], apart: bool
) -> SplitTerms:
    """Terms of heads from the laws of single coordinates.

    Args:
        law: of targets and queries.
        sorts: laws of the coordinates of every sort.
        product: product over coordinates, from logarithms of every sort.
        apart: False if g and h see the same coordinates, so that their limits are equal.
    """

    @cache
    def mean(powers: tuple[int, int, int], first: str = "", second: str = "") -> np.ndarray:
        """``E r_hh^p r_gg^k r_hg^l E_m[E_first m · E_second m]``; without tilts, of r alone."""
        if first > second:
            return mean(powers, second, first)
        logs = []
        for place, overlaps in sorts:
            log_c, q = sum(map(operator.mul, powers, overlaps))
            parts: tuple[Number, ...] = ()
            if first:
                spread = remaining_variances(law.kernel, place)
                gap = place[first] - place[second]
                parts = law.relevance, gap, spread[first] + spread[second]
            logs.append(log_means(log_c, q, law.query_scale, *parts))
        means = product(*logs)
        return np.tensordot(law.weights, means, 1) if first else means

    def of_gaps(
        powers: tuple[int, int, int], first_gap: tuple[str, str], second_gap: tuple[str, str]
    ) -> np.ndarray:
        """Expected product of two differences of tilted means."""
        (plus, minus), (gain, loss) = first_gap, second_gap
        return (
            mean(powers, plus, gain)
            - mean(powers, plus, loss)
            - mean(powers, minus, gain)
            + mean(powers, minus, loss)
        )

    none = (0, 0, 0)
    once = (1, 0, 0)
    twice = (2, 0, 0)
    pair = (0, 0, 1)
    g, gg, both = ("g", "gg", (1, 1, 0)) if apart else ("h", "hh", twice)
    # The squares and products of m* − m and of δ = −r_hh (E_hh m − m*); then the signal's
    # E r (m − m*_h)(m − m*_g) and the noise's E r.
    bias = ("h", "query")
    ratio = ("h", "hh")
    signal = mean(pair) - mean(pair, "hg", "h") - mean(pair, "hg", g) + mean(pair, "h", g)
    return SplitTerms(
        limit_squared=of_gaps(none, bias, bias),
        limit_product=of_gaps(none, bias, (g, "query")),
        limit_ratio=of_gaps(once, bias, ratio),
        cross_ratio=of_gaps(once, (g, "query"), ratio),
        ratio_squared=of_gaps(twice, ratio, ratio),
        ratio_product=of_gaps(both, ratio, (g, gg)),
        signal_variance=mean(once) - 2 * mean(once, "hh", "h") + mean(once, "h", "h"),
        signal_covariance=signal,
        noise_variance=mean(once),
        noise_covariance=mean(pair),
    )


def log_means(
    log_c: Number,
    q: Number,
    query_scale: float,
    relevance: Number = 0.0,
    gap: Number = 0.0,
    spread: Number = 0.0,
) -> np.ndarray:
    """``log E C e^{−½ q x²} E_m[E_s m · E_t m]`` of one coordinate, x ~ N(0, κ²).

    Args:
        log_c: log C of an overlap r.
        q: its q.
        query_scale: κ.
        relevance: λ of the target's covariance.
        gap: ``a_s − a_t``, difference of the tilts' shifts of the coordinate towards x.
        spread: ``w_s + w_t``, sum of the variances after the tilts.
    """
    # The determinant of the integral over x and m, (1 + λw)(1 + κ²q) + κ²λa², as a line in λ.
    tilted = 1 + query_scale**2 * q
    slope = spread * tilted + (query_scale * gap) ** 2
    return np.asarray(log_c - 0.5 * np.log(tilted + relevance * slope))


def remaining_variances(kernel: str, place: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Variances after tilts that move a coordinate towards the query by the given shares."""
    if kernel == "gaussian":
        return {name: 1 - moved for name, moved in place.items()}
    return {name: np.full_like(moved, name != "query", float) for name, moved in place.items()}


def check_averages(kernel: str, bandwidth: ArrayLike, noise: float, query_scale: float) -> None:
    """Raise InputError unless all averages over queries N(0, κ²I) are finite."""
    if kernel not in KERNELS_OF_VIEWS:
        raise InputError("kernel", kernel, ", ".join(KERNELS_OF_VIEWS))
    if kernel == "gaussian":
        limit = 0.5**0.5
        bound = "0.707"
    else:
        narrowest = float(np.min(bandwidth))
        limit = narrowest**2 / (2 * np.sqrt(1 + noise**2))
        bound = "b²/2√(1 + τ²), b the least one"
    if not 0 <= query_scale < limit:
        raise InputError("query_scale", query_scale, f"0 to below {bound}")


def matern_mixture(nu: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Factors 1/g of λ and their weights, g ~ Gamma(ν, rate ν): a Matérn-ν spectrum.

    None is the squared exponential: one factor, 1.
    """
    if nu is None:
        return np.ones(1), np.ones(1)
    check_positive("nu", nu)
    # The mass below g is about (νg)^ν / Γ(ν + 1); above, e^{−νg} ends it.
    low = (np.log(TAIL) + lgamma(nu + 1)) / nu - np.log(nu)
    t = np.arange(np.log(1 + TOP**2 / nu) + 1, low, -STEP)
    weights = STEP * np.exp(nu * (t + np.log(nu) - np.exp(t)) - lgamma(nu))
    return np.exp(-t), weights / weights.sum()
