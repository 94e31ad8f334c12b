"""Head weights: rules for α in an ensemble ``f̄ = Σ_h α_h f̂_h`` with ``Σ_h α_h = 1``.

Everything follows from the risk matrix ``M = E[ββᵀ] + S`` (H, H) of the heads' errors (bias
products plus covariances, squared unit of Y; see :mod:`sims.base.terms`): the ensemble's mean
squared error is ``αᵀMα``. Each rule minimises it over its own set of weights, and the sets are
nested, uniform ⊂ ordered ⊂ non-negative ⊂ all that sum to one, so the least risks are in the
reverse order.

The constrained problems are solved exactly by SciPy's active-set least squares with non-negative
coefficients: for any root R of M (``RᵀR = M``) and any c > 0, the u ≥ 0 that minimises
``‖Ru‖² + c²(1ᵀu − 1)²`` is proportional to the minimiser on the simplex. (Its optimality
conditions are ``Mu = c²(1 − 1ᵀu)1 + μ``, μ ≥ 0, ``μᵀu = 0``; divided by 1ᵀu they are those of the
simplex.) No JAX: analyses use this module too.

Sources: optimal weights, Bates & Granger 1969 (doi:10.1057/jors.1969.103); non-negative ones,
Breiman 1996, "Stacked regressions" (doi:10.1007/BF00117832). Ordered weights are a reconstruction
of the subject of a general weighting theory (arXiv 2512.22286).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, lstsq
from scipy.optimize import nnls

from sims.base.arrays import real_numbers

Weighting = Callable[[np.ndarray], np.ndarray]


def uniform(matrix: ArrayLike) -> np.ndarray:
    """Uniform weights ``α_h = 1/H``, optimal if and only if all row sums of M are equal.

    Args:
        matrix: M, (H, H); only its size is used.
    """
    heads = len(np.asarray(matrix))
    return np.full(heads, 1.0 / heads)


def optimal(matrix: ArrayLike) -> np.ndarray:
    """Weights of least risk among all that sum to one: ``α* = M⁻¹1/(1ᵀM⁻¹1)``, of any sign.

    For a singular M (aligned heads), this is the minimiser of least norm.

    Args:
        matrix: M, (H, H), symmetric positive semidefinite.

    Returns:
        α, (H,), sum 1.
    """
    matrix = real_numbers("matrix", matrix)
    heads = len(matrix)
    scale = np.trace(matrix) or 1.0
    # Stationarity Mα = λ1 with 1ᵀα = 1 is solvable even if M is singular.
    system = np.ones((heads + 1, heads + 1))
    system[:heads, :heads] = matrix / scale
    system[heads, heads] = 0.0
    solution = lstsq(system, np.eye(heads + 1)[heads])[0]
    return solution[:heads] / solution[:heads].sum()


def non_negative(matrix: ArrayLike) -> np.ndarray:
    """Weights of least risk on the simplex: ``α ≥ 0``, sum 1.

    Args:
        matrix: M, (H, H), symmetric positive semidefinite.

    Returns:
        α, (H,).
    """
    matrix = real_numbers("matrix", matrix)
    values, vectors = eigh(matrix)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    size = np.sqrt(np.trace(matrix) / len(matrix)) or 1.0
    system = np.vstack([root / size, np.ones(len(matrix))])
    solution = nnls(system, np.eye(len(matrix) + 1)[-1])[0]
    return solution / solution.sum()


def ordered(matrix: ArrayLike) -> np.ndarray:
    """Weights of least risk with ``α_(1) ≥ … ≥ α_(H) ≥ 0``, sum 1, heads sorted by risk M_hh.

    No head weighs more than a better one. With ``α_(j) = Σ_{k ≥ j} u_k/k`` that is the non-negative
    problem in u, whose k-th unit vector weighs the first k heads equally.

    Args:
        matrix: M, (H, H), symmetric positive semidefinite.

    Returns:
        α, (H,), in the heads' original order.
    """
    matrix = real_numbers("matrix", matrix)
    heads = len(matrix)
    first = np.zeros((heads, heads))
    order = np.argsort(np.diagonal(matrix), kind="stable")
    first[order] = np.triu(np.ones((heads, heads))) / np.arange(1, heads + 1)
    return first @ non_negative(first.T @ matrix @ first)


def risk(weights: ArrayLike, matrix: ArrayLike) -> np.ndarray:
    """Mean squared error ``αᵀMα`` of the ensemble with these weights.

    Args:
        weights: (…, H).
        matrix: (…, H, H), broadcast against the weights.

    Returns:
        (…), squared unit of Y.
    """
    weights = real_numbers("weights", weights)
    return np.einsum("...h,...hg,...g->...", weights, real_numbers("matrix", matrix), weights)


WEIGHTINGS: dict[str, Weighting] = {
    "uniform": uniform,
    "ordered": ordered,
    "non_negative": non_negative,
    "optimal": optimal,
}
"""Every weighting: name to ``M (H, H) -> α (H,)``, from the largest risk to the smallest."""
