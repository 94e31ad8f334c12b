"""Where the integrals live: the range of log s and the radius that a head's quadrature needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from sims.errors import InputError
from sims.problem.kernels import Kernel
from sims.theory.exact_law import Projection
from sims.theory.quadrature import sphere_points

DENSITY_REACH = 9.0
"""Standard deviations beyond which a Gaussian's mass (1e-18) is nothing."""
LOWER_TAIL = 12.0
"""The grid in log s starts where the integrands are e^{−12} of their scale: the leading tail is
added in closed form, and the next order is e^{−24}."""

GRADING = 4
"""Of the radii of compact kernels, see :func:`sims.theory.quadrature.ball_rule`."""
SHARPEST = 3e-9
"""Least share left outside the range of a compact kernel, whose integrands fall slowly."""

LONGEST = 1000.0
"""Longest range of log s looked at; beyond it (few keys, tiny bandwidth) one key decides."""


@dataclass(frozen=True)
class Range:
    """Extent of one head's integrals at one query.

    Attributes:
        low, high: range of log s.
        radius: of the nodes around ``Projection.centre``, in units of ``Projection.shape``.
        effective_keys: n (E K)²/E K², to pilot accuracy (about 1%).
    """

    low: float
    high: float
    radius: float
    effective_keys: float
    precision: np.ndarray
    """Gaussian fit of the region that matters: density × (1 − e^{−sK}) at typical s, (k, k) …"""
    shift: np.ndarray
    """… and precision times mean, (k,)."""


def pilot(kernel: Kernel, head: Projection, n: int, tail: float) -> Range:
    """Find the range with a rough rule whose radii are spaced evenly in log r.

    Log spacing sees every scale between 1e-8 and 1 of the design, so no bandwidth is too small.

    ``tail`` is the share of any integral that may be left outside.
    """
    k = head.rank
    if kernel.support is not None:
        return _compact(kernel, head, n, max(tail, SHARPEST))
    inverse = np.linalg.inv(head.shape)
    largest = (np.linalg.norm(head.centre) + DENSITY_REACH) * np.linalg.norm(inverse, 2)
    node, weight = _radii()
    depth, depth_weight = 10 * (node + 1), 10 * weight
    direction, area = sphere_points(k, 12)
    radius = largest * np.exp(-depth)
    xi = head.centre + radius[:, None, None] * (direction @ head.shape.T)
    log_weight = (
        -0.5 * np.sum(xi**2, axis=2) + np.log(depth_weight * radius**k)[:, None] + np.log(area)
    )
    log_kernel = _log_kernel(kernel, head, xi)
    if np.isneginf(log_kernel).any():
        allowed = "Kernel(…, support=radius) for exact theory"
        raise InputError("heads.kernel", f"{kernel.name}, which vanishes somewhere", allowed)
    log_weight = log_weight - logsumexp(log_weight)
    log_mean, log_square = (
        logsumexp(log_weight + log_kernel),
        logsumexp(log_weight + 2 * log_kernel),
    )
    low = -LOWER_TAIL - max(np.log(n) + log_mean, log_square - log_mean)
    high = _upper(log_weight.ravel(), log_kernel.ravel(), n, low, tail)
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
    needed = radius[order][np.argmax(outside > tail)]
    precision, shift = _fit(log_weight, log_kernel, log_mean, n, xi)
    return Range(
        low,
        high,
        1.02 * needed,
        float(n * np.exp(2 * log_mean - log_square)),
        precision,
        shift,
    )


@cache
def _radii() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights of the rough rule."""
    return np.polynomial.legendre.leggauss(96)


@cache
def compiled_log(kernel: Kernel) -> Callable[..., Any]:
    """``kernel.log_value`` as one program."""
    return jax.jit(kernel.log_value)


def _log_kernel(kernel: Kernel, head: Projection, xi: np.ndarray) -> np.ndarray:
    """log K at nodes (radii, directions, k)."""
    keys = np.moveaxis(xi @ head.map.T, 2, 0)
    return np.asarray(compiled_log(kernel)(head.query[:, None, None], keys, head.bandwidth))


def _fit(
    log_weight: np.ndarray, log_kernel: np.ndarray, log_mean: float, n: int, xi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Precision, and precision times mean, of the region that matters."""
    # At this s about three keys are expected to respond: where φ^n does its work.
    typical = np.log(3.0 / n) - log_mean
    part = np.exp(log_weight) * -np.expm1(-np.exp(np.minimum(typical + log_kernel, 40.0)))
    part = part / part.sum()
    mean = np.einsum("rs,rsk->k", part, xi)
    spread = np.einsum("rs,rsk,rsl->kl", part, xi - mean, xi - mean)
    precision = np.linalg.inv(spread + 1e-14 * np.eye(len(mean)))
    return precision, precision @ mean


def _compact(kernel: Kernel, head: Projection, n: int, tail: float) -> Range:
    """The same for a kernel that vanishes outside the unit ball of ``Projection.shape``.

    At large s only the support's edge responds, and slowly so: φ(s)^n falls to P(K = 0)^n, and the
    range ends where what is left, relative to 1 − P(K = 0)^n, is ``tail``.
    """
    k = head.rank
    node, weight = _radii()
    inward = (1 - node) / 2
    radius, weight = 1 - inward**GRADING, GRADING * inward ** (GRADING - 1) * weight / 2
    direction, area = sphere_points(k, 12)
    xi = head.centre + radius[:, None, None] * (direction @ head.shape.T)
    log_weight = (
        -0.5 * np.sum(xi**2, axis=2)
        - 0.5 * k * np.log(2 * np.pi)
        + np.linalg.slogdet(head.shape)[1]
        + np.log(weight * radius ** (k - 1))[:, None]
        + np.log(area)
    )
    log_kernel = _log_kernel(kernel, head, xi)
    log_mean = float(logsumexp(log_weight + log_kernel))
    if not log_mean > -600:
        # No key ever responds, to double precision.
        return Range(0.0, LOWER_TAIL, 1.0, 0.0, np.eye(k), np.zeros(k))
    log_square = float(logsumexp(log_weight + 2 * log_kernel))
    low = -LOWER_TAIL - max(np.log(n) + log_mean, log_square - log_mean)
    high = _upper_compact(log_weight.ravel(), log_kernel.ravel(), n, low, tail)
    return Range(
        low,
        high + 1.0,
        1.0,
        float(n * np.exp(2 * log_mean - log_square)),
        *_fit(log_weight, log_kernel, log_mean, n, xi),
    )


def log_range(
    log_weight: np.ndarray, log_kernel: np.ndarray, n: int, tail: float, compact: bool
) -> tuple[float, float, float]:
    """Range of log s, and effective keys, of a law of points with log weights of sum 1."""
    log_mean = float(logsumexp(log_weight + log_kernel))
    if not log_mean > -600:
        return 0.0, LOWER_TAIL, 0.0
    log_square = float(logsumexp(log_weight + 2 * log_kernel))
    low = -LOWER_TAIL - max(np.log(n) + log_mean, log_square - log_mean)
    # The range needs no more points than this.
    some = slice(None, None, max(1, len(log_weight) // 2**14))
    part = log_weight[some] - logsumexp(log_weight[some])
    upper = _upper_compact if compact else _upper
    high = upper(part, log_kernel[some], n, low, tail)
    return low, high, float(n * np.exp(2 * log_mean - log_square))


def logsumexp(values: np.ndarray, axis: int | None = None) -> Any:
    """``log Σ e^values`` (scipy's takes thirty times as long on arrays as small as these)."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(values - top), axis=axis, keepdims=True)) + top
    return np.squeeze(total, axis=axis)


def _upper_compact(
    log_weight: np.ndarray, log_values: np.ndarray, n: int, low: float, tail: float
) -> float:
    """Where what is left of φ(s)^n − P(K = 0)^n is ``tail`` of 1 − P(K = 0)^n."""
    measure = np.exp(log_weight)
    inside_only = np.isfinite(log_values)
    measure, log_values = measure[inside_only], log_values[inside_only]
    u = np.arange(low, low + LONGEST / 4, 0.5)
    # φ/P(K = 0) − 1, from the keys that are in reach and do not respond yet.
    idle = np.array([np.exp(-np.exp(np.minimum(v + log_values, 40.0))) @ measure for v in u])
    outside = max(1 - float(measure.sum()), 1e-300)
    log_empty = n * np.log(outside)
    log_phi = n * np.log(outside + idle)
    # A difference of exponentials that may both underflow.
    size = np.exp(log_phi) * -np.expm1(np.minimum(log_empty - log_phi, 0.0))
    dead = np.flatnonzero(size < tail * max(-np.expm1(log_empty), 1e-300))
    return max(float(u[dead[0]]) if dead.size else float(u[-1]), low + LOWER_TAIL)


def _upper(
    log_weight: np.ndarray, log_kernel: np.ndarray, n: int, low: float, tail: float
) -> float:
    """The log s beyond which no integrand exceeds ``tail``.

    All are below n² φ(s)^n up to a shift of about 1 in log s. (Where the kernel falls steeply
    between the rough rule's nodes, E[X e^{−X}] itself would be 0 there.)
    """
    weight = np.exp(log_weight)
    end = low + LONGEST
    for start in np.arange(low, end, 32.0):
        u = np.arange(start, min(start + 32.0, end), 0.5)
        hit = -np.expm1(-np.exp(np.minimum(u[:, None] + log_kernel, 40.0))) @ weight
        size = 2 * np.log(n) + n * np.log1p(-np.minimum(hit, 1 - 1e-15))
        dead = np.flatnonzero(size < np.log(tail))
        if dead.size:
            return max(float(u[dead[0]]) + 1.0, low + LOWER_TAIL)
    return end
