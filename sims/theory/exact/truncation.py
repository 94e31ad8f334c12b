"""Truncation: the range of log s and the radius that a head's integrals are cut to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp

from sims.base.errors import Uncovered
from sims.problem.kernels import Kernel
from sims.theory.exact.conditioning import DENSITY_REACH
from sims.theory.exact.laplace import SATURATED, Head
from sims.theory.exact.quadrature import graded_radii, sobol_normal
from sims.theory.first_order.ball_rules import sphere_rule

LOWER_TAIL = 12.0
"""The grid in log s starts where the integrands are e^{−12} of their scale: the leading tail is
added in closed form, and the next order is e^{−24}."""
GRADING = 4
"""Of the radii of compact kernels, see :func:`sims.theory.exact.quadrature.ball_rule`."""
SHARPEST = 3e-9
"""Least share left outside the range of a compact kernel, whose integrands fall slowly."""
LONGEST = 1000.0
"""Longest range of log s looked at; beyond it (few keys, tiny bandwidth) one key decides, and no
grid is so long."""
LEAST_LOG_MEAN = -600.0
"""log E K below which no key is ever within a compact kernel's reach."""


@dataclass(frozen=True)
class Extent:
    """Region of a head's integrals at a query.

    Attributes:
        low, high: range of log s.
        radius: radius of the nodes around ``Head.centre``, in units of ``Head.shape``.
    """

    low: float
    high: float
    radius: float


def pilot(kernel: Kernel, head: Head, n: int, tail: float) -> Extent:
    """The extent by a rough rule.

    Radii are spaced evenly in log r, which sees every scale between 1e-8 and 1 of the design, so no
    bandwidth is too small. Those of a compact kernel fill the unit ball of ``Head.shape``.

    Args:
        kernel: K.
        head: the head at one query.
        n: number of keys.
        tail: the share of any integral that may be left outside.

    Raises:
        InputError: the kernel vanishes somewhere, and has no ``support``.
    """
    k = head.rank
    compact = kernel.support is not None
    direction, area = sphere_rule(k, 12)
    node, weight = graded_radii(96, GRADING if compact else 1)
    if compact:
        radius = node
        measure = weight * node ** (k - 1)
    else:
        inverse = np.linalg.inv(head.shape)
        largest = (np.linalg.norm(head.centre) + DENSITY_REACH) * np.linalg.norm(inverse, 2)
        radius = largest * np.exp(-20 * node)
        measure = 20 * weight * radius**k
    xi = head.centre + radius[:, None, None] * (direction @ head.shape.T)
    log_weight = -0.5 * np.sum(xi**2, axis=2) + np.log(measure)[:, None] + np.log(area)
    keys = np.moveaxis(xi @ head.map.T, 2, 0)
    log_kernel = np.asarray(compiled_log(kernel)(head.query[:, None, None], keys, head.bandwidth))
    check_never_zero(kernel, log_kernel)
    if compact:
        log_weight += np.linalg.slogdet(head.shape)[1] - 0.5 * k * np.log(2 * np.pi)
    else:
        log_weight -= logsumexp(log_weight)
    log_mean = float(logsumexp(log_weight + log_kernel))
    log_square = float(logsumexp(log_weight + 2 * log_kernel))
    # Left of 1/(n E K) and of E K/E K² all integrands are proportional to s.
    low = -LOWER_TAIL - max(np.log(n) + log_mean, log_square - log_mean)
    if kernel.support is not None:
        distance = np.linalg.norm(sobol_normal(k, 10, 0) @ head.map.T - head.query, axis=1)
        share = np.mean(distance < kernel.support * head.bandwidth)
        missed = np.exp(log_weight)[log_kernel > -np.inf].sum() < share / 2 - 0.01
        if missed or not log_mean > LEAST_LOG_MEAN:  # nodes of this shape miss the design; no key
            high = 2 * LONGEST if missed else LOWER_TAIL
            return Extent(0.0, high, 1.0)
    inside = np.isfinite(log_kernel)
    tail = max(tail, SHARPEST) if compact else tail
    high = _upper(np.exp(log_weight[inside]), log_kernel[inside], n, low, tail, compact)
    needed = 1.0
    if not compact:
        # The largest share of a node in any of the integrals: what lies outside may be left.
        share = np.max(
            [
                np.log(n) + log_weight + np.minimum(high + log_kernel, 0.0),
                log_weight + log_kernel - log_mean,
                log_weight + 2 * log_kernel - log_square,
            ],
            axis=0,
        )
        order = np.argsort(radius)[::-1]
        outside = np.cumsum(np.exp(logsumexp(share, axis=1))[order])
        needed = 1.02 * radius[order][np.argmax(outside > tail)]
    return Extent(low, high, needed)


def check_never_zero(kernel: Kernel, log_kernel: Float[np.ndarray, "*N"]) -> None:
    """Raise InputError where a kernel without a ``support`` vanishes."""
    if kernel.support is None and np.isneginf(log_kernel).any():
        allowed = "Kernel(…, support=radius) for exact theory"
        raise Uncovered("heads.kernel", f"{kernel.name}, which vanishes somewhere", allowed)


@cache
def compiled_log(kernel: Kernel) -> Callable[..., Array]:
    """``kernel.log_value`` as one program."""
    return jax.jit(kernel.log_value)


def _upper(
    measure: Float[np.ndarray, " N"],
    log_kernel: Float[np.ndarray, " N"],
    n: int,
    low: float,
    tail: float,
    compact: bool,
) -> float:
    """The log s beyond which integrands are negligible.

    Of a kernel that never vanishes all are below n² φ(s)^n, up to a shift of about 1 in log s.
    (Where the kernel falls steeply between the rough rule's nodes, E[X e^{−X}] itself would be 0
    there.) Those of a compact one end with ``φ(s)^n − P(K = 0)^n``, slowly: at large s only the
    support's edge responds.
    """
    outside = max(1 - float(measure.sum()), 0.0) if compact else 0.0
    log_empty = n * np.log(outside)
    allowed = tail * max(-np.expm1(log_empty), 1e-290) if compact else tail / n**2
    end = low + LONGEST
    for start in np.arange(low, end, 32.0):
        u = np.arange(start, min(start + 32.0, end), 0.5)
        idle = np.exp(-np.exp(np.minimum(u[:, None] + log_kernel, SATURATED))) @ measure
        log_phi = n * np.log(outside + idle)
        # A difference of exponentials that may both underflow.
        size = np.exp(log_phi) * -np.expm1(np.minimum(log_empty - log_phi, 0.0))
        dead = np.flatnonzero(size < allowed)
        if dead.size:
            return max(float(u[dead[0]]) + 1.0, low + LOWER_TAIL)
    return end
