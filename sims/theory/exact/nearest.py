"""Exact theory of one head that attends to its k nearest keys: one integral over its radius.

Given the squared distance λ of the (k+1)-th nearest key, the k nearest are iid from the ball
D² < λ, and ``P(D² < λ̂) ~ Beta(k+1, n−k)``. With uniform weights the estimate is then a mean of k.
With weights e/Σe, ``e = exp(−D²/2s)``, it is a Nadaraya–Watson estimate from k keys, whose terms
follow from ``1/Σe = ∫ e^{−tΣe} dt`` and ``1/(Σe)² = ∫ t e^{−tΣe} dt``. No condition on k or n.
Derivation: docs/theory/adaptive_kernels.md, "The k nearest keys".
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv, betaln

from sims.base.errors import InputError
from sims.problem import Heads, Task
from sims.theory import rounding
from sims.theory.exact.root import Expectations
from sims.theory.first_order.adaptive import Single, shell
from sims.theory.first_order.ball_rules import ball_rule
from sims.theory.first_order.nearest import Near, head_facts, view_nearest
from sims.theory.first_order.tilts import about

TAIL = 1e-16
"""Probability left out at either end of the radius's law, and of t."""
LONGEST = 1e4
"""Longest range of log t."""


class Fineness(NamedTuple):
    """Resolution of the integrals: points in log λ, nodes of the ball, steps in log t."""

    radii: int
    radial: int
    angular: int
    step: float


FINENESS = (Fineness(48, 24, 32, 0.3), Fineness(72, 40, 48, 0.22), Fineness(108, 64, 64, 0.16))


class Nearest(NamedTuple):
    """A head with what first order says of it, k, and the number of keys."""

    head: Near
    first: Single
    k: int
    n: int


def nearest(task: Task, heads: Heads, n: int, queries: np.ndarray) -> list[list[Nearest]]:
    """A single top-k head at every query.

    Raises:
        InputError: theory does not cover the problem; more than one head.
    """
    rows = view_nearest(task, heads, n, queries)
    if heads.count > 1:
        allowed = "1 (order exact, top-k); order: first for more"
        raise InputError("heads.count", heads.count, allowed)
    return [[Nearest(head, head_facts(head), round(n * head.share), n)] for (head,) in rows]


def average_over_radius(nearest_keys: Nearest, level: Fineness) -> Expectations:
    """Expectations over the radius's law, at one level."""
    head, first, k, n = nearest_keys
    largest = 1 - 1e3 * rounding.EPS
    low = head.radius(min(float(betaincinv(k + 1, n - k, TAIL)), largest))
    high = head.radius(min(float(betainccinv(k + 1, n - k, TAIL)), largest))
    grid = np.exp(np.linspace(np.log(low), np.log(high), level.radii))
    dlog = float(np.log(grid[1] / grid[0]))
    total = np.zeros(7)
    for square in map(float, grid):
        mass = float(head.ball(square, 0, (level.radial, level.angular))[0])
        density = float(shell(head.seen, head.query, head.target, square)[0])
        log_beta = k * np.log(mass) + (n - k - 1) * np.log1p(-mass) - betaln(k + 1, n - k)
        weight = dlog * square * density * float(np.exp(log_beta))
        inside = within(head, square, k, first.limit, level)
        total += weight * np.array([*inside, 0.0, square**0.5, square])
    return Expectations(*map(float, total))._replace(attended=float(k))


def within(
    head: Near, square: float, k: int, centre: float, level: Fineness
) -> tuple[float, float, float, float]:
    """First four of the :class:`Expectations` for k iid keys in the ball D² < λ."""
    nodes, weights = ball_rule(len(head.query), 0.0, level.radial, level.angular)
    moments = weights * head.seen.moments(head.target, head.query + square**0.5 * nodes)
    second = about(moments, centre, centre)
    mass, mean, _ = moments
    mean = mean - centre * mass
    if head.sharpness == 0:
        first_moment = mean.sum() / mass.sum()
        second_moment = second.sum() / mass.sum()
        square_mean = second_moment / k + (1 - 1 / k) * first_moment**2
        return 1.0, float(square_mean), 1 / k, float(first_moment)
    if len(head.query) == 2:  # e is the same in all directions
        mass, mean, second = np.reshape([mass, mean, second], (3, level.radial, -1)).sum(2)
        nodes = nodes[:: level.angular]
    total = mass.sum()
    share = np.exp(-0.5 * head.sharpness * square * (nodes**2).sum(axis=1))
    # t from where tΣe is TAIL to where it is −log TAIL, however small e is.
    low = np.log(TAIL / k)
    high = np.log(-np.log(TAIL) / k) + 0.5 * head.sharpness * square
    if high - low > LONGEST:
        raise OverflowError  # one key decides
    t = np.exp(np.linspace(low, high, int(np.ceil((high - low) / level.step)) + 1))
    dt = t * float(np.log(t[1] / t[0]))
    decay = np.exp(-np.multiply.outer(t, share))
    log = np.log(np.maximum(decay @ mass / total, 1e-300))
    once = k * np.exp((k - 1) * log)
    twice = k * (k - 1) * np.exp((k - 2) * log)

    def share_moment(values: np.ndarray, power: int) -> np.ndarray:
        return decay @ (share**power * values) / total

    mass_moment = share_moment(mass, 1)
    mean_moment = share_moment(mean, 1)
    weight = share_moment(mass, 2)
    return (
        float((dt * t) @ (once * weight + twice * mass_moment**2)),
        float((dt * t) @ (once * share_moment(second, 2) + twice * mean_moment**2)),
        float((dt * t) @ (once * weight)),
        float(dt @ (once * mean_moment)),
    )
