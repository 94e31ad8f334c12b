"""Quadrature rules: balls around a kernel's centre, and randomised quasi-Monte Carlo."""

from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from sims.theory.first_order.ball_rules import sphere_rule


@lru_cache(maxsize=64)
def graded_radii(count: int, grading: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1), ``ρ = 1 − (1 − z)^q`` for Gauss–Legendre nodes z.

    A grading q > 1 crowds them towards 1: for functions with a boundary layer of any width above
    about N^{−2q}.
    """
    node, weight = np.polynomial.legendre.leggauss(count)
    inward = (1 - node) / 2
    return 1 - inward**grading, grading * inward ** (grading - 1) * weight / 2


@lru_cache(maxsize=64)
def ball_rule(
    dimension: int, radial: int, order: int, grading: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A rule for the unit ball: ``∫_{‖y‖<1} f(y) dy ≈ Σ_i w_i f(ρ_i e_i)``.

    :func:`graded_radii` times :func:`sphere_rule`. Spectrally accurate for f analytic in
    polar coordinates, hence also for f with a kink at the centre or on the boundary.

    Returns:
        Radii (N,), directions (N, k), weights (N,).
    """
    radius, radius_weight = graded_radii(radial, grading)
    direction, area = sphere_rule(dimension, order)
    return (
        np.repeat(radius, len(area)),
        np.tile(direction, (radial, 1)),
        np.outer(radius_weight * radius ** (dimension - 1), area).ravel(),
    )


@lru_cache(maxsize=64)
def sobol_normal(dimension: int, log2_size: int, seed: int) -> np.ndarray:
    """Standard normal points (2^m, p) from one Owen-scrambled Sobol sequence.

    Sets with different seeds are independent randomisations; the mean over each is unbiased.
    Source: Owen (1998), doi:10.1006/jcom.1998.0487.
    """
    from scipy.stats import qmc  # slow to load

    uniform = qmc.Sobol(
        dimension, scramble=True, rng=np.random.default_rng([seed, dimension])
    ).random_base2(log2_size)
    # Scrambled points are uniform on a lattice of 2^−30; keep the inverse finite at 0 and 1.
    return ndtri(np.clip(uniform, 2.0**-40, 1 - 2.0**-40))
