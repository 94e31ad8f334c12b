"""Quadrature rules on balls in one or two dimensions, and on spheres."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import roots_gegenbauer, roots_jacobi

RADIAL, ANGULAR = 24, 32
"""Nodes of a rule by radius (squared, if d_k = 2) and by angle."""


@lru_cache(maxsize=64)
def ball_rule(
    width: int, power: float, radial: int = RADIAL, angular: int = ANGULAR
) -> tuple[Float[np.ndarray, "N k"], Float[np.ndarray, " N"]]:
    """Nodes and weights of ``∫_{|u|<1} (1 − |u|²)^a f(u) du`` in one or two dimensions.

    In two, r² runs over a Gauss–Jacobi rule: the mean of f over an angle is smooth in r².
    """
    if width == 1:
        nodes, weights = roots_jacobi(radial, power, power)
        return nodes[:, None], weights
    nodes, weights = roots_jacobi(radial, power, 0.0)
    radius = np.sqrt((nodes + 1) / 2)
    around, direction_weights = sphere_rule(2, angular)
    points = radius[:, None, None] * around
    # dA = ½ dr² dφ, and (1 − r²)^a d(r²) is the rule's weight over 2^{a+1}.
    radial_weights = weights / 2 ** (power + 2)
    return points.reshape(-1, 2), np.outer(radial_weights, direction_weights).ravel()


@lru_cache(maxsize=64)
def sphere_rule(dimension: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the unit sphere of R^k; the weights sum to its area.

    A product of the trapezoid rule in the last angle and Gauss–Gegenbauer rules in the others:
    exact for polynomials of degree below ``order`` (k ≥ 2). k = 1 is the pair of points ±1.

    Args:
        dimension: k ≥ 1.
        order: number of points on a great circle.

    Returns:
        Nodes (S, k) and weights (S,).

    Source: Stroud (1971), Approximate Calculation of Multiple Integrals, §2.6.
    """
    if dimension == 1:
        return np.array([[1.0], [-1.0]]), np.ones(2)
    # Half a step off the axis, so that no node sits on a plane of symmetry twice.
    angle = 2 * np.pi * (np.arange(order) + 0.5) / order
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weights = np.full(order, 2 * np.pi / order)
    for k in range(3, dimension + 1):
        # Integrals over S^{k−1} split as ∫ (1 − z²)^{(k−3)/2} dz over the pole's coordinate z.
        height, height_weight = roots_gegenbauer(order // 2, (k - 2) / 2)
        ring = np.sqrt(1 - height**2)
        flat = (ring[:, None, None] * points).reshape(-1, k - 1)
        points = np.column_stack([flat, np.repeat(height, len(points))])
        weights = np.outer(height_weight, weights).ravel()
    return points, weights


def product_points(
    first: Float[np.ndarray, "N k"], second: Float[np.ndarray, "M l"]
) -> Float[np.ndarray, "NM kl"]:
    """Pairs of points, the coordinates of the first before those of the second."""
    return np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])
