"""Redundant views: first-order terms averaged over Gaussian-process targets and Gaussian queries.

Everything factorises over the latent coordinates, so the averages are products of one-dimensional
Gaussian integrals: no target or query is drawn, and every term is smooth in all its arguments.
Reconstruction; the derivation is in ``docs/theory.md``, "Splitting a budget".
"""

from collections.abc import Mapping
from functools import cache
from math import lgamma
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_non_negative, check_positive
from sims.base.errors import InputError
from sims.theory.arrays import Number

KERNELS_OF_VIEWS = ("gaussian", "softmax")
STEP, TAIL, TOP = 0.5, 1e-9, 6.0
"""Trapezoid rule in log g for the Gamma variable g of a Matérn spectrum: step, mass omitted below,
and upper end."""


class ViewTerms(NamedTuple):
    """First-order terms of exchangeable heads; unit target and label variance, factor 1/n removed.

    Attributes:
        limit_squared: ``E (m* − m)²``.
        limit_ratio: ``E (m* − m) δ`` with the ratio bias ``δ/n``.
        ratio_squared: ``E δ²``.
        signal_variance: n times a head's signal variance.
        signal_covariance: n times the signal covariance of two heads.
        noise_variance: ``E r_hh``, so that n over it is n_eff (harmonic mean over queries).
        noise_covariance: ``E r_hg``.
    """

    limit_squared: Float[np.ndarray, "*shape"]
    limit_ratio: Float[np.ndarray, "*shape"]
    ratio_squared: Float[np.ndarray, "*shape"]
    signal_variance: Float[np.ndarray, "*shape"]
    signal_covariance: Float[np.ndarray, "*shape"]
    noise_variance: Float[np.ndarray, "*shape"]
    noise_covariance: Float[np.ndarray, "*shape"]

    def error(self, n: Number, heads: Number, noise_sd: Number) -> Float[np.ndarray, "*shape"]:
        """``E(β + δ/n)² + v/H + (1 − 1/H) c``, all arguments broadcast; H real and ≥ 1.

        As in the rest of the first-order theory, the square of the bias keeps its δ²/n².
        """
        bias = self.limit_squared + 2 * self.limit_ratio / n + self.ratio_squared / n**2
        return bias + self.variance(n, heads, noise_sd)

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
) -> ViewTerms:
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
    if (width < 0).any() or (width > count).any():
        raise InputError("width", width.tolist(), f"0 to {count}")
    scales, weights = matern_mixture(nu)
    # A tilt puts z_j at a_j x_j and leaves it a variance; an overlap is log C_j and q_j. They
    # belong to a seen coordinate; an unseen one has zeros (docs/theory.md, "Splitting a budget").
    rank = max(width.ndim, b.ndim)
    none = np.zeros(1)
    b = b.reshape(*[1] * (rank - b.ndim), *b.shape, 1)
    v = noise**2 + b**2
    twice = 2 + 2 * noise**2 + b**2
    if kernel == "gaussian":
        single = 1 / (1 + v)
        same = 2 / twice
        pair = 2 / (2 + v)
        overlap = {
            "same": (np.log((1 + v) / (b * np.sqrt(twice))), same - 2 * single),
            "pair": (np.log((1 + v) / np.sqrt(v * (2 + v))), pair - 2 * single),
        }
    else:
        # A dot product moves the keys and does not narrow them: the law keeps its variance.
        single = 1 / b**2
        same = 2 / b**2
        pair = 2 / b**2
        overlap = {"same": (none, -2 * (1 + noise**2) * single**2), "pair": (none, -2 * single**2)}
    place = {"one": single, "same": same, "pair": pair}
    query = {"query": np.ones(1)}
    places = [dict.fromkeys(place, none) | query, place | query]
    overlaps = [dict.fromkeys(("none", *overlap), (none, none)), {"none": (none, none), **overlap}]
    scaled = relevance * scales.reshape(-1, *[1] * (rank + 1))

    def product(unseen: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Product over coordinates, the first d_k of them seen, from logarithms (…, *b, r)."""
        steps = np.broadcast_to(seen - unseen, (*seen.shape[:-1], count))
        logs = np.zeros((*steps.shape[:-1], count + 1))
        steps.cumsum(-1, out=logs[..., 1:])
        last = width.reshape(*[1] * (logs.ndim - 1 - width.ndim), *width.shape, 1)
        unseen = np.broadcast_to(unseen, (*unseen.shape[:-1], count)).sum(-1)
        return np.exp(unseen + np.take_along_axis(logs, last, -1)[..., 0])

    @cache
    def mean(tilt: str, power: int = 1, first: str = "", second: str = "") -> np.ndarray:
        """``E r^power E_m[E_first m · E_second m]``; without tilts ``E r^power``."""
        logs = []
        for moved, known in zip(places, overlaps, strict=True):
            log_c, q = known[tilt]
            parts: tuple[Number, ...] = ()
            if first:
                spread = remaining_variances(kernel, moved)
                parts = scaled, moved[first] - moved[second], spread[first] + spread[second]
            logs.append(log_means(power * log_c, power * q, query_scale, *parts))
        return np.tensordot(weights, product(*logs), 1) if first else product(*logs)

    def gap(tilt: str, inner: str) -> np.ndarray:
        """``E r E_inner (m − m*)²``."""
        return mean(tilt) - 2 * mean(tilt, 1, inner, "one") + mean(tilt, 1, "one", "one")

    # The squares and products of m* − m and of δ = −r_hh (E_hh m − m*), multiplied out; then the
    # signal's E r (m − m*)² and the noise's E r.
    shared = ("one", "one")
    return ViewTerms(
        1 + mean("none", 1, *shared) - 2 * mean("none", 1, "one", "query"),
        mean("same", 1, *shared)
        - mean("same", 1, "same", "one")
        + mean("same", 1, "same", "query")
        - mean("same", 1, "one", "query"),
        mean("same", 2, "same", "same")
        - 2 * mean("same", 2, "same", "one")
        + mean("same", 2, *shared),
        gap("same", "same"),
        gap("pair", "pair"),
        mean("same"),
        mean("pair"),
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
