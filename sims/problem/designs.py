"""Designs by name: distributions of keys that a file can specify."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import (
    check_count,
    check_non_negative,
    check_positive,
    on_device,
)
from sims.base.errors import InputError
from sims.problem.design_laws import (
    CubeDesign,
    Design,
    GaussianDesign,
    MixtureDesign,
    SphereDesign,
    StudentDesign,
)
from sims.problem.empirical import EmpiricalDesign, empirical
from sims.problem.frames import equicorrelated
from sims.problem.tables import WIDTH, load_table


def isotropic(dimension: int, scale: float = 1.0) -> GaussianDesign:
    """Gaussian design with Σ = scale²·I."""
    check_count("dimension", dimension)
    check_positive("design.scale", scale)
    return GaussianDesign(scale**2 * np.eye(dimension))


def decaying_spectrum(dimension: int, power: float = 1.0) -> GaussianDesign:
    """Gaussian design with Σ diagonal, λ_j ∝ j^(−power), j = 1..d, scaled to trace d.

    Args:
        dimension: d.
        power: ≥ 0; 0 is isotropic.
    """
    check_count("dimension", dimension)
    check_non_negative("design.power", power)
    values = np.arange(1, dimension + 1, dtype=float) ** -power
    return GaussianDesign(np.diag(values * dimension / values.sum()))


def student(
    dimension: int, freedom: float = 3.0, scale_matrix: ArrayLike | None = None
) -> StudentDesign:
    """Multivariate t design with ν degrees of freedom, :class:`.StudentDesign`.

    Args:
        dimension: d.
        freedom: ν > 0; moments of order below ν exist.
        scale_matrix: S, (d, d); None is I.
    """
    check_count("dimension", dimension)
    return StudentDesign(np.eye(dimension) if scale_matrix is None else scale_matrix, freedom)


@lru_cache(maxsize=1)
def redundant_views(
    latent_dimension: int,
    heads: int,
    head_dimension: int,
    noise: float,
    correlation: float = 0.0,
) -> tuple[GaussianDesign, Float[Array, "H d d_k"]]:
    """Design and frames of heads that see the same latent coordinates through separate noise.

    X = (z, ξ_1, …, ξ_H) with z ~ N(0, I_r) and ξ_h ~ N(0, I_{d_k}), Cov(ξ_h, ξ_g) = correlation·I;
    head h projects to ``z[:d_k] + noise·ξ_h``, so its frame has columns ``e_j + noise·e_{ξ_h,j}``
    (not orthonormal). ``correlation`` sets the dependence of head outputs without changing the
    distribution of any single head. The latest results are cached: the problems of a population
    share them, and the square root of Σ dominates their cost.

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
    if not 1 <= head_dimension <= latent_dimension:
        allowed = f"1 to latent_dimension = {latent_dimension}"
        raise InputError("heads.width", head_dimension, allowed)
    check_count("heads.count", heads)
    check_non_negative("design.noise", noise)
    gram = equicorrelated("design.correlation", heads, correlation)
    size = latent_dimension + heads * head_dimension
    covariance = np.eye(size)
    covariance[latent_dimension:, latent_dimension:] = np.kron(gram, np.eye(head_dimension))
    private = np.eye(heads * head_dimension).reshape(heads, head_dimension, -1).transpose(0, 2, 1)
    shared = np.stack([np.eye(latent_dimension, head_dimension)] * heads)
    frames = np.concatenate([shared, noise * private], axis=1)
    return GaussianDesign(covariance), on_device(frames)


HELD_OUT = 0.25
"""Share of a table's rows, at its end, that serve as queries."""


def table_rows(
    dimension: int, name: str
) -> tuple[Float[np.ndarray, "N d"], Float[np.ndarray, "M d"]]:
    """Rows of a table as keys, and held-out rows as queries, in d principal components.

    Both are scaled so that the mean variance over the d columns of the complete table is 1.

    Args:
        dimension: d, at most 64.
        name: digits or text (:mod:`sims.problem.tables`).
    """
    check_count("dimension", dimension)
    if dimension > WIDTH:
        raise InputError("dimension", dimension, f"1 to {WIDTH}, the columns of the table")
    rows = load_table(name)[:, :dimension]
    rows = rows / np.sqrt(rows.var(0).mean())
    count = int((1 - HELD_OUT) * len(rows))
    return rows[:count], rows[count:]


def table(dimension: int, name: str = "digits") -> EmpiricalDesign:
    """Design of rows of real data, drawn with replacement; see :func:`table_rows`."""
    return EmpiricalDesign(table_rows(dimension, name)[0])


DESIGNS: dict[str, Callable[..., Design]] = {
    "isotropic": isotropic,
    "decaying_spectrum": decaying_spectrum,
    "gaussian": GaussianDesign,
    "sphere": SphereDesign,
    "cube": CubeDesign,
    "mixture": MixtureDesign,
    "student": student,
    "empirical": empirical,
    "table": table,
}
"""Every law of iid keys that can be described in a file: name to ``([dimension,] …) -> Design``;
dependent ones are in :data:`sims.problem.sequences.SEQUENCES`."""
