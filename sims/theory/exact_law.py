"""Projected laws: what a head sees of a Gaussian design, and the target's law given that.

A head sees X only through ``Z = Uᵀ X``. Everything here is in *whitened* coordinates ξ ~ N(0, I_k)
with ``Z = A ξ``, k = rank Cov Z, so frames with dependent columns and singular Σ need no special
case. A pair of heads is brought to canonical coordinates: ``Cov(ξ_h, ξ_g) = diag(ρ)``, ρ the
canonical correlations.

Another design joins by a law with the same two methods; the integrals in
:mod:`sims.theory.exact_integrals` see only log-kernels at nodes, weights, E[m | node] and
Var[m | node].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.problem import GaussianDesign, Heads, Task
from sims.theory.exact_integrals import Regression

RANK_TOLERANCE = 1e-12
"""Directions of Z with less than this share of the largest variance count as constant."""


@dataclass(frozen=True)
class Projection:
    """One head at one query, in whitened coordinates.

    Attributes:
        functional: T (d, k) with ``ξ = TᵀX``, ``TᵀΣT = I``.
        map: A (d_k, k), ``UᵀX = A ξ``.
        query: q = Uᵀx, shape (d_k,).
        centre: ξ that the quadrature is arranged around, shape (k,).
        shape: B (k, k); nodes are ``centre + r·B e`` for unit vectors e.
        loading: ΩJ = Cov(ω_j·X, ξ), shape (J, k).
        bandwidth: b.
    """

    functional: np.ndarray
    map: np.ndarray
    query: np.ndarray
    centre: np.ndarray
    shape: np.ndarray
    loading: np.ndarray
    bandwidth: float

    @property
    def rank(self) -> int:
        return self.map.shape[1]


class GaussianLaw:
    """X ~ N(0, Σ) and a trigonometric target.

    Given ξ the angle ``ω_j·X + c_j`` is Gaussian with mean ``θ_j = Ω_jᵀξ + c_j`` and residual
    covariance ``G = ωΣωᵀ − ΩΩᵀ``, so with ``b_j = a_j e^{−G_jj/2}``

    ::

        E[m | ξ]   = Σ_j b_j cos θ_j
        Var[m | ξ] = Σ_jk b_j b_k [(cosh G_jk − 1) cos θ_j cos θ_k + sinh G_jk sin θ_j sin θ_k]

    Both exact, for every Σ and frame. Source: characteristic function of a Gaussian.
    """

    def __init__(self, task: Task) -> None:
        assert isinstance(task.design, GaussianDesign)
        self.covariance = np.asarray(task.design.covariance)
        self.amplitude = np.asarray(task.target.amplitude)
        self.phase = np.asarray(task.target.phase)
        frequency = np.asarray(task.target.frequency)
        self.spread = frequency @ self.covariance
        self.total = self.spread @ frequency.T
        """ωΣωᵀ, shape (J, J)."""

    def mean_and_variance(self) -> tuple[float, float]:
        """E m(X) and Var m(X)."""
        mean_weights = self.amplitude * np.exp(-0.5 * np.diag(self.total))
        cosine, sine = variance_forms(self.amplitude, self.total)
        c, s = np.cos(self.phase), np.sin(self.phase)
        return float(mean_weights @ c), float(max(c @ cosine @ c + s @ sine @ s, 0.0))

    def regression(
        self, first: np.ndarray, second: np.ndarray, explained: np.ndarray
    ) -> Regression:
        """The target given coordinates with these loadings, (J, k) each, that explain (J, J)."""
        residual = self.total - explained
        residual = (residual + residual.T) / 2
        arrays: Any = (
            first,
            second,
            self.amplitude * np.exp(-0.5 * np.diag(residual)),
            *variance_forms(self.amplitude, residual),
        )
        return Regression(*arrays)

    def given_one(self, head: "Projection") -> Regression:
        """The target given one head's coordinates ξ."""
        loading = head.loading
        return self.regression(loading, np.zeros((len(loading), 0)), loading @ loading.T)

    def given_both(self, view: "PairProjection") -> Regression:
        """The target given (ξ_h, ξ_g), for canonical correlations below 1."""
        c, rho = len(view.correlation), view.correlation
        first, second = view.first.loading, view.second.loading
        into_first, into_second = first.copy(), second.copy()
        into_first[:, :c] = (first[:, :c] - rho * second[:, :c]) / (1 - rho**2)
        into_second[:, :c] = (second[:, :c] - rho * first[:, :c]) / (1 - rho**2)
        explained = first @ into_first.T + second @ into_second.T
        return self.regression(into_first, into_second, explained)

    def given_rest(self, view: "PairProjection") -> Regression:
        """The target given (ξ_h, v), independent, with ``ξ_g = ρ ξ_h + √(1−ρ²) v``."""
        c, gap = len(view.correlation), np.sqrt(1 - view.correlation**2)
        first, rest = view.first.loading, view.second.loading.copy()
        change = rest[:, :c] - view.correlation * first[:, :c]
        rest[:, :c] = np.where(gap > 0, change / np.where(gap > 0, gap, 1.0), 0.0)
        return self.regression(first, rest, first @ first.T + rest @ rest.T)

    def project(self, heads: Heads, head: int, x: np.ndarray) -> Projection:
        """Head ``head`` at query x (d,)."""
        frame = np.asarray(heads.frames)[head]
        bandwidth = float(np.asarray(heads.bandwidth)[head])
        query = frame.T @ x
        values, vectors = np.linalg.eigh(frame.T @ self.covariance @ frame)
        keep = values > RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny)
        root = np.sqrt(values[keep])
        functional, matrix = frame @ (vectors[:, keep] / root), vectors[:, keep] * root
        if heads.kernel.around == "line":
            return self._linear(functional, matrix, query, bandwidth)
        # Nearest point to the query that X can reach: radial kernels peak there.
        centre = (vectors[:, keep] / root).T @ query
        if heads.kernel.around == "origin":
            centre = np.zeros_like(centre)
        # The ellipsoid where both the kernel (about 7.5 b) and the density (about 9 sd) reach.
        form = (matrix.T @ matrix) / (7.5 * bandwidth) ** 2 + np.eye(len(root)) / 81.0
        size, axes = np.linalg.eigh(form)
        shape = (axes / np.sqrt(size)) @ axes.T
        if heads.kernel.support is not None:
            shape = _ellipsoid(matrix, query, centre, heads.kernel.support * bandwidth)
        return Projection(
            functional, matrix, query, centre, shape, self.spread @ functional, bandwidth
        )

    def _linear(
        self, functional: np.ndarray, matrix: np.ndarray, query: np.ndarray, bandwidth: float
    ) -> Projection:
        """A kernel of ⟨q, Z⟩ alone sees one coordinate, whatever d_k is."""
        slope = matrix.T @ query
        length = float(np.linalg.norm(slope))
        direction = slope / length if length > 0 else np.eye(matrix.shape[1])[:, 0]
        functional = (functional @ direction)[:, None]
        norm = float(query @ query)
        # A point Z with the right ⟨q, Z⟩ = length·ξ stands for all of them.
        matrix = (query * (length / norm if norm > 0 else 0.0))[:, None]
        steep = length / bandwidth**2
        return Projection(
            functional,
            matrix,
            query,
            np.array([steep]),
            np.eye(1),
            self.spread @ functional,
            bandwidth,
        )


def variance_forms(amplitude: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrices of Var[m | ξ] (see :class:`GaussianLaw`) without overflow: both (J, J)."""
    half = 0.5 * np.diag(residual)
    outer = np.outer(amplitude, amplitude)
    up = np.exp(residual - half[:, None] - half)
    down = np.exp(-residual - half[:, None] - half)
    return outer * (0.5 * (up + down) - np.exp(-half[:, None] - half)), outer * 0.5 * (up - down)


def _ellipsoid(
    matrix: np.ndarray, query: np.ndarray, centre: np.ndarray, radius: float
) -> np.ndarray:
    """B for which ``‖A(centre + B y) − q‖ < radius`` is ``‖y‖ < 1``: a compact kernel's support."""
    # Where X cannot reach the query (a singular law), less of the radius is left, or nothing.
    left = max(radius**2 - float(np.sum((matrix @ centre - query) ** 2)), 1e-30 * radius**2)
    size, axes = np.linalg.eigh(matrix.T @ matrix)
    return np.sqrt(left) * (axes / np.sqrt(size)) @ axes.T


@dataclass(frozen=True)
class PairProjection:
    """Two heads at one query in canonical coordinates.

    Attributes:
        first, second: the heads, rotated so that ``Cov(ξ_h, ξ_g) = diag(ρ)``.
        correlation: ρ (min(k_h, k_g),), descending.
        rotations: orthogonal (k_h, k_h) and (k_g, k_g): canonical ξ = rotationᵀ · original ξ.
    """

    first: Projection
    second: Projection
    correlation: np.ndarray
    rotations: tuple[np.ndarray, np.ndarray]


def pair(law: GaussianLaw, first: Projection, second: Projection) -> PairProjection:
    """Canonical coordinates of two heads at one query."""
    cross = first.functional.T @ law.covariance @ second.functional
    left, correlation, right = np.linalg.svd(cross)
    # Correlations of 1 to rounding are 1: the pair's law is then singular, and treated so.
    correlation = np.where(correlation > 1 - 1e-12, 1.0, correlation)
    return PairProjection(
        _rotate(first, left), _rotate(second, right.T), correlation, (left, right.T)
    )


def _rotate(p: Projection, rotation: np.ndarray) -> Projection:
    return Projection(
        p.functional @ rotation,
        p.map @ rotation,
        p.query,
        rotation.T @ p.centre,
        rotation.T @ p.shape,
        p.loading @ rotation,
        p.bandwidth,
    )
