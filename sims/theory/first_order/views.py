"""Redundant views: first-order terms averaged over Gaussian-process targets and Gaussian queries.

Everything factorises over the latent coordinates, so the averages are products of one-dimensional
Gaussian integrals: no target or query is drawn, and every term is smooth in all its arguments.
Reconstruction; the derivation stands in ``docs/theory.md``, "Splitting a budget".
"""

from functools import partial
from math import lgamma
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.checks import as_floats, check_non_negative, check_positive
from sims.errors import InputError
from sims.theory.arrays import Number

KERNELS = ("gaussian", "softmax")
STEP, TAIL, TOP = 0.5, 1e-9, 6.0
"""Trapezoid rule in log g for the Gamma variable g of a Matérn spectrum: step, mass left out below,
and the end above."""


class ViewTerms(NamedTuple):
    """First-order terms of exchangeable heads; unit target and label variance, 1/n taken out.

    Attributes:
        limit_squared: ``E (m* − m)²``.
        limit_ratio: ``E (m* − m) δ`` with the ratio bias ``δ/n``.
        ratio_squared: ``E δ²``.
        signal_variance: n times a head's signal variance.
        signal_covariance: n times that of two heads.
        noise_variance: ``E r_hh``, so that n over it is n_eff (harmonic mean over queries).
        noise_covariance: ``E r_hg``.
    """

    limit_squared: Float[Array, "*shape"]
    limit_ratio: Float[Array, "*shape"]
    ratio_squared: Float[Array, "*shape"]
    signal_variance: Float[Array, "*shape"]
    signal_covariance: Float[Array, "*shape"]
    noise_variance: Float[Array, "*shape"]
    noise_covariance: Float[Array, "*shape"]

    def error(self, n: Number, heads: Number, noise_sd: Number) -> Float[Array, "*shape"]:
        """``E(β + δ/n)² + v/H + (1 − 1/H) c``, all arguments broadcast; H real and ≥ 1.

        As in the rest of the first-order theory, the square of the bias keeps its δ²/n².
        """
        bias = self.limit_squared + 2 * self.limit_ratio / n + self.ratio_squared / n**2
        return bias + self.variance(n, heads, noise_sd)

    def variance(self, n: Number, heads: Number, noise_sd: Number) -> Float[Array, "*shape"]:
        """``v/H + (1 − 1/H) c``."""
        signal = self.signal_variance / heads + (1 - 1 / heads) * self.signal_covariance
        return signal / n + noise_sd**2 * self.noise(n, heads)

    def noise(self, n: Number, heads: Number) -> Float[Array, "*shape"]:
        """The part of the labels' noise in the variance, for noise of variance 1."""
        return (self.noise_variance / heads + (1 - 1 / heads) * self.noise_covariance) / n


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
    width, bandwidth = jnp.asarray(width), as_floats("bandwidth", bandwidth)
    relevance = as_floats("relevance", relevance)
    check_positive("bandwidth", bandwidth)
    check_non_negative("noise", noise)
    check_non_negative("relevance", relevance)
    check_averages(kernel, bandwidth, noise, query_scale)
    if (np.asarray(width) < 0).any() or (np.asarray(width) > len(relevance)).any():
        raise InputError("width", np.asarray(width).tolist(), f"0 to {len(relevance)}")
    scales, weights = (np.ones(1), np.ones(1)) if nu is None else matern_mixture(nu)
    width, b = jnp.broadcast_arrays(width[..., None], bandwidth[..., None])
    return _terms(kernel, width, b, noise, relevance, query_scale, scales, weights)


def check_averages(kernel: str, bandwidth: ArrayLike, noise: float, query_scale: float) -> None:
    """Raises an InputError unless all averages over queries N(0, κ²I) are finite."""
    if kernel not in KERNELS:
        raise InputError("kernel", kernel, ", ".join(KERNELS))
    if kernel == "gaussian":
        limit, bound = 0.5**0.5, "0.707"
    else:
        least = float(np.min(bandwidth))
        limit, bound = least**2 / (2 * np.sqrt(1 + noise**2)), "b²/2√(1 + τ²), b the least one"
    if not 0 <= query_scale < limit:
        raise InputError("query_scale", query_scale, f"0 to below {bound}")


@partial(jax.jit, static_argnames="kernel")
def _terms(
    kernel: str,
    width: Array,
    b: Array,
    noise: Number,
    relevance: Float[Array, " r"],
    query_scale: Number,
    scales: Float[Array, " g"],
    weights: Float[Array, " g"],
) -> ViewTerms:
    # A tilt puts z_j at a_j x_j with variance 1 − a_j; an overlap is log C_j and q_j, coordinate by
    # coordinate (docs/theory.md, "Splitting a budget").
    v, twice = noise**2 + b**2, 2 + 2 * noise**2 + b**2
    seen = jnp.arange(len(relevance)) < width
    if kernel == "gaussian":
        place = {
            "query": jnp.ones_like(b),
            "one": seen / (1 + v),
            "same": seen * 2 / twice,
            "pair": seen * 2 / (2 + v),
        }
        spread = {name: 1 - a for name, a in place.items()}
        overlap = {
            "none": (jnp.zeros_like(b), jnp.zeros_like(b)),
            "same": (
                seen * jnp.log((1 + v) / (b * jnp.sqrt(twice))),
                seen * 2 * (1 / twice - 1 / (1 + v)),
            ),
            "pair": (
                seen * jnp.log((1 + v) / jnp.sqrt(v * (2 + v))),
                seen * 2 * (1 / (2 + v) - 1 / (1 + v)),
            ),
        }
    else:
        # A dot product moves the keys and does not narrow them: the law keeps its variance.
        rate, flat = seen / b**2, jnp.zeros_like(b)
        place = {"query": jnp.ones_like(b), "one": rate, "same": 2 * rate, "pair": 2 * rate}
        spread = {name: flat + (name != "query") for name in place}
        overlap = {
            "none": (flat, flat),
            "same": (flat, -2 * (1 + jnp.square(noise)) * rate**2),
            "pair": (flat, -2 * rate**2),
        }
    scaled = relevance * scales.reshape(-1, *[1] * b.ndim)

    def mean(tilt: str, power: int = 1, first: str = "", second: str = "") -> Array:
        """``E r^power E_m[E_first m · E_second m]``; without tilts ``E r^power``."""
        log_c, q = (power * part for part in overlap[tilt])
        total, lam = jnp.ones(1), jnp.zeros(1)
        if first:
            lam = scaled
            total = 1 + lam * (spread[first] + spread[second])
            q = q + lam * (place[first] - place[second]) ** 2 / total
        logs = log_c - 0.5 * (jnp.log(total) + jnp.log1p(query_scale**2 * q))
        means = jnp.exp(logs.sum(-1))
        return jnp.tensordot(weights, means, 1) if first else means

    def gap(tilt: str, inner: str) -> Array:
        """``E r E_inner (m − m*)²``."""
        return mean(tilt) - 2 * mean(tilt, 1, inner, "one") + mean(tilt, 1, "one", "one")

    # The squares and products of m* − m and of δ = −r_hh (E_hh m − m*), multiplied out; then the
    # signal's E r (m − m*)² and the noise's E r.
    own = ("one", "one")
    return ViewTerms(
        1 + mean("none", 1, *own) - 2 * mean("none", 1, "one", "query"),
        mean("same", 1, *own)
        - mean("same", 1, "same", "one")
        + mean("same", 1, "same", "query")
        - mean("same", 1, "one", "query"),
        mean("same", 2, "same", "same")
        - 2 * mean("same", 2, "same", "one")
        + mean("same", 2, *own),
        gap("same", "same"),
        gap("pair", "pair"),
        mean("same"),
        mean("pair"),
    )


def matern_mixture(nu: float) -> tuple[np.ndarray, np.ndarray]:
    """Factors 1/g of λ and their weights, g ~ Gamma(ν, rate ν): a Matérn-ν spectrum."""
    check_positive("nu", nu)
    # The mass below g is about (νg)^ν / Γ(ν + 1); above, e^{−νg} ends it.
    low = (np.log(TAIL) + lgamma(nu + 1)) / nu - np.log(nu)
    t = np.arange(np.log(1 + TOP**2 / nu) + 1, low, -STEP)
    weights = STEP * np.exp(nu * (t + np.log(nu) - np.exp(t)) - lgamma(nu))
    return np.exp(-t), weights / weights.sum()
