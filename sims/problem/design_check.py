"""Check that a custom design's density belongs to the law of its sampler."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.errors import InputError

LEAST_DRAWS = 200
"""Effective draws under which a density is not compared with its sampler."""


def check_density(
    draws: np.ndarray,
    log_density: Callable[[Array], Array],
    mean: np.ndarray,
    covariance: np.ndarray,
) -> None:
    """Compare draws with importance-weighted draws from a multivariate t around the proposal.

    By bounded statistics, ``t_j`` and ``t_i t_j`` with ``t = tanh`` of standardised coordinates, at
    8 standard errors: a law without a variance is as good as another, and the false-alarm rate of
    a right density is below 1e-10.

    Args:
        draws: the sampler's, (N, d).
        log_density: of the law, up to a constant.
        mean: of the proposal, (d,).
        covariance: of the proposal, (d, d).

    Raises:
        InputError: the density is that of another law.
    """
    from scipy.stats import multivariate_t

    d = len(mean)
    wide = multivariate_t(mean, 2.0 * covariance, df=4, allow_singular=True)
    points = np.atleast_2d(wide.rvs(8 * len(draws), random_state=0).reshape(-1, d))
    log_weight = np.asarray(log_density(jnp.asarray(points)), float) - wide.logpdf(points)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    if 1 / (weight**2).sum() < LEAST_DRAWS:
        return

    def statistics(x: np.ndarray) -> np.ndarray:
        t = np.tanh((x - mean) / np.sqrt(np.diag(covariance)))
        return np.hstack([t, (t[:, :, None] * t[:, None, :]).reshape(len(x), -1)])

    here, there = statistics(draws), statistics(points)
    expected = weight @ there
    error = np.sqrt(here.var(0) / len(draws) + weight**2 @ (there - expected) ** 2)
    gap = np.abs(here.mean(0) - expected)
    if (gap > 8 * error + 1e-9).any():
        worst = float((gap / np.maximum(error, 1e-12)).max())
        allowed = "the density of the sampler's law"
        raise InputError("design.log_density", f"{worst:.0f} standard errors off", allowed)
