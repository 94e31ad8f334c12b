"""Distributions of keys X: the base class of designs, Gaussian, sphere, cube, mixture and t."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import (
    as_floats,
    as_numbers,
    check_count,
    check_covariance,
    check_positive,
    is_concrete,
    on_device,
)
from sims.base.errors import InputError
from sims.problem.normals import normal


class Design(eqx.Module):
    """Distribution of a key X in R^d. Subclasses are final and override nothing concrete."""

    EXPONENTIAL: ClassVar[bool] = True
    """True if ``E exp⟨v, X⟩`` is finite for every v."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Ambient dimension d."""

    @abc.abstractmethod
    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        """Sample of n iid keys, (n, d).

        The first m rows of ``sample(key, n)`` equal ``sample(key, m)``: sweeps over n share draws.
        """


class ImageDesign(Design):
    """Distribution of a function of normal variables."""

    EXTRA_NORMALS: ClassVar[int] = 0
    """Coordinates beyond d of the normal points that :meth:`from_normals` takes."""

    @abc.abstractmethod
    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        """Points of the distribution, (N, d), transported from standard normal points.

        Args:
            normal: N standard normal points in p = d + :attr:`EXTRA_NORMALS` coordinates.
        """


class GaussianDesign(ImageDesign):
    """X ~ N(0, Σ).

    Args:
        covariance: Σ, shape (d, d), symmetric positive semidefinite (a singular Σ is allowed:
            redundant views with perfectly correlated noise need it).

    Raises:
        InputError: Σ is not a square, finite, symmetric, positive semidefinite matrix.
    """

    covariance: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    """Symmetric square root of Σ, kept so that drawing costs one product."""

    def __init__(self, covariance: ArrayLike) -> None:
        self.covariance, self.factor = with_root("design.covariance", covariance)

    @property
    def dimension(self) -> int:
        return self.covariance.shape[0]

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        return normal(key, (n, self.dimension), dtype) @ self.factor.astype(dtype)

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        return normal @ np.asarray(self.factor)


class SphereDesign(ImageDesign):
    """X uniform on the sphere ``‖x‖ = R`` of R^d, d ≥ 2: keys normalised to equal length.

    ``E X = 0``, ``Cov X = (R²/d) I``.

    Args:
        dimension: d ≥ 2.
        radius: R > 0; None is √d, where each coordinate has variance 1.
    """

    radius: Float[Array, ""]
    size: int = eqx.field(static=True)

    def __init__(self, dimension: int, radius: float | None = None) -> None:
        check_count("dimension", dimension, minimum=2)
        self.size = int(dimension)
        self.radius = _positive("design.radius", dimension**0.5 if radius is None else radius)

    @property
    def dimension(self) -> int:
        return self.size

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # A normal vector's direction is uniform (its law is invariant under rotations).
        points = normal(key, (n, self.dimension), dtype)
        length = jnp.linalg.norm(points, axis=1, keepdims=True)
        return self.radius.astype(dtype) * points / length

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        return float(self.radius) * normal / length


class CubeDesign(ImageDesign):
    """X uniform on the cube [−a, a]^d: ``E X = 0``, ``Cov X = (a²/3) I``.

    Args:
        dimension: d.
        half_width: a > 0; √3 gives each coordinate variance 1.
    """

    half_width: Float[Array, ""]
    size: int = eqx.field(static=True)

    def __init__(self, dimension: int, half_width: float = 3**0.5) -> None:
        check_count("dimension", dimension)
        self.size = int(dimension)
        self.half_width = _positive("design.half_width", half_width)

    @property
    def dimension(self) -> int:
        return self.size

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        uniform = jax.random.uniform(key, (n, self.dimension), dtype, -1.0, 1.0)
        return self.half_width.astype(dtype) * uniform

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        from scipy.special import ndtr

        return float(self.half_width) * (2 * ndtr(normal) - 1)


class MixtureDesign(ImageDesign):
    """``X ~ Σ_c π_c N(μ_c, Σ_c)``.

    Args:
        weights: π, shape (C,), positive, sum 1.
        means: μ, shape (C, d).
        covariances: Σ, shape (C, d, d), each symmetric positive semidefinite.
    """

    weights: Float[Array, " C"]
    means: Float[Array, "C d"]
    factors: Float[Array, "C d d"]
    """Symmetric square roots of the Σ_c."""
    EXTRA_NORMALS: ClassVar[int] = 1
    """One coordinate chooses the component."""

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        self.means = as_floats("design.means", means)
        if self.means.ndim != 2 or not self.means.size:
            raise InputError("design.means", self.means.shape, "shape (C, d), C >= 1")
        count, d = self.means.shape
        self.weights = as_floats("design.weights", weights, (count,))
        check_positive("design.weights", self.weights)
        if is_concrete(self.weights) and abs(float(self.weights.sum()) - 1) > 1e-9:
            raise InputError("design.weights", f"sum {float(self.weights.sum()):.9g}", "sum 1")
        matrices = as_floats("design.covariances", covariances, (count, d, d))
        for index, matrix in enumerate(matrices):
            check_covariance(f"design.covariances[{index}]", matrix)
        self.factors = square_root(matrices)

    @property
    def dimension(self) -> int:
        return self.means.shape[1]

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # The normals are those of a Gaussian design with the same key: common random numbers.
        normals = normal(key, (n, self.dimension), dtype)
        uniform = jax.random.uniform(jax.random.fold_in(key, 1), (n,), dtype)
        component = jnp.searchsorted(jnp.cumsum(self.weights)[:-1].astype(dtype), uniform, "right")
        out = jnp.zeros_like(normals)
        # One product a component: gathering a (d, d) factor for each row would take n d² numbers.
        for index in range(len(self.weights)):
            mean = self.means[index].astype(dtype)
            factor = self.factors[index].astype(dtype)
            out = jnp.where((component == index)[:, None], mean + normals @ factor, out)
        return out

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        from scipy.special import ndtr

        edges = np.cumsum(np.asarray(self.weights))[:-1]
        component = np.searchsorted(edges, ndtr(normal[:, -1]), "right")
        points = np.zeros((len(normal), self.dimension))
        for index, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            rows = component == index
            points[rows] = np.asarray(mean) + normal[rows, :-1] @ np.asarray(factor)
        return points


class StudentDesign(ImageDesign):
    """``X = Z √(ν/W)`` with Z ~ N(0, S) and W ~ χ²_ν independent: multivariate t, centred.

    Density ∝ ``(1 + xᵀS⁻¹x/ν)^{−(ν+d)/2}`` for S ≻ 0; projections VᵀX are t with VᵀSV and the same
    ν. ``E X = 0`` for ν > 1, ``Cov X = νS/(ν − 2)`` for ν > 2, and no moment of order ν or more is
    finite, no exponential one for any ν: under softmax ``E K = ∞``, which no theory here covers.
    Source: Kotz & Nadarajah (2004), Multivariate t Distributions, chapter 1.

    Args:
        scale_matrix: S, shape (d, d), symmetric positive semidefinite.
        freedom: ν > 0.

    Raises:
        InputError: S is not such a matrix, or ν is not positive.
    """

    scale_matrix: Float[Array, "d d"]
    factor: Float[Array, "d d"]
    """Symmetric square root of S."""
    freedom: Float[Array, ""]
    EXTRA_NORMALS: ClassVar[int] = 1
    """One coordinate is the length's."""
    EXPONENTIAL: ClassVar[bool] = False

    def __init__(self, scale_matrix: ArrayLike, freedom: ArrayLike) -> None:
        self.scale_matrix, self.factor = with_root("design.scale_matrix", scale_matrix)
        self.freedom = _positive("design.freedom", freedom)

    @property
    def dimension(self) -> int:
        return self.scale_matrix.shape[0]

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # The normals are those of a Gaussian design with the same key: common random numbers.
        normals = normal(key, (n, self.dimension), dtype) @ self.factor.astype(dtype)
        half = (self.freedom / 2).astype(dtype)
        # One key a row: the first rows are the same whatever n.
        keys = jax.random.split(jax.random.fold_in(key, 1), n)
        gamma = jax.vmap(lambda row_key: jax.random.gamma(row_key, half, (), dtype))(keys)
        return normals * jnp.sqrt(half / gamma)[:, None]

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N d"]:
        return student_points(normal, float(self.freedom)) @ np.asarray(self.factor)


def student_points(normal: Float[np.ndarray, "N p"], freedom: float) -> Float[np.ndarray, "N d"]:
    """Points of the standard multivariate t, ``z √(ν/χ²_ν)``, from normal ones in d + 1 axes."""
    from scipy.special import ndtr
    from scipy.stats import chi2

    stretch = np.sqrt(freedom / chi2.ppf(ndtr(normal[:, -1]), freedom))
    return normal[:, :-1] * stretch[:, None]


def with_root(field: str, covariance: ArrayLike) -> tuple[Array, Array]:
    """Positive semidefinite matrix and its symmetric square root."""
    matrix = as_floats(field, covariance)
    check_covariance(field, matrix)
    return matrix, square_root(matrix)


def _positive(field: str, value: ArrayLike) -> Float[Array, ""]:
    """The value as a positive scalar."""
    array = as_numbers(field, value, ())
    check_positive(field, array)
    return array


def square_root(covariance: Float[Array | np.ndarray, "*C d d"]) -> Float[Array, "*C d d"]:
    """The symmetric square root of positive semidefinite matrices."""
    concrete = is_concrete(covariance)
    if concrete and not np.triu(covariance, 1).any():  # diagonal
        return on_device(np.sqrt(np.maximum(np.triu(covariance), 0.0)))
    xp: Any = np if concrete else jnp  # NumPy has nothing to compile
    values, vectors = xp.linalg.eigh(covariance)
    root = (vectors * xp.sqrt(xp.maximum(values, 0.0))[..., None, :]) @ vectors.mT
    return on_device(root) if concrete else root
