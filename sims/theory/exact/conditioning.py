"""Conditioning: what a head sees of a Gaussian design, and the target's law given that.

A head sees X only through ``Z = Vᵀ X``, V its key frame. Everything here is in *whitened*
coordinates ξ ~ N(0, I_k) with ``Z = A ξ``, k = rank Cov Z, so frames with dependent columns and
singular Σ need no special case. A pair of heads is brought to canonical coordinates:
``Cov(ξ_h, ξ_g) = diag(ρ)``, ρ the canonical correlations.

The integrals in :mod:`sims.theory.exact.laplace` see only log-kernels at nodes, weights,
E[m | node] and Var[m | node]. Derivation: docs/theory/exact.md.
"""

import numpy as np
from jaxtyping import Float

from sims.base.errors import InputError
from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.theory.arrays import Numbers
from sims.theory.exact.laplace import Head, Regression
from sims.theory.exact.pairs import Couple
from sims.theory.rounding import EPS, LARGEST

RANK_TOLERANCE = 1e-12
"""Directions of Z with less than this share of the largest variance count as constant."""
KERNEL_REACH, DENSITY_REACH = 7.5, 9.0
"""Bandwidths, and standard deviations, beyond which a gaussian kernel, and the design's density,
are below 1e-12 and 1e-17 of their peaks: they shape the ellipsoid of the nodes."""


class GaussianLaw:
    """X ~ N(0, Σ) and a trigonometric target.

    Given ξ the angle ``ω_j·X + c_j`` is Gaussian with mean ``θ_j = Ω_jᵀξ + c_j`` and residual
    covariance ``G = ωΣωᵀ − ΩΩᵀ``, so with ``b_j = a_j e^{−G_jj/2}``

    ::

        E[m | ξ]   = Σ_j b_j cos θ_j
        Var[m | ξ] = Σ_jk b_j b_k [(cosh G_jk − 1) cos θ_j cos θ_k + sinh G_jk sin θ_j sin θ_k]

    Both exact, for every Σ and frame. Source: characteristic function of a Gaussian.
    """

    def __init__(self, design: GaussianDesign, target: TrigonometricSeries) -> None:
        self.covariance = np.asarray(design.covariance)
        self.amplitude = np.asarray(target.amplitude)
        self.phase = np.asarray(target.phase)
        frequency = np.asarray(target.frequency)
        self.spread = frequency @ self.covariance
        self.total = self.spread @ frequency.T
        """ωΣωᵀ, shape (J, J)."""

    @classmethod
    def from_task(cls, task: Task) -> "GaussianLaw | None":
        """The law of a task's keys and target; None for other designs or targets."""
        if isinstance(task.design, GaussianDesign) and isinstance(task.target, TrigonometricSeries):
            return cls(task.design, task.target)
        return None

    def condition(
        self,
        first: Float[Numbers, "J k"],
        second: Float[Numbers, "J k_g"],
        correlation: Float[Numbers, " c"],
    ) -> Regression:
        """The target given (ξ_h, ξ_g) of canonical correlations below 1, by the heads' loadings.

        Those of g have no columns where a head is alone.
        """
        # The regression of ω·X on two coordinates of correlation ρ:
        # (Ω_h − ρ Ω_g)/(1 − ρ²) and (Ω_g − ρ Ω_h)/(1 − ρ²).
        c = len(correlation)
        rho = correlation
        first_loading = np.array(first)
        second_loading = np.array(second)
        first_loading[:, :c] = (first[:, :c] - rho * second[:, :c]) / (1 - rho**2)
        second_loading[:, :c] = (second[:, :c] - rho * first[:, :c]) / (1 - rho**2)
        explained = first @ first_loading.T + second @ second_loading.T
        # G = ωΣωᵀ − what the coordinates explain, made symmetric to the last bit.
        residual = self.total - explained
        residual = (residual + residual.T) / 2
        self._check(np.diag(residual))
        mean = self.amplitude * np.exp(-0.5 * np.diag(residual))
        forms = variance_forms(self.amplitude, residual)
        return Regression(first_loading, second_loading, self.phase, mean, *forms)

    def _check(self, residual: Float[np.ndarray, " J"]) -> None:
        """Raise InputError where e^{−G_jj/2} of a wave that is not damped away has no digits left.

        G_jj is a difference of numbers of the size of ``ω_jᵀΣω_j``, so its rounding is ε of that.
        """
        total = np.diag(self.total)
        lost = np.abs(self.amplitude) * EPS * total * np.exp(-0.5 * np.maximum(residual, 0.0))
        worst = int(np.argmax(lost))
        if lost[worst] > LARGEST * np.abs(self.amplitude).max():
            turns = f"a wave of {np.sqrt(total[worst]):.2g} radians per standard deviation of X"
            allowed = f"up to about {np.sqrt(LARGEST / EPS):.1g} where a head sees all of it"
            raise InputError("target.frequency", turns, f"{allowed} (order exact)")

    def project(self, heads: Heads, head: int, x: Float[np.ndarray, " d"]) -> Head:
        """Head number ``head`` at the query x, through its query frame and its key frame.

        The kernel's own facts say where its level sets lie: around the query's nearest point, the
        origin, or along one line.
        """
        frame = np.asarray(heads.of_keys)[head]
        kernel = heads.kernel
        bandwidth = float(np.asarray(heads.bandwidth)[head])
        query = np.asarray(heads.frames)[head].T @ x
        # Whitening: Cov Z = A Aᵀ by its eigenvectors, constant directions left out.
        values, vectors = np.linalg.eigh(frame.T @ self.covariance @ frame)
        varying = values > RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny)
        root = np.sqrt(values[varying])
        functional = frame @ (vectors[:, varying] / root)
        matrix = vectors[:, varying] * root
        if kernel.around == "line":
            # A kernel of ⟨q, Z⟩ alone sees one coordinate whatever d_k is.
            slope = matrix.T @ query
            length = float(np.linalg.norm(slope))
            norm = float(query @ query)
            direction = slope / length if length > 0 else np.eye(matrix.shape[1])[:, 0]
            functional = (functional @ direction)[:, None]
            # A point Z with the right ⟨q, Z⟩ = length·ξ stands for all of them.
            matrix = (query * (length / norm if norm > 0 else 0.0))[:, None]
            centre = np.array([length / bandwidth**2])
            shape = np.eye(1)
        else:
            # Nearest point to the query that X can reach: radial kernels peak there.
            centre = (vectors[:, varying] / root).T @ query
            if kernel.around == "origin":
                centre = np.zeros_like(centre)
            form = matrix.T @ matrix
            reach = 1.0
            if kernel.support is None:  # the ellipsoid where both the kernel and the density reach
                form = form / (KERNEL_REACH * bandwidth) ** 2
                form = form + np.eye(len(root)) / DENSITY_REACH**2
            else:  # the support: ‖A(centre + B y) − q‖ < radius is ‖y‖ < 1
                # Where X cannot reach the query (a singular law), less of the radius is left.
                square = (kernel.support * bandwidth) ** 2
                distance = float(np.sum((matrix @ centre - query) ** 2))
                reach = np.sqrt(max(square - distance, 1e-30 * square))
            size, axes = np.linalg.eigh(form)
            shape = reach * (axes / np.sqrt(size)) @ axes.T
            dense = float(np.linalg.norm(centre)) + DENSITY_REACH
            if kernel.support is not None and reach > dense * np.sqrt(size[-1]):
                shape = dense * np.eye(len(root))  # the support holds all of the design
        loading = self.spread @ functional
        return Head(functional, matrix, query, centre, shape, loading, bandwidth)

    def pair(self, first: Head, second: Head) -> Couple:
        """Two heads at one query, brought to canonical coordinates by an SVD of Cov(ξ_h, ξ_g)."""
        cross = first.functional.T @ self.covariance @ second.functional
        left, correlation, right = np.linalg.svd(cross)
        return Couple((first.rotated(left), second.rotated(right.T)), correlation)


def variance_forms(
    amplitude: Float[np.ndarray, " J"], residual: Float[np.ndarray, "J J"]
) -> tuple[Float[np.ndarray, "J J"], Float[np.ndarray, "J J"]]:
    """The matrices of Var[m | ξ] (see :class:`GaussianLaw`), without overflow."""
    # b_j b_k (cosh G_jk − 1) and b_j b_k sinh G_jk, each exponential with its own −G_jj/2 − G_kk/2.
    half = 0.5 * np.diag(residual)
    outer = np.outer(amplitude, amplitude)
    up = np.exp(residual - half[:, None] - half)
    down = np.exp(-residual - half[:, None] - half)
    return outer * (0.5 * (up + down) - np.exp(-half[:, None] - half)), outer * 0.5 * (up - down)
