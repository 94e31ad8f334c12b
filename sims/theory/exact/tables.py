"""Tables of what heads see, and how fine the integrals of adaptive rules over it are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial.chebyshev import chebvander

from sims.theory.first_order.adaptive import Head, ProjectedDesign
from sims.theory.first_order.ball_rules import product_points, sphere_rule
from sims.theory.first_order.tilts import about


class Level(NamedTuple):
    """Resolution of the integrals; :data:`LEVELS` names those that are tried.

    Attributes:
        reach: λ goes to where λ̂ lies beyond with probability below ``exp(−½ reach²)``,
        step: in steps of so many standard deviations of log λ̂.
        cut: ω goes so far, in units of the reciprocal standard deviation of Σ_i K_i(λ).
        radial: Gauss–Legendre nodes along a radius.
        table: Chebyshev nodes in D², at which densities and moments are tabulated.
        angular: nodes on the circle, for d_k = 2.
    """

    reach: float
    step: float
    cut: float
    radial: int
    table: int
    angular: int


LEVELS = (
    Level(4.8, 0.65, 7.0, 16, 18, 14),
    Level(6.0, 0.55, 10.0, 22, 24, 18),
    Level(7.5, 0.45, 15.0, 30, 32, 26),
    Level(9.0, 0.38, 22.0, 42, 42, 36),
    Level(10.5, 0.33, 32.0, 60, 56, 48),
)
"""From errors of 1e-3 and less, to 1e-10 and less."""
COARSE = (32, 24)
"""Nodes along a radius and on the circle, by which it is found how far the integrals have to go."""
FARTHEST = 512.0
"""Largest exponential tilt: beyond, a sum is out of reach."""
TAPER = (0.7, 13.0)
"""The cut in ω is smooth: ½ erfc of (share of the cut less the first) times the second number.
Where few keys are attended to, |φ|^n levels off at the probability of none, whose atom at 0 a
sharp cut would smear over all sums."""


class Table(NamedTuple):
    """Functions of one D² or of two, summed over directions, as Chebyshev series.

    Attributes:
        limits: largest D² of each head.
        series: coefficients; the last axis is that of the functions.
    """

    limits: tuple[float, ...]
    series: Float[np.ndarray, "*m F"]

    @classmethod
    def tabulate(
        cls,
        seen: ProjectedDesign,
        heads: Sequence[Head],
        centres: Sequence[float],
        limits: tuple[float, ...],
        level: Level,
    ) -> "Table":
        """Tabulate density, and conditional moments of ``m − centre`` times it.

        These are 1, m_h, m_g, m_hm_g, each about its own centre; g is h where there is one head.
        """
        unit = np.cos(np.pi * (np.arange(level.table) + 0.5) / level.table)
        weights = []
        offsets = []
        shape = []
        for head, limit in zip(heads, limits, strict=True):
            around, weight = sphere_rule(len(head.query), level.angular)
            radius = np.sqrt(limit * (unit + 1) / 2)
            points = head.query + radius[:, None, None] * around
            offsets.append(points.reshape(-1, len(head.query)))
            weights.append(weight)
            shape += [level.table, len(around)]
        points = offsets[0] if len(heads) == 1 else product_points(*offsets)
        moments = seen.moments(heads[0].target, points)
        mass, mean, _ = moments
        a = centres[0]
        b = centres[-1]
        values = np.stack([mass, mean - a * mass, mean - b * mass, about(moments, a, b)], axis=-1)
        values = values.reshape(*shape, 4)
        inverse = np.linalg.inv(chebvander(unit, level.table - 1))
        for axis, weight in enumerate(weights):
            values = np.tensordot(values, weight, axes=(axis + 1, 0))
            values = np.moveaxis(np.tensordot(inverse, values, axes=(1, axis)), 0, axis)
        return cls(limits, values)

    def basis(self, axis: int, places: Float[np.ndarray, " R"]) -> Float[np.ndarray, "R m"]:
        """Chebyshev polynomials of that head at these D²."""
        return chebvander(2 * places / self.limits[axis] - 1, self.series.shape[axis] - 1)
