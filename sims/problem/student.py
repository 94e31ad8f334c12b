"""Keys with heavy tails: the multivariate t."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.checks import as_floats, check_covariance, check_positive
from sims.errors import InputError
from sims.normals import normal
from sims.problem.design_laws import Design, GaussianDesign, WeightedPoints


class StudentDesign(Design):
    """``X = Z √(ν/W)`` with Z ~ N(0, S) and W ~ χ²_ν independent: multivariate t, centred.

    Density ∝ ``(1 + xᵀS⁻¹x/ν)^{−(ν+d)/2}`` for S ≻ 0; projections VᵀX are t with VᵀSV and the same
    ν. ``E X = 0`` for ν > 1, ``Cov X = νS/(ν − 2)`` for ν > 2, and no moment of order ν or more is
    finite, no exponential one for any ν: under softmax ``E K = ∞``, which no theory here covers.
    Source: Kotz & Nadarajah (2004), Multivariate t Distributions, chapter 1.

    Args:
        scale_matrix: S, shape (d, d), symmetric positive semidefinite.
        freedom: ν > 0.

    Raises:
        InputError: S is no such matrix, or ν is not > 0.
    """

    scale_matrix: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    """Symmetric square root of S."""
    freedom: Float[Array, ""]
    EXTRA_NORMALS: ClassVar[int] = 1
    """One coordinate is the length's."""
    EXPONENTIAL: ClassVar[bool] = False

    def __init__(self, scale_matrix: ArrayLike, freedom: ArrayLike) -> None:
        scale_matrix = as_floats("design.scale_matrix", scale_matrix)
        check_covariance("design.scale_matrix", scale_matrix)
        self.scale_matrix, self.factor = scale_matrix, GaussianDesign(scale_matrix).factor
        self.freedom = as_floats("design.freedom", freedom)
        if self.freedom.shape:
            raise InputError("design.freedom", self.freedom.shape, "one number")
        check_positive("design.freedom", self.freedom)

    @property
    def dimension(self) -> int:
        return self.scale_matrix.shape[0]

    @property
    def mean(self) -> Float[Array, " d"]:
        """0 for ν > 1, NaN below, where there is none."""
        return jnp.where(self.freedom > 1, jnp.zeros(self.dimension), jnp.nan)

    @property
    def covariance(self) -> Float[Array, "d d"]:
        """``νS/(ν − 2)`` for ν > 2, ∞·S below."""
        factor = self.freedom / jnp.where(self.freedom > 2, self.freedom - 2, 1.0)
        return jnp.where(self.freedom > 2, factor * self.scale_matrix, jnp.inf * self.scale_matrix)

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # The normals are those of a Gaussian design with the same key: common random numbers.
        normals = normal(key, (n, self.dimension), dtype) @ self.factor.astype(dtype)
        half = (self.freedom / 2).astype(dtype)
        # One key a row: the first rows are the same whatever n.
        keys = jax.random.split(jax.random.fold_in(key, 1), n)
        gamma = jax.vmap(lambda own: jax.random.gamma(own, half, (), dtype))(keys)
        return normals * jnp.sqrt(half / gamma)[:, None]

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        from scipy.special import ndtr
        from scipy.stats import chi2

        nu = float(self.freedom)
        stretch = np.sqrt(nu / chi2.ppf(ndtr(normal[:, -1]), nu))
        points = (normal[:, :-1] @ np.asarray(self.factor)) * stretch[:, None]
        return points, np.full(len(normal), -np.log(len(normal)))
