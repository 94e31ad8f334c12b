"""Targets by name: trigonometric series m of controlled smoothness.

Every family here is a finite sum ``m(x) = Σ_j a_j cos(ω_j·x + c_j)``, because for such m all
Gaussian expectations have closed forms. Random families are drawn by NumPy, where nothing
needs compiling; the same seed gives the same function. Any other function is a
:class:`~sims.problem.regression.CustomTarget`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sims.base import threefry
from sims.base.checks import (
    check_count,
    check_non_negative,
    check_positive,
    seeded_key,
)
from sims.base.errors import InputError
from sims.problem.regression import TrigonometricSeries


def constant(dimension: int, seed: int = 0, value: float = 1.0) -> TrigonometricSeries:
    """Constant m(x) = value: no bias, no signal, only label noise. The seed is not used."""
    del seed
    check_count("dimension", dimension)
    return TrigonometricSeries([value], np.zeros((1, dimension)), [0.0])


def holder(
    dimension: int, seed: int = 0, beta: float = 1.0, levels: int = 6
) -> TrigonometricSeries:
    """Lacunary (Weierstrass-type) series ``Σ_{l=0..L} 2^{−lβ} cos(2^l u_l·x + φ_l)``.

    Hölder-β down to the scale 2^{−L}; L is part of the definition, and a bandwidth below that
    scale sees an analytic function. u_l: independent uniform unit vectors; φ_l uniform on [0, 2π).

    Args:
        dimension: d.
        seed: random seed for the directions and phases.
        beta: smoothness β > 0.
        levels: L ≥ 0 (the series has L + 1 terms).
    """
    check_count("dimension", dimension)
    check_positive("target.beta", beta)
    check_count("target.levels", levels, minimum=0)
    direction_key, phase_key = threefry.split(seeded_key("target.seed", seed))
    raw = threefry.normal(direction_key, (levels + 1, dimension))
    directions = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    scale = 2.0 ** np.arange(levels + 1)
    return TrigonometricSeries(
        scale**-beta, scale[:, None] * directions, _phases(phase_key, levels + 1)
    )


def matern(
    dimension: int,
    seed: int = 0,
    nu: float = 1.5,
    lengthscale: float = 1.0,
    features: int = 64,
) -> TrigonometricSeries:
    """Random Fourier features of a unit-variance Matérn-ν Gaussian process.

    ω ~ multivariate t with 2ν degrees of freedom and scale 1/lengthscale, a_j = √(2/J).
    Source: spectral density of the Matérn covariance (Rasmussen & Williams 2006, eq. 4.15).
    """
    check_count("dimension", dimension)
    check_positive("target.nu", nu)

    def spectrum(key: np.ndarray) -> np.ndarray:
        for_normals, for_sizes = threefry.split(key)
        normals = threefry.normal(for_normals, (features, dimension))
        return normals * np.sqrt(nu / threefry.gamma(for_sizes, nu, features))[:, None]

    return _random_features(spectrum, seed, lengthscale, features)


def rbf(
    dimension: int, seed: int = 0, lengthscale: float = 1.0, features: int = 64
) -> TrigonometricSeries:
    """Random Fourier features of a unit-variance squared-exponential process: ω ~ N(0, I/ℓ²)."""
    check_count("dimension", dimension)
    return _random_features(_normals(features, dimension), seed, lengthscale, features)


def additive(
    dimension: int, seed: int = 0, lengthscale: float = 1.0, features: int = 8
) -> TrigonometricSeries:
    """``Σ_j m_j(x_j)/√d``: one squared-exponential draw per coordinate (``features`` each)."""
    check_count("dimension", dimension)
    check_count("target.features", features)
    axis = np.repeat(np.eye(dimension), features, axis=0)
    normals = _normals(dimension * features, 1)
    return _random_features(lambda key: normals(key) * axis, seed, lengthscale, len(axis))


def decaying(
    dimension: int,
    seed: int = 0,
    alpha: float = 1.0,
    lengthscale: float = 1.0,
    features: int = 64,
) -> TrigonometricSeries:
    """Squared-exponential draw in which coordinate j = 0, 1, … has frequencies of scale e^{−αj/2}.

    ω_j ~ N(0, e^{−αj}/ℓ²), so the variance left unexplained by a head that sees only the
    first d_k coordinates falls like e^{−α·d_k}.
    """
    check_count("dimension", dimension)
    check_non_negative("target.alpha", alpha)
    relevance = np.exp(-0.5 * alpha * np.arange(dimension))
    normals = _normals(features, dimension)
    return _random_features(lambda key: relevance * normals(key), seed, lengthscale, features)


def explicit(
    dimension: int, seed: int = 0, *, amplitude: ArrayLike, frequency: ArrayLike, phase: ArrayLike
) -> TrigonometricSeries:
    """Series given term by term. The seed is not used."""
    del seed
    series = TrigonometricSeries(amplitude, frequency, phase)
    if series.dimension != dimension:
        raise InputError("target.frequency", series.frequency.shape, f"shape (J, {dimension})")
    return series


Draw = Callable[[np.ndarray], np.ndarray]
"""Function from a key of :mod:`sims.base.threefry` to frequencies (J, d)."""


def _normals(features: int, dimension: int) -> Draw:
    return lambda key: threefry.normal(key, (features, dimension))


def _phases(key: np.ndarray, terms: int) -> np.ndarray:
    return 2.0 * np.pi * threefry.uniform(key, (terms,))


def _random_features(
    spectrum: Draw, seed: int, lengthscale: float, features: int
) -> TrigonometricSeries:
    check_positive("target.lengthscale", lengthscale)
    check_count("target.features", features)
    frequency_key, phase_key = threefry.split(seeded_key("target.seed", seed))
    frequency = spectrum(frequency_key) / lengthscale
    amplitude = np.full(features, np.sqrt(2.0 / features))
    return TrigonometricSeries(amplitude, frequency, _phases(phase_key, features))


TARGETS: dict[str, Callable[..., TrigonometricSeries]] = {
    "constant": constant,
    "holder": holder,
    "matern": matern,
    "rbf": rbf,
    "additive": additive,
    "decaying": decaying,
    "explicit": explicit,
}
"""Every target family: name to ``(dimension, seed, **parameters) -> TrigonometricSeries``."""
