"""Laws of α-entmax attention whose temperature is kept while the number of keys n grows.

Derivations: docs/theory/context_length.md. Distance scores ``−‖q − k‖²/2s``, or dot products with
keys of one norm, for which d is the dimension of the sphere, one less than that of the keys. Valid
where many keys are attended to and the radius is small beside the scales of density and target.
"""

import numpy as np
from jaxtyping import Float
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gamma, gammaln, ndtr, pbdv

from sims.checks import check_count, check_positive
from sims.errors import InputError

ORDER = 2.0
"""Order of the kernels: no smoothness beyond it lowers the bias."""
FAR = -10.0
"""Standardised thresholds below this count as below every score; then it is a smooth mean."""
EQUAL_NORMS = 1e-6
"""Relative spread of norms that still counts as one norm, in single precision."""


def kernel_volume(dimension: int, power: float) -> float:
    """``v_{d,a} = ∫_{|u|<1} (1 − |u|²)^a du = π^{d/2} Γ(a + 1)/Γ(a + 1 + d/2)``."""
    check_count("dimension", dimension)
    if power != 0:
        check_positive("power", power)
    half = dimension / 2
    logarithm = half * np.log(np.pi) + gammaln(power + 1) - gammaln(power + 1 + half)
    return float(np.exp(logarithm))


def radius_law(temperature: float, n: float, density: float, dimension: int, nu: float) -> float:
    """The radius ``h* = ((2sν)^ν / (n f v_{d,ν}))^{1/(2ν + d)}`` at a query with key density f."""
    for name, value in (("temperature", temperature), ("n", n), ("density", density), ("nu", nu)):
        check_positive(name, value)
    volume = kernel_volume(dimension, nu)
    logarithm = nu * np.log(2 * temperature * nu) - np.log(n * density * volume)
    return float(np.exp(logarithm / (2 * nu + dimension)))


def attended_law(temperature: float, n: float, density: float, dimension: int, nu: float) -> float:
    """Keys within that radius, ``n f V_d h*^d``."""
    radius = radius_law(temperature, n, density, dimension, nu)
    return n * density * kernel_volume(dimension, 0) * radius**dimension


def attended_exponent(nu: float, dimension: int) -> float:
    """Of attended keys in n at a kept temperature: ``2ν/(2ν + d)``; 1 for ν = ∞ (softmax)."""
    _check_power(nu)
    check_count("dimension", dimension)
    return 1.0 if np.isinf(nu) else 2 * nu / (2 * nu + dimension)


def error_exponent(nu: float, beta: float, dimension: int) -> float:
    """Of the mean squared error in n at a kept temperature: ``−2 min(β, 2, ν)/(2ν + d)``."""
    _check_power(nu)
    check_positive("beta", beta)
    check_count("dimension", dimension)
    return 0.0 if np.isinf(nu) else -2 * min(beta, ORDER, nu) / (2 * nu + dimension)


def temperature_exponent(nu: float, beta: float, dimension: int) -> float:
    """Of the temperature of least error in n, ``2(β − ν)/(ν(2β + d))``, β at most 2.

    It is 0 exactly where ν = β; for ν = ∞ (the Gaussian kernel) it is −2/(2β + d).
    """
    _check_power(nu)
    check_positive("beta", beta)
    check_count("dimension", dimension)
    smooth = min(beta, ORDER)
    if np.isinf(nu):
        return -2 / (2 * smooth + dimension)
    return 2 * (smooth - nu) / (nu * (2 * smooth + dimension))


def best_temperature(noise_sd: float, curvature: float, dimension: int) -> float:
    """The temperature of least error at a point for ν = 2 and a smooth target: no n, no density.

    ``s* = (σ(6 + d)/(8|B|)) √(d v_{d,4}/v_{d,2})``.

    Args:
        noise_sd: σ > 0.
        curvature: ``B = ½(Δm + 2 ∇m·∇log f)`` at the point, not 0.
        dimension: d.
    """
    check_positive("noise_sd", noise_sd)
    check_positive("curvature", abs(curvature))
    ratio = dimension * kernel_volume(dimension, 4) / kernel_volume(dimension, 2)
    return float(noise_sd * (6 + dimension) / (8 * abs(curvature)) * np.sqrt(ratio))


def score_threshold(n: float, scale: float, nu: float) -> float:
    """The threshold u of scores that are N(0, a²), as the dot products with N(0, I) keys are.

    It solves ``n E((z − u)/ν)₊^ν = 1``; keys with z > u are attended to. With Z standard normal
    ``E(Z − t)₊^ν = Γ(ν + 1) e^{−t²/4} D_{−ν−1}(t)/√(2π)``, D the parabolic cylinder function.

    Args:
        n: number of keys.
        scale: a = ‖q‖/s.
        nu: ν ≥ 1, finite.
    """
    for name, value in (("n", n), ("scale", scale), ("nu", nu)):
        check_positive(name, value)
    if nu < 1:
        raise InputError("nu", nu, "at least 1 (dot products)")

    def excess(t: float) -> float:
        return float(np.log(n) + nu * np.log(scale / nu) + np.log(_excess(t, nu)))

    low, high = 0.0, 1.0
    while excess(low) < 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    return float(scale * brentq(excess, low, high, xtol=1e-13))


def score_attended(n: float, scale: float, nu: float) -> float:
    """Expected number of keys above that threshold, to first order; see :func:`score_threshold`.

    ``n P(z > u)`` and the constant that the threshold's own fluctuation adds, which for few
    attended keys is near 1: docs/theory/context_length.md, "Dot products".
    """
    t = score_threshold(n, scale, nu) / scale
    upper, density = float(ndtr(-t)), float(np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))
    slope = nu * _excess(t, nu - 1)
    spread = _excess(t, 2 * nu) - _excess(t, nu) ** 2
    # d/dλ (g/G') with λ = −t, g = φ(t): dg/dλ = tφ, dG'/dλ = ν(ν − 1) E(Z − t)₊^{ν−2}.
    bend = density if nu == 1 else nu * (nu - 1) * _excess(t, nu - 2)
    turn = (t * density - density * bend / slope) / slope
    constant = density * nu * _excess(t, 2 * nu - 1) / slope**2 + spread / (2 * slope) * turn
    return n * upper + constant


def _excess(t: float, power: float) -> float:
    """``E(Z − t)₊^a`` of a standard normal Z, a > −1."""
    if power == 0:
        return float(ndtr(-t))
    if t < FAR:
        nodes, weights = hermegauss(40)
        return float((nodes - t).clip(0) ** power @ weights / weights.sum())
    value, _ = pbdv(-power - 1, t)
    return float(gamma(power + 1) * np.exp(-(t**2) / 4) * value / np.sqrt(2 * np.pi))


def squared_radius(
    query: ArrayLike, keys: ArrayLike, threshold: float, temperature: float, nu: float
) -> float:
    """``‖q‖² + R² − 2sντ``, the squared radius that dot products with keys of one norm R imply.

    Args:
        query: (p,).
        keys: (n, p).
        threshold: τ of α-entmax, the weights being ``(z/ν − τ)₊^ν``.
        temperature: s.
        nu: ν.

    Raises:
        InputError: the keys have unequal norms, so that no ball is attended to.
    """
    check_positive("temperature", temperature)
    check_positive("nu", nu)
    squares: Float[np.ndarray, " n"] = np.sum(np.square(np.asarray(keys, float)), axis=1)
    low, high = float(squares.min()) ** 0.5, float(squares.max()) ** 0.5
    if high - low > EQUAL_NORMS * high:
        raise InputError("keys", f"norms from {low:.3g} to {high:.3g}", "keys of one norm")
    own = float(np.sum(np.square(np.asarray(query, float))))
    return own + float(squares.mean()) - 2 * temperature * nu * threshold


def _check_power(nu: float) -> None:
    """ν > 0; infinity is softmax."""
    if not np.isposinf(nu):
        check_positive("nu", nu)
