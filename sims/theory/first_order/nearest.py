"""First order in 1/n for heads that attend to their k nearest keys, alike or by a softmax.

The squared radius λ̂ is that of the (k+1)-th nearest key, of which ``P(D² < λ̂) ~ Beta(k+1, n−k)``;
given it the k keys within are iid from the ball, with weights ``e = exp(−D²/2s)`` (1 for uniform
ones) over their sum. Valid where k is large: the relative remainder is O(1/n_eff). Derivation:
docs/theory/adaptive_kernels.md, "The k nearest keys".
"""

from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base.errors import InputError
from sims.problem import Heads, Task, TrigonometricSeries, check_compatible
from sims.theory import rounding
from sims.theory.coverage import check_radii
from sims.theory.first_order.adaptive import (
    ProjectedDesign,
    Single,
    at_queries,
    joint_ball,
    radius_terms,
    rising_root,
    shell,
    slope_of,
)
from sims.theory.first_order.ball_rules import ANGULAR, RADIAL, ball_rule
from sims.theory.first_order.tilts import about
from sims.weights.sparse import TopK

DEEP = 72.0
"""Squared radius in units of the temperature s beyond which ``exp(−D²/2s)`` is below 1e-15."""


class Near(NamedTuple):
    """A head at a query: projected design, projected query, and weights of the k keys.

    Attributes:
        seen: the law of what it sees.
        query: query of d_k coordinates.
        sharpness: 1/s, by which ``e = exp(−D²/2s)``; 0 for uniform weights.
        target: m.
        share: k/n.
    """

    seen: ProjectedDesign
    query: Float[np.ndarray, " k"]
    sharpness: float
    target: TrigonometricSeries
    share: float

    def ball(
        self, square: float, power: int, sizes: tuple[int, int] = (RADIAL, ANGULAR)
    ) -> Float[np.ndarray, "3"]:
        """``E e^a φ`` over the ball D² < λ, for φ = 1, m, m²."""
        scale = power * self.sharpness
        square = min(square, DEEP / scale) if scale else square
        nodes, weights = ball_rule(len(self.query), 0.0, *sizes)
        values = self.seen.moments(self.target, self.query + square**0.5 * nodes)
        node_weights = weights * np.exp(-0.5 * scale * square * (nodes**2).sum(axis=1))
        return square ** (len(self.query) / 2) * values @ node_weights

    def radius(self, mass: float) -> float:
        """λ with ``P(D² < λ)`` as given."""

        def excess(log_square: float) -> float:
            return float(np.log(self.ball(float(np.exp(log_square)), 0)[0] / mass))

        return float(np.exp(rising_root(excess, 0.0, maximum=10.0)))

    def limit(self, square: float) -> float:
        """``E[em]/E[e]`` in the ball D² < λ."""
        total, mean, _ = self.ball(square, 1)
        return float(mean / total)

    def turn(self, square: float) -> float:
        """The derivative of :meth:`limit` in ``P = P(D² < λ)``: ``(e/E[e])(m° − m*)``."""
        total, mean, _ = self.ball(square, 1)
        density, edge, _ = shell(self.seen, self.query, self.target, square)
        boundary_share = np.exp(-0.5 * self.sharpness * square)
        return float(boundary_share / total * (edge / density - mean / total))


def head_facts(head: Near) -> Single:
    """Quantities of a single head: docs/theory/adaptive_kernels.md, "The k nearest keys"."""
    mass = head.share
    square = head.radius(mass)
    total = float(head.ball(square, 1)[0])
    limit = head.limit(square)
    turn = head.turn(square)
    density, edge, _ = shell(head.seen, head.query, head.target, square)
    twice = head.ball(square, 2) / total**2
    overlap = float(twice[0])
    drift = mass * (1 - mass)
    bend = slope_of(head.turn, square) / float(density)
    inside = float(about(twice, limit, limit))
    return Single(
        square,
        limit,
        float(edge / density),
        (1 - mass) * turn + 0.5 * drift * bend - float(twice[1] - limit * overlap),
        inside + drift * turn**2,
        overlap,
        float(head.ball(square, 3)[0]) / total**3,
        mass,
        drift**0.5 / float(density),
        0.0,
    )


def pair_facts(
    heads: tuple[Near, Near], singles: tuple[Single, Single], joint_design: ProjectedDesign
) -> tuple[float, float]:
    """``r_hg``, and n times the signal covariance of two heads at one query.

    Args:
        heads: h and g.
        singles: quantities of each head.
        joint_design: joint design of the two heads, h's coordinates first.
    """
    places, inside, moments = joint_ball(heads, singles, (0.0, 0.0), joint_design)
    mass, mean, _ = moments
    weighed = []
    turns = []
    for head, single, place, node_weights in zip(heads, singles, places, inside, strict=True):
        turns.append(head.turn(single.square))
        share = np.exp(-0.5 * head.sharpness * ((place - head.query) ** 2).sum(axis=1))
        weighed.append(node_weights * share / float(head.ball(single.square, 1)[0]))
    a = singles[0].limit
    b = singles[1].limit
    overlap = weighed[0] @ mass @ weighed[1]
    product = weighed[0] @ about(moments, a, b) @ weighed[1]
    # λ̂ moves with the keys within it, by which either head sees the other's.
    first = weighed[0] @ (mean - a * mass) @ inside[1]
    second = inside[0] @ (mean - b * mass) @ weighed[1]
    drift = inside[0] @ mass @ inside[1] - singles[0].mass * singles[1].mass
    signal = product - turns[1] * first - turns[0] * second + turns[0] * turns[1] * drift
    return float(overlap), float(signal)


def nearest_terms(
    task: Task, heads: Heads, n: int, queries: ArrayLike, *, weights: ArrayLike | None = None
) -> xr.Dataset:
    """The first-order prediction of top-k heads with distance scores, as a labelled result.

    Args:
        task: task with a Gaussian design.
        heads: d_k of 1 or 2, ``top_k`` or ``top_k_softmax`` of distances, k below n.
        n: number of keys.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.

    Returns:
        The dataset of :func:`~.adaptive.adaptive_terms`.

    Raises:
        InputError: another weight rule, design or width; k = n; a singular projection; parts of the
            problem do not fit together, or float64 cannot hold it.
    """
    points = np.asarray(check_compatible(task, heads, n, queries))
    task = rounding.without_constant(task)
    rows = view_nearest(task, heads, n, points)
    return radius_terms(task, heads, n, points, rows, head_facts, pair_facts, weights)


def view_nearest(
    task: Task, heads: Heads, n: int, points: Float[np.ndarray, "Q d"]
) -> list[list[Near]]:
    """The heads at every query.

    Raises:
        InputError: theory does not cover the problem.
    """
    rule = check_radii(task, heads)
    assert isinstance(rule, TopK)  # for the type checker; see sims.theory
    if rule.k >= n:
        raise InputError("heads.kernel.k", rule.k, f"below n = {n} (theory)")
    target = jax.tree.map(np.asarray, task.target)
    soft = rule.weighting == "softmax"
    scale = np.asarray(heads.bandwidth, float) ** -2.0 if soft else np.zeros(heads.count)

    def place(view: ProjectedDesign, query: Float[np.ndarray, " k"], h: int) -> Near:
        return Near(view, query, float(scale[h]), target, rule.k / n)

    return at_queries(task, heads, points, place)
