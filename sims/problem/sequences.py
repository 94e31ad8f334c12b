"""Ordered keys: stationary Gaussian sequences with correlated neighbours."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats, check_count, check_positive, is_concrete
from sims.base.errors import InputError
from sims.problem.design_laws import Design, with_root
from sims.problem.normals import normal

BLOCK = 32
"""Number of keys whose recursion is unrolled by doubling."""


class SequenceDesign(Design):
    """X_1, X_2, … ~ N(0, Σ) with ``Cov(X_t, X_{t+k}) = ρ_k Σ``: an autoregression of order 2.

    ``X_t = (φ_1 + φ_2) X_{t−1} − φ_1φ_2 X_{t−2} + noise``, stationary from the first key
    on. A single root is an AR(1), ρ_k = φ^|k|; with two equal ones ρ falls like a parabola at
    first (:func:`smooth`); without roots the keys are iid. Roots are data: sequences of one length
    share a compilation.

    Args:
        covariance: Σ, shape (d, d).
        roots: φ_1 and φ_2, in (−1, 1).
    """

    covariance: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    """Symmetric square root of Σ."""
    roots: Float[Array, "2"]

    def __init__(self, covariance: ArrayLike, roots: ArrayLike) -> None:
        self.covariance, self.factor = with_root("design.covariance", covariance)
        self.roots = as_floats("design.roots", roots, (2,))
        if is_concrete(self.roots) and not (np.abs(np.asarray(self.roots)) < 1).all():
            raise InputError("design.roots", np.asarray(self.roots).tolist(), "within (-1, 1)")

    @property
    def dimension(self) -> int:
        return self.covariance.shape[0]

    def autocorrelation(self, count: int) -> Float[np.ndarray, " count"]:
        """Autocorrelations ρ_0, …, ρ_{count−1}.

        ``ρ_k = (φ_1 + φ_2) ρ_{k−1} − φ_1φ_2 ρ_{k−2}`` from ``ρ_1 = (φ_1 + φ_2)/(1 + φ_1φ_2)``
        (Yule–Walker).
        """
        first, second = np.asarray(self.roots)
        total = first + second
        product = first * second
        start = np.zeros(max(count, 2))
        start[:2] = 1.0, total / (1 + product) - total
        # Imported late: SciPy's signals load its statistics.
        from scipy.signal import lfilter

        return lfilter([1.0], [1.0, -total, product], start)[:count]

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        first, second = self.roots.astype(dtype)
        near = (first + second) / (1 + first * second)  # ρ_1
        # Var X = 1 if the noise has the variance (1 − ρ_1²)(1 − φ_1²φ_2²) (Yule–Walker).
        spread = jnp.sqrt((1 - near**2) * (1 - (first * second) ** 2))
        normals = normal(key, (n, self.dimension), dtype)
        start = normals[:1]
        after = near * start + jnp.sqrt(1 - near**2) * normals[1:2]
        # Y_t = X_t − φ_2 X_{t−1} is an AR(1) in φ_1, and X is one in φ_2 with Y for its noise.
        driven = cumulate(jnp.concatenate([after - second * start, spread * normals[2:]]), first)
        path = cumulate(jnp.concatenate([start, driven]), second)
        return path[:n] @ self.factor.astype(dtype)


@jax.jit  # a branch outside of jit would be compiled at every call
def cumulate(noise: Float[Array, "n d"], root: Float[Array, ""]) -> Float[Array, "n d"]:
    """Solution of ``x_t = root · x_{t−1} + noise_t`` from x_0 = noise_0; free if the root is 0.

    Within blocks of :data:`BLOCK` by doubling the reach, then between their ends.
    """
    return lax.cond(root == 0, lambda: noise, lambda: _cumulate(noise, root))


def _cumulate(noise: Float[Array, "n d"], root: Float[Array, ""]) -> Float[Array, "n d"]:
    n, d = noise.shape
    count = -(-n // BLOCK)
    rows = jnp.pad(noise, [(0, count * BLOCK - n), (0, 0)]).reshape(count, BLOCK, d)
    power, reach = root, 1
    while reach < BLOCK:
        rows = rows.at[:, reach:].add(power * rows[:, :-reach])
        power = power**2
        reach = 2 * reach
    lags = jnp.arange(count)[:, None] - jnp.arange(count)
    across = jnp.where(lags >= 0, power ** jnp.maximum(lags, 0), 0.0)
    ends = across @ rows[:, -1]
    before = jnp.pad(ends[:-1], [(1, 0), (0, 0)])
    decay = root ** jnp.arange(1, BLOCK + 1)
    return (rows + before[:, None] * decay[:, None]).reshape(-1, d)[:n]


def autoregressive(dimension: int, persistence: float, scale: float = 1.0) -> SequenceDesign:
    """Sequence with Σ = scale²·I and ρ_k = persistence^|k|: a path that is rough at every scale."""
    check_count("dimension", dimension)
    check_positive("design.scale", scale)
    return SequenceDesign(scale**2 * np.eye(dimension), (persistence, 0.0))


def smooth(dimension: int, persistence: float, scale: float = 1.0) -> SequenceDesign:
    """Sequence with Σ = scale²·I and both roots equal to φ = persistence.

    ``ρ_k = φ^k (1 + k (1 − φ²)/(1 + φ²))``, near ``1 − k²η²/2`` for small k, η = −log φ: a
    Matérn-3/2 path at integer times, up to terms of order η³.
    """
    law = autoregressive(dimension, persistence, scale)
    return SequenceDesign(law.covariance, (persistence, persistence))


SEQUENCES: dict[str, Callable[..., SequenceDesign]] = {
    "autoregressive": autoregressive,
    "smooth": smooth,
}
"""Distributions of dependent keys that a file can specify, in addition to ``DESIGNS``."""
