"""Designs by name: what an experiment file can ask of the law of the keys."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims import threefry
from sims.checks import (
    as_floats,
    check_count,
    check_non_negative,
    check_positive,
    seeded_key,
)
from sims.errors import InputError
from sims.problem.design_laws import (
    CubeDesign,
    Design,
    GaussianDesign,
    MixtureDesign,
    SphereDesign,
)
from sims.problem.empirical import empirical
from sims.problem.student import StudentDesign


def isotropic(dimension: int, scale: float = 1.0) -> GaussianDesign:
    """Σ = scale²·I."""
    check_count("dimension", dimension)
    check_positive("design.scale", scale)
    return GaussianDesign(scale**2 * np.eye(dimension))


def decaying_spectrum(
    dimension: int, power: float = 1.0, rotation_seed: int | None = None
) -> GaussianDesign:
    """Eigenvalues λ_j ∝ j^(−power), j = 1..d, scaled to trace d.

    Args:
        dimension: d.
        power: ≥ 0; 0 is isotropic.
        rotation_seed: None keeps the coordinate axes as eigenvectors; an integer draws a
            Haar-random eigenbasis with that seed.
    """
    check_count("dimension", dimension)
    check_non_negative("design.power", power)
    values = np.arange(1, dimension + 1, dtype=float) ** -power
    values = values * dimension / values.sum()
    if rotation_seed is None:
        return GaussianDesign(np.diag(values))
    key = seeded_key("design.rotation_seed", rotation_seed)
    basis = threefry.orthogonal(key, dimension)
    covariance = (basis * values) @ basis.T
    return GaussianDesign((covariance + covariance.T) / 2)


def gaussian(covariance: ArrayLike) -> GaussianDesign:
    """An explicit covariance matrix."""
    return GaussianDesign(covariance)


def toeplitz(dimension: int, correlation: float = 0.5, scale: float = 1.0) -> GaussianDesign:
    """Correlated coordinates, ``Σ_jk = scale² ρ^|j−k|``: those of an AR(1) with persistence ρ.

    Args:
        dimension: d.
        correlation: ρ of neighbouring coordinates, within (−1, 1), where Σ ≻ 0 for every d.
        scale: standard deviation of a coordinate, > 0.
    """
    check_count("dimension", dimension)
    check_positive("design.scale", scale)
    if not -1 < correlation < 1:
        raise InputError("design.correlation", correlation, "within (-1, 1)")
    lag = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    return GaussianDesign(scale**2 * float(correlation) ** lag)


def student(
    dimension: int,
    freedom: float = 3.0,
    scale_matrix: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
) -> StudentDesign:
    """Heavy tails: the multivariate t with ν degrees of freedom, :class:`.StudentDesign`.

    Args:
        dimension: d.
        freedom: ν > 0; moments of order below ν exist.
        scale_matrix: S, (d, d); None is I unless ``covariance`` is given.
        covariance: Cov X = νS/(ν − 2) in place of S, for ν > 2.
    """
    check_count("dimension", dimension)
    check_positive("design.freedom", freedom)
    if scale_matrix is not None and covariance is not None:
        raise InputError("design.covariance", covariance, "nothing beside scale_matrix")
    if covariance is not None:
        if freedom <= 2:
            allowed = "nothing for freedom <= 2, where it is infinite: give scale_matrix"
            raise InputError("design.covariance", covariance, allowed)
        given = np.asarray(as_floats("design.covariance", covariance))
        scale_matrix = (freedom - 2) / freedom * given
    return StudentDesign(np.eye(dimension) if scale_matrix is None else scale_matrix, freedom)


def sphere(dimension: int, radius: float | None = None) -> SphereDesign:
    """Uniform on the sphere of that radius; None is √d, where each coordinate has variance 1."""
    check_count("dimension", dimension, least=2)
    return SphereDesign(dimension, dimension**0.5 if radius is None else radius)


def cube(dimension: int, half_width: float = 3**0.5) -> CubeDesign:
    """Uniform on [−a, a]^d; a = √3 gives each coordinate variance 1."""
    return CubeDesign(dimension, half_width)


def mixture(weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> MixtureDesign:
    """A Gaussian mixture, component by component."""
    return MixtureDesign(weights, means, covariances)


@lru_cache(maxsize=1)
def redundant_views(
    latent_dimension: int,
    heads: int,
    head_dimension: int,
    noise: float,
    correlation: float = 0.0,
) -> tuple[GaussianDesign, Float[Array, "H d d_k"]]:
    """Heads that see the same latent coordinates through noise of their own.

    X = (z, ξ_1, …, ξ_H) with z ~ N(0, I_r) and ξ_h ~ N(0, I_{d_k}), Cov(ξ_h, ξ_g) = correlation·I;
    head h projects to ``z[:d_k] + noise·ξ_h``, so its frame has columns ``e_j + noise·e_{ξ_h,j}``
    (not orthonormal). Head output dependence is set by ``correlation`` while no single head's
    law changes with it. The last ones are kept: the problems of a population share theirs, and
    the square root of Σ takes longer than all else that they are made of.

    Args:
        latent_dimension: r ≥ d_k.
        heads: H.
        head_dimension: d_k.
        noise: τ ≥ 0.
        correlation: equicorrelation of the ξ's, in [−1/(H−1), 1].

    Returns:
        The design, of dimension r + H·d_k, and the frames (H, r + H·d_k, d_k).
    """
    check_count("design.latent_dimension", latent_dimension)
    if head_dimension < 1 or head_dimension > latent_dimension:
        raise InputError(
            "heads.width", head_dimension, f"1 to latent_dimension = {latent_dimension}"
        )
    check_count("heads.count", heads)
    check_non_negative("design.noise", noise)
    lowest = -1.0 / (heads - 1) if heads > 1 else -1.0
    if not lowest <= correlation <= 1:
        raise InputError("design.correlation", correlation, f"{lowest:.6g} to 1")
    gram = (1 - correlation) * np.eye(heads) + correlation * np.ones((heads, heads))
    size = latent_dimension + heads * head_dimension
    covariance = np.eye(size)
    covariance[latent_dimension:, latent_dimension:] = np.kron(gram, np.eye(head_dimension))
    own = np.eye(heads * head_dimension).reshape(heads, head_dimension, -1).transpose(0, 2, 1)
    shared = np.broadcast_to(
        np.eye(latent_dimension, head_dimension),
        (heads, latent_dimension, head_dimension),
    )
    frames = np.concatenate([shared, noise * own], axis=1)
    return GaussianDesign(covariance), as_floats("heads.frames", frames)


DESIGNS: dict[str, Callable[..., Design]] = {
    "isotropic": isotropic,
    "decaying_spectrum": decaying_spectrum,
    "gaussian": gaussian,
    "toeplitz": toeplitz,
    "sphere": sphere,
    "cube": cube,
    "mixture": mixture,
    "student": student,
    "empirical": empirical,
}
"""Every law of iid keys that can be described in a file: name to ``([dimension,] …) -> Design``;
dependent ones are in :data:`sims.problem.sequences.SEQUENCES`."""
