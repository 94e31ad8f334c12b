"""The laws that keys X can have: Gaussian, sphere, cube, Gaussian mixture; and what a design is."""

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.checks import (
    as_floats,
    check_count,
    check_covariance,
    check_finite,
    check_positive,
    is_concrete,
    on_device,
)
from sims.errors import InputError
from sims.normals import normal
from sims.problem.showing import span, variances

if TYPE_CHECKING:
    from numpyro.distributions import Distribution


WeightedPoints = tuple[Float[np.ndarray, "N d"], Float[np.ndarray, " N"]]
"""Points that stand for a law, and their log weights, of sum 1."""


class Design(eqx.Module):
    """The law of a key X in R^d. Subclasses are final and override nothing concrete."""

    EXTRA_NORMALS: ClassVar[int] = 0
    """Coordinates beyond d of the normal points that :meth:`from_normals` takes."""
    OF_NORMALS: ClassVar[bool] = True
    """Whether :meth:`from_normals` makes points of equal weight from normal ones."""
    EXPONENTIAL: ClassVar[bool] = True
    """Whether ``E exp⟨v, X⟩`` is finite for every v."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Ambient dimension d."""

    @abc.abstractmethod
    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        """n iid keys.

        The first m rows of ``sample(key, n)`` equal ``sample(key, m)``: sweeps over n share draws.
        """

    @abc.abstractmethod
    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        """Points of the law, by a transport of standard normal ones (quasi-Monte Carlo sets).

        Args:
            normal: N points of the standard normal law in p = d + :attr:`EXTRA_NORMALS`
                coordinates.

        Returns:
            Points (N, d), and their log weights (N,), of sum 1.

        Raises:
            InputError: the law's density is not known.
        """


class GaussianDesign(Design):
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
        covariance = as_floats("design.covariance", covariance)
        check_covariance("design.covariance", covariance)
        self.covariance = covariance
        self.factor = _square_root(covariance)

    def __repr__(self) -> str:
        return f"GaussianDesign({self.dimension} dimensions, {variances(self.covariance)})"

    @property
    def dimension(self) -> int:
        return self.covariance.shape[0]

    @property
    def mean(self) -> Float[Array, " d"]:
        """0."""
        return jnp.zeros(self.dimension)

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        return normal(key, (n, self.dimension), dtype) @ self.factor.astype(dtype)

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        return normal @ np.asarray(self.factor), _equal(normal)

    def distribution(self) -> "Distribution":
        """The same law as a NumPyro distribution, for use inside NumPyro models (Σ > 0 only)."""
        from numpyro.distributions import MultivariateNormal

        return MultivariateNormal(0.0, covariance_matrix=self.covariance)


class SphereDesign(Design):
    """X uniform on the sphere ``‖x‖ = R`` of R^d, d ≥ 2: keys normalised to one length.

    ``E X = 0``, ``Cov X = (R²/d) I``.

    Args:
        dimension: d ≥ 2.
        radius: R > 0.
    """

    radius: Float[Array, ""]
    size: int = eqx.field(static=True)

    def __init__(self, dimension: int, radius: ArrayLike) -> None:
        check_count("dimension", dimension, least=2)
        self.size = int(dimension)
        self.radius = _number("design.radius", radius)

    def __repr__(self) -> str:
        return f"SphereDesign({self.size} dimensions, radius {span(self.radius)})"

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def mean(self) -> Float[Array, " d"]:
        return jnp.zeros(self.size)

    @property
    def covariance(self) -> Float[Array, "d d"]:
        return self.radius**2 / self.size * jnp.eye(self.size)

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # A normal vector's direction is uniform (its law is invariant under rotations).
        points = normal(key, (n, self.size), dtype)
        length = jnp.linalg.norm(points, axis=1, keepdims=True)
        return self.radius.astype(dtype) * points / length

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        return float(self.radius) * normal / length, _equal(normal)


class CubeDesign(Design):
    """X uniform on the cube [−a, a]^d: ``E X = 0``, ``Cov X = (a²/3) I``.

    Args:
        dimension: d.
        half_width: a > 0.
    """

    half_width: Float[Array, ""]
    size: int = eqx.field(static=True)

    def __init__(self, dimension: int, half_width: ArrayLike) -> None:
        check_count("dimension", dimension)
        self.size = int(dimension)
        self.half_width = _number("design.half_width", half_width)

    def __repr__(self) -> str:
        return f"CubeDesign({self.size} dimensions, half width {span(self.half_width)})"

    @property
    def dimension(self) -> int:
        return self.size

    @property
    def mean(self) -> Float[Array, " d"]:
        return jnp.zeros(self.size)

    @property
    def covariance(self) -> Float[Array, "d d"]:
        return self.half_width**2 / 3 * jnp.eye(self.size)

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        uniform = jax.random.uniform(key, (n, self.size), dtype, -1.0, 1.0)
        return self.half_width.astype(dtype) * uniform

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        from scipy.special import ndtr

        return float(self.half_width) * (2 * ndtr(normal) - 1), _equal(normal)


class MixtureDesign(Design):
    """``X ~ Σ_c π_c N(μ_c, Σ_c)``.

    Args:
        weights: π, shape (C,), positive, sum 1.
        means: μ, shape (C, d).
        covariances: Σ, shape (C, d, d), each symmetric positive semidefinite.
    """

    weights: Float[Array, " C"]
    means: Float[Array, "C d"]
    covariances: Float[Array, "C d d"]
    factors: Float[Array, "C d d"]
    """Symmetric square roots of the Σ_c."""
    EXTRA_NORMALS: ClassVar[int] = 1
    """One coordinate chooses the component."""

    def __init__(self, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> None:
        self.weights = as_floats("design.weights", weights)
        self.means = as_floats("design.means", means)
        covariances = as_floats("design.covariances", covariances)
        if self.weights.ndim != 1 or not self.weights.size:
            raise InputError("design.weights", self.weights.shape, "shape (C,), C >= 1")
        check_positive("design.weights", self.weights)
        if is_concrete(self.weights) and abs(float(self.weights.sum()) - 1) > 1e-9:
            raise InputError("design.weights", f"sum {float(self.weights.sum()):.9g}", "sum 1")
        count = len(self.weights)
        if self.means.ndim != 2 or len(self.means) != count or not self.means.size:
            raise InputError("design.means", self.means.shape, f"shape ({count}, d)")
        check_finite("design.means", self.means)
        d = self.means.shape[1]
        if covariances.shape != (count, d, d):
            raise InputError("design.covariances", covariances.shape, f"shape ({count}, {d}, {d})")
        for index, matrix in enumerate(covariances):
            check_covariance(f"design.covariances[{index}]", matrix)
        self.covariances = covariances
        self.factors = _square_root(covariances)

    def __repr__(self) -> str:
        return (
            f"MixtureDesign({len(self.weights)} components in {self.dimension} dimensions, "
            f"weights {span(self.weights)})"
        )

    @property
    def dimension(self) -> int:
        return self.means.shape[1]

    @property
    def mean(self) -> Float[Array, " d"]:
        return self.weights @ self.means

    @property
    def covariance(self) -> Float[Array, "d d"]:
        apart = self.means - self.mean
        return jnp.einsum("c,cde->de", self.weights, self.covariances) + jnp.einsum(
            "c,cd,ce->de", self.weights, apart, apart
        )

    def sample(self, key: Array, n: int, dtype: DTypeLike = jnp.float64) -> Float[Array, "n d"]:
        # The normals are those of a Gaussian design with the same key: common random numbers.
        normals = normal(key, (n, self.dimension), dtype)
        uniform = jax.random.uniform(jax.random.fold_in(key, 1), (n,), dtype)
        chosen = jnp.searchsorted(jnp.cumsum(self.weights)[:-1].astype(dtype), uniform, "right")
        out = jnp.zeros_like(normals)
        # One product a component: gathering a (d, d) factor for each row would take n d² numbers.
        for index in range(len(self.weights)):
            mean, factor = self.means[index].astype(dtype), self.factors[index].astype(dtype)
            out = jnp.where((chosen == index)[:, None], mean + normals @ factor, out)
        return out

    def from_normals(self, normal: Float[np.ndarray, "N p"]) -> WeightedPoints:
        from scipy.special import ndtr

        edges = np.cumsum(np.asarray(self.weights))[:-1]
        component = np.searchsorted(edges, ndtr(normal[:, -1]), "right")
        points = np.zeros((len(normal), self.dimension))
        for index, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            own = component == index
            points[own] = np.asarray(mean) + normal[own, :-1] @ np.asarray(factor)
        return points, _equal(normal)


def _equal(normal: Float[np.ndarray, "N p"]) -> Float[np.ndarray, " N"]:
    """Equal log weights, of sum 1."""
    return np.full(len(normal), -np.log(len(normal)))


def _number(field: str, value: ArrayLike) -> Float[Array, ""]:
    """One positive number."""
    array = as_floats(field, value)
    if array.shape:
        raise InputError(field, array.shape, "one number")
    check_positive(field, array)
    return array


def _square_root(covariance: Float[Array, "*C d d"]) -> Float[Array, "*C d d"]:
    """The symmetric square root of positive semidefinite matrices."""
    concrete = is_concrete(covariance)
    xp: Any = np if concrete else jnp  # NumPy has nothing to compile
    values, vectors = xp.linalg.eigh(covariance)
    root = (vectors * xp.sqrt(xp.maximum(values, 0.0))[..., None, :]) @ vectors.mT
    return on_device(root) if concrete else root
