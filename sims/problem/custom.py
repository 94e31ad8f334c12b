"""A custom distribution of the keys: a sampler, and a density for exact theory."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from sims.base.checks import (
    check_count,
    check_covariance,
    check_finite,
    device_key,
    error_summary,
    on_device,
)
from sims.base.errors import InputError
from sims.problem.design_laws import Design, student_points

FREEDOM = 4.0
"""Degrees of freedom of the multivariate t that proposes a custom design's points: heavy tails, and
a finite variance."""
DRAWS = 4096
"""Number of draws on which a design is checked."""
LEAST_DRAWS = 200
"""Effective draws below which a density is not compared with its sampler."""

Sampler = Callable[[Array, int, DTypeLike], Array]
"""``(random key, n, dtype) -> (n, d)``: random rows, of which the first do not depend on n."""


class CustomDesign(Design):
    """A custom design: a sampler for simulation, and a log-density for exact theory.

    Args:
        dimension: d.
        sampler: ``(key, n, dtype) -> (n, d)``, traceable by JAX; the first m rows of n draws
            must equal m draws.
        log_density: ``(N, d) -> (N,)``, up to a constant; None for simulation only.

    Raises:
        InputError: the sampler fails, its shape is wrong, it ignores its key or the prefix
            property fails; log_density does not return one finite number (or −inf) per row, or
            is not the density of the draws.
    """

    size: int = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    log_density: Callable[[Array], Array] | None = eqx.field(static=True)
    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    """Mean and covariance of 4096 draws: exact theory places its heavier-tailed nodes by them."""

    def __init__(
        self,
        dimension: int,
        sampler: Sampler,
        log_density: Callable[[Array], Array] | None = None,
    ) -> None:
        check_count("dimension", dimension)
        self.size = int(dimension)
        self.sampler = sampler
        self.log_density = log_density
        key = device_key("design.proposal", 0)
        draws = self._checked_draws(key, DRAWS)
        if not np.allclose(self._checked_draws(key, 5), draws[:5], rtol=1e-9):
            allowed = "the first m of n draws equal m draws"
            raise InputError("design.sampler", "rows that change with n", allowed)
        if np.allclose(self._checked_draws(jax.random.fold_in(key, 1), 64), draws[:64]):
            allowed = "draws that depend on the key: jax.random.normal(key, …)"
            raise InputError("design.sampler", "the same rows for different keys", allowed)
        self.mean = on_device(draws.mean(axis=0))
        self.covariance = on_device(np.atleast_2d(np.cov(draws.T)))
        check_covariance("design.sampler", self.covariance)
        if log_density is not None:
            values = jnp.asarray(log_density(on_device(draws)))
            if values.shape != (DRAWS,) or not bool(jnp.all(jnp.isfinite(values))):
                allowed = "(N, d) -> (N,), finite at every draw"
                raise InputError("design.log_density", values.shape, allowed)
            self._check_density(draws)

    @property
    def dimension(self) -> int:
        return self.size

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        return self.sampler(key, n, dtype)

    def weighted_points(
        self, normal: Float[np.ndarray, "N p"]
    ) -> tuple[Float[np.ndarray, "N d"], Float[np.ndarray, " N"]]:
        """Points (N, d) of a multivariate t around the proposal, and log weights of sum 1.

        Args:
            normal: standard normal points in d + 1 coordinates, the last of them the length's.
        """
        from scipy.special import logsumexp

        assert self.log_density is not None  # for the type checker; see _check_density
        # t = mean + L z √(ν/χ²_ν), with density ∝ (1 + ‖z‖²/ν)^{−(ν + d)/2}.
        whitened = student_points(normal, FREEDOM)
        root = np.linalg.cholesky(np.asarray(self.covariance))
        points = np.asarray(self.mean) + whitened @ root.T
        square = np.sum(whitened**2, axis=1)
        proposal = -0.5 * (FREEDOM + self.dimension) * np.log1p(square / FREEDOM)
        log_weight = np.asarray(self.log_density(jnp.asarray(points))) - proposal
        return points, log_weight - logsumexp(log_weight)

    def _checked_draws(self, key: Array, n: int) -> np.ndarray:
        """Draws of the sampler, after checks."""
        try:
            draws = np.asarray(self.sampler(key, n, jnp.float64))
        except TypeError as error:
            raise InputError(
                "design.sampler", error_summary(error), "(key, n, dtype) -> (n, d)"
            ) from error
        if draws.shape != (n, self.dimension):
            raise InputError("design.sampler", draws.shape, f"shape (n, {self.dimension})")
        check_finite("design.sampler", draws)
        return draws

    def _check_density(self, draws: np.ndarray) -> None:
        """Raise InputError if importance-weighted points and draws differ in distribution.

        By bounded statistics, ``t_j`` and ``t_i t_j`` with ``t = tanh`` of standardised
        coordinates, at 8 standard errors: a law without a variance is as good as another, and the
        false-alarm rate of a right density is below 1e-10.
        """
        normals = np.random.default_rng(0).normal(size=(8 * DRAWS, self.dimension + 1))
        points, log_weight = self.weighted_points(normals)
        weight = np.exp(log_weight)
        if 1 / (weight**2).sum() < LEAST_DRAWS:
            return

        def statistics(x: np.ndarray) -> np.ndarray:
            t = np.tanh((x - np.asarray(self.mean)) / np.sqrt(np.diag(self.covariance)))
            return np.hstack([t, (t[:, :, None] * t[:, None, :]).reshape(len(x), -1)])

        sampled = statistics(draws)
        weighted = statistics(points)
        expected = weight @ weighted
        error = np.sqrt(sampled.var(0) / DRAWS + weight**2 @ (weighted - expected) ** 2)
        gap = np.abs(sampled.mean(0) - expected)
        if (gap > 8 * error + 1e-9).any():
            worst = float((gap / np.maximum(error, 1e-12)).max())
            allowed = "the density of the sampler's distribution"
            raise InputError("design.log_density", f"{worst:.0f} standard errors off", allowed)
