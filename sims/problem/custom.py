"""A law of the keys of one's own: a sampler, and a density where exact theory is wanted."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from sims.checks import (
    as_floats,
    check_count,
    check_covariance,
    check_finite,
    on_device,
    seeded_key,
)
from sims.errors import InputError, Uncovered
from sims.problem.design_check import check_density
from sims.problem.design_laws import Design, WeightedPoints

FREEDOM = 4.0
"""ν of the multivariate t that a custom design's points are drawn from: heavier tails than most
laws have, and a finite variance."""

Sampler = Callable[[Array, int, DTypeLike], Array]
"""``(random key, n, dtype) -> (n, d)``: rows drawn from a law, the first ones whatever n."""


class CustomDesign(Design):
    """A law of one's own: a sampler for the simulation, a log-density for the exact theory.

    Args:
        dimension: d.
        sampler: ``(key, n, dtype) -> (n, d)``, traceable by JAX; the first m rows of n draws
            must equal m draws.
        log_density: ``(N, d) -> (N,)``, up to a constant; None: simulation only.
        proposal: mean (d,) and covariance (d, d) around which the exact theory places its nodes
            (heavier tailed than a Gaussian); None takes them from 4096 draws.

    Raises:
        InputError: the sampler fails, its shape is wrong, it ignores its key or the prefix
            property fails; log_density does not return one finite number (or −inf) a row, or
            belongs to another law than the draws; the proposal does not fit.
    """

    size: int = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    log_density: Callable[[Array], Array] | None = eqx.field(static=True)
    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    """Of the proposal: near those of X, exactly so only if given so."""
    EXTRA_NORMALS: ClassVar[int] = 1
    """One coordinate is the length of a multivariate t."""
    OF_NORMALS: ClassVar[bool] = False

    def __init__(
        self,
        dimension: int,
        sampler: Sampler,
        log_density: Callable[[Array], Array] | None = None,
        proposal: tuple[Any, Any] | None = None,
    ) -> None:
        check_count("dimension", dimension)
        self.size, self.sampler, self.log_density = int(dimension), sampler, log_density
        words = on_device(seeded_key("design.proposal", 0))
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        try:
            draws = jnp.asarray(sampler(key, 4096, jnp.float64))
        except TypeError as error:
            raise InputError("design.sampler", error, "(key, n, dtype) -> (n, d)") from error
        if draws.shape != (4096, dimension):
            raise InputError("design.sampler", draws.shape, f"shape (n, {dimension})")
        check_finite("design.sampler", draws)
        fewer = jnp.asarray(sampler(key, 5, jnp.float64))
        if fewer.shape != (5, dimension) or not jnp.allclose(fewer, draws[:5], rtol=1e-9):
            raise InputError(
                "design.sampler", "other rows for other n", "first m of n draws equal m draws"
            )
        others = jnp.asarray(sampler(jax.random.fold_in(key, 1), 64, jnp.float64))
        if jnp.allclose(others, draws[:64]):
            allowed = "draws that follow from the key: jax.random.normal(key, …)"
            raise InputError("design.sampler", "the same rows for another key", allowed)
        if log_density is not None:
            values = jnp.asarray(log_density(draws))
            if values.shape != (4096,) or not bool(jnp.all(jnp.isfinite(values))):
                raise InputError(
                    "design.log_density", values.shape, "(N, d) -> (N,), finite at every draw"
                )
        if proposal is None:
            proposal = draws.mean(axis=0), jnp.atleast_2d(jnp.cov(draws.T))
        self.mean = as_floats("design.proposal", proposal[0])
        self.covariance = as_floats("design.proposal", proposal[1])
        if self.mean.shape != (dimension,) or self.covariance.shape != (dimension, dimension):
            raise InputError(
                "design.proposal",
                (self.mean.shape, self.covariance.shape),
                f"mean ({dimension},) and covariance ({dimension}, {dimension})",
            )
        check_covariance("design.proposal", self.covariance)
        if log_density is not None:
            check_density(np.asarray(draws), log_density, *map(np.asarray, proposal))

    def __repr__(self) -> str:
        name = getattr(self.sampler, "__name__", type(self.sampler).__name__)
        known = "a" if self.log_density else "no"
        return f"CustomDesign({self.size} dimensions, drawn by {name}, {known} log-density)"

    @property
    def dimension(self) -> int:
        return self.size

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        return self.sampler(key, n, dtype)

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        """Importance-weighted points of a multivariate t around the proposal."""
        from scipy.special import logsumexp, ndtr
        from scipy.stats import chi2

        if self.log_density is None:
            raise Uncovered("design", type(self).__name__, "one with a log_density (exact)")
        # t = mean + L z √(ν/χ²_ν), with density ∝ (1 + ‖z‖²/ν)^{−(ν + d)/2}.
        stretch = np.sqrt(FREEDOM / chi2.ppf(ndtr(normal[:, -1]), FREEDOM))
        root = np.linalg.cholesky(np.asarray(self.covariance))
        whitened = normal[:, :-1] * stretch[:, None]
        points = np.asarray(self.mean) + whitened @ root.T
        square = np.sum(whitened**2, axis=1)
        proposal = -0.5 * (FREEDOM + self.size) * np.log1p(square / FREEDOM)
        log_weight = np.asarray(self.log_density(jnp.asarray(points))) - proposal
        return points, log_weight - logsumexp(log_weight)
