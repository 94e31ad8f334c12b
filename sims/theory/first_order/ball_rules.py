"""Quadrature rules on balls and circles in one or two dimensions."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import roots_jacobi

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
    angle = 2 * np.pi * (np.arange(angular) + 0.5) / angular
    points = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    # dA = ½ dr² dφ, and (1 − r²)^a d(r²) is the rule's weight over 2^{a+1}.
    direction_weights = weights / 2 ** (power + 1) * np.pi / angular
    return points.reshape(-1, 2), np.repeat(direction_weights, angular)


def circle(width: int, angular: int) -> tuple[Float[np.ndarray, "A k"], float]:
    """Directions in one or two dimensions, and the weight of each."""
    if width == 1:
        return np.array([[1.0], [-1.0]]), 1.0
    angle = 2 * np.pi * (np.arange(angular) + 0.5) / angular
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), 2 * np.pi / angular


def product_points(
    first: Float[np.ndarray, "N k"], second: Float[np.ndarray, "M l"]
) -> Float[np.ndarray, "NM kl"]:
    """Pairs of points, the coordinates of the first before those of the second."""
    return np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])
