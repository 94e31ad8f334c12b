"""Moments of a head of isotropic keys at any bandwidth, and its best bandwidth, to first order."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

from sims.problem import TrigonometricSeries
from sims.theory.first_order.tilts import Tilt, tilted_mean, tilted_product

Number = np.ndarray | Array
LEAST_KEYS = 10.0
"""Effective keys below which no bandwidth is sought."""
FINER = 16
"""Points between two bandwidths of the grid at which the error is interpolated."""


class Moments(NamedTuple):
    """Averages over queries for one head, each (bandwidth,).

    ``MSE(n) = limit_bias + (cross_bias + variance)/n + ratio_bias/n²``, and ``n_eff = n/overlap``.
    """

    limit_bias: Number
    cross_bias: Number
    ratio_bias: Number
    variance: Number
    overlap: Number


@jax.jit
def moments(
    target: TrigonometricSeries,
    queries: Float[Array, "Q d"],
    bandwidths: Float[Array, " B"],
    width: float | Array,
    noise_sd: float | Array,
) -> Moments:
    """Moments of a head that sees the first ``width`` of d coordinates, as the target does."""

    def of_bandwidth(bandwidth: Array) -> Moments:
        once, twice = (isotropic_tilt(c, bandwidth, queries, width) for c in (1, 2))
        overlap = jnp.exp(twice.log_mass - 2 * once.log_mass)
        limit = tilted_mean(target, once)
        bias = limit - target(queries)
        ratio = -overlap * (tilted_mean(target, twice) - limit)
        variance = overlap * (tilted_product(target, twice, limit, limit) + noise_sd**2)
        parts = (bias**2, 2 * bias * ratio, ratio**2, variance, overlap)
        return Moments(*map(jnp.mean, parts))

    return jax.lax.map(of_bandwidth, bandwidths)


def isotropic_tilt(
    count: int, bandwidth: Array, queries: Float[Array, "Q d"], width: float | Array
) -> Tilt:
    """N(0, I) tilted by a head's kernel to the power ``count``.

    In closed form, because for b far below 1 the covariance ``b²/(b² + count)`` is lost as the
    difference of two matrices: relative error 10⁻¹⁶/b².
    """
    shrink = bandwidth**2 + count
    return Tilt(
        -0.5 * width * jnp.log1p(count / bandwidth**2)
        - 0.5 * count * jnp.sum(queries**2, axis=1) / shrink,
        queries * (count / shrink),
        jnp.eye(queries.shape[1]) * (bandwidth**2 / shrink),
    )


def nuisance(bandwidth: np.ndarray) -> np.ndarray:
    """``E K²/(E K)²`` of one standard normal coordinate, query at 0: ``(1+b²)/(b√(2+b²))``."""
    return (1 + bandwidth**2) / (bandwidth * np.sqrt(2 + bandwidth**2))


def parts_of_error(
    terms: Moments, n: np.ndarray, heads: float, overlap: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared bias and variance of H averaged heads, by the overlap of nuisance coordinates.

    Nuisance coordinates are independent of all else: they multiply the overlap of a head by
    ``overlap``, and that of two heads, whose nuisances are independent, by 1.
    """
    bias = terms.limit_bias + overlap * terms.cross_bias / n + overlap**2 * terms.ratio_bias / n**2
    return bias, (overlap / heads + 1 - 1 / heads) * terms.variance / n


def best(
    terms: Moments, bandwidths: np.ndarray, n: np.ndarray, heads: float, extra: int
) -> dict[str, np.ndarray]:
    """``error``, ``bandwidth`` and ``n_eff`` where the error is least over bandwidths, each (n,).

    Squared bias, variance and overlap are cubic splines of log b, all in logarithms.

    Args:
        terms: moments at the bandwidths (B,), ascending.
        bandwidths: (B,).
        n: numbers of keys, (n,).
        heads: H averaged heads; ``inf`` is allowed.
        extra: nuisance coordinates of each head.
    """
    overlap, n = nuisance(bandwidths) ** extra, np.asarray(n, float)[:, None]
    log_b = np.log(bandwidths)
    fine = np.linspace(log_b[0], log_b[-1], FINER * (len(log_b) - 1) + 1)

    def smooth(values: np.ndarray) -> np.ndarray:
        return np.exp(CubicSpline(log_b, np.log(values), axis=-1)(fine))

    error = sum(map(smooth, parts_of_error(terms, n, heads, overlap)))
    n_eff = n / smooth(overlap * terms.overlap)
    place = np.where(n_eff >= LEAST_KEYS, error, np.inf).argmin(1)[:, None]
    values = {"error": error, "bandwidth": np.exp(fine) + 0 * n, "n_eff": n_eff}
    return {name: np.take_along_axis(curve, place, 1)[:, 0] for name, curve in values.items()}
