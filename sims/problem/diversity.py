"""Head Diversity Index (HDI): candidates, six definitions of any of five matrices R.

R is the correlation matrix of head outputs (of their label ``noise``, of their ``signal`` or of
both, ``total``), the subspaces' own Gram matrix (``geometric``), or the matrix of products of the
heads' errors, divided by their mean squared error (``errors``). R is positive semidefinite with
trace H. All definitions are 1 for R = I (heads with nothing in common) and 0 for R = 11ᵀ (one
head, H times). With the eigenvalues λ of R and p = λ/H::

    mean           1 − mean of the off-diagonal entries
    top            (H − λ_max)/(H − 1)
    entropy        (exp(−Σ p log p) − 1)/(H − 1)
    participation  (1/Σ p² − 1)/(H − 1)
    inverse        (1ᵀR⁺1 − 1)/(H − 1)
    determinant    (Π λ)^{1/H}

For equicorrelated R all are increasing functions of one another; elsewhere they disagree. With
equal head variances v, and only then, ``Var f̄ = v (1 − (1 − 1/H) HDI_mean)``; of ``errors`` the
same holds for the error without any condition; see docs/theory/diversity.md, "What
makes the theorem true".

The paper's abstract calls the HDI spectral without a formula; these are the candidates. Entropy is
the effective rank of Roy & Vetterli (2007), participation the participation ratio of Σ λ_i; under
``inverse`` of ``errors`` lies the error of the best weights that sum to one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sims.base.arrays import real_numbers
from sims.base.errors import InputError


def mean_index(r: np.ndarray) -> np.ndarray:
    """``1 − mean_{h≠g} R_hg``; in [0, 1] if no correlation is negative, else up to H/(H−1)."""
    heads = r.shape[-1]
    return 1 - (r.sum((-2, -1)) - heads) / (heads * (heads - 1))


def top_index(r: np.ndarray) -> np.ndarray:
    """``(H − λ_max)/(H − 1)``, in [0, 1]."""
    heads = r.shape[-1]
    return (heads - np.linalg.eigvalsh(r)[..., -1]) / (heads - 1)


def entropy_index(r: np.ndarray) -> np.ndarray:
    """``(exp(−Σ p log p) − 1)/(H − 1)`` with p = λ/H, in [0, 1]; 0 log 0 = 0."""
    values = np.maximum(np.linalg.eigvalsh(r), 0.0)
    return (effective_rank(values) - 1) / (r.shape[-1] - 1)


def effective_rank(values: np.ndarray) -> np.ndarray:
    """``exp(−Σ p log p)`` with ``p = σ/Σσ``, 1 to d_k (Roy & Vetterli 2007); 0 without a form.

    Args:
        values: singular values σ ≥ 0, (…, d_k).
    """
    total = values.sum(-1, keepdims=True)
    p = values / np.where(total > 0, total, 1.0)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)
    return np.where(total[..., 0] > 0, np.exp(entropy), 0.0)


def participation_index(r: np.ndarray) -> np.ndarray:
    """``(1/Σ p² − 1)/(H − 1)`` with p = λ/H, in [0, 1]. ``Σ p² = ‖R‖_F²/H²``."""
    heads = r.shape[-1]
    return (heads**2 / np.sum(r**2, axis=(-2, -1)) - 1) / (heads - 1)


def inverse_index(r: np.ndarray) -> np.ndarray:
    """``(1ᵀR⁺1 − 1)/(H − 1)``, ≥ 0; the pseudo-inverse takes eigenvalues below 1e-10 H for 0."""
    heads = r.shape[-1]
    inverse = np.linalg.pinv(r, rcond=1e-10, hermitian=True)
    return (inverse.sum((-2, -1)) - 1) / (heads - 1)


def determinant_index(r: np.ndarray) -> np.ndarray:
    """``(Π λ)^{1/H}``, in [0, 1]; the geometric mean of the eigenvalues."""
    return np.maximum(np.linalg.det(r), 0.0) ** (1 / r.shape[-1])


DEFINITIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": mean_index,
    "top": top_index,
    "entropy": entropy_index,
    "participation": participation_index,
    "inverse": inverse_index,
    "determinant": determinant_index,
}
"""Every definition: name to ``R (…, H, H) -> HDI (…)``."""


def correlation(covariance: ArrayLike) -> np.ndarray:
    """``R_hg = C_hg/√(C_hh C_gg)``.

    Args:
        covariance: C, shape (…, H, H).

    Raises:
        InputError: a head has no variance.
    """
    covariance = real_numbers("covariance", covariance)
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    if not (variance > 0).all():
        raise InputError("covariance", float(variance.min()), "every head's variance > 0")
    scale = np.sqrt(variance)
    return covariance / (scale[..., :, None] * scale[..., None, :])


def geometric_gram(frames: ArrayLike) -> np.ndarray:
    """``G_hg = ‖U_hᵀU_g‖_F²/d_k`` of orthonormal frames (H, d, d_k): the mean squared cosine.

    It uses weights only: keys, kernel and target do not enter. It is 1 for equal
    subspaces, 0 for orthogonal ones; positive semidefinite, for it is the Gram matrix of the
    projections U Uᵀ.
    """
    frames = real_numbers("frames", frames)
    cross = np.einsum("hdi,gdj->hgij", frames, frames)
    return np.sum(cross**2, axis=(-2, -1)) / frames.shape[2]
