"""Weights of a head at a query, for the angle law of any radial kernel.

A head of width d_k ∈ {1, 2} sees ``Z ~ N(0, I)`` from a query at distance r of the origin. Its
kernel is a function of the distance ‖u − Z‖ (softmax is the exception). Here expectations of the
tilted law of Z, the one with density K/E K, become sums over nodes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import elementwise
from scipy.special import logsumexp

from sims.base.checks import check_positive
from sims.base.errors import InputError
from sims.problem import Kernel
from sims.problem.kernels import GaussianKernel, SoftmaxKernel, get_kernel
from sims.theory.first_order.ball_rules import ball_rule
from sims.weights import SCORES, WeightRule
from sims.weights.entmax import Entmax

REACH = 9.0
"""Beyond this distance of the origin there are no keys to speak of: φ is below 1e-17 of φ(0)."""


class Nodes(NamedTuple):
    """The tilted law of Z at R distances of the query, which lies on the first axis.

    Attributes:
        first: Z along the query, (R, N).
        across: Z across it, ≥ 0, (R, N); zeros if d_k = 1. The law is even in it.
        mass: probabilities, (R, N), rows of sum 1.
        log_overlap: ``log(E K²/(E K)²)``, (R,).
    """

    first: Float[np.ndarray, "R N"]
    across: Float[np.ndarray, "R N"]
    mass: Float[np.ndarray, "R N"]
    log_overlap: Float[np.ndarray, " R"]


Rule = Callable[[Float[np.ndarray, " R"], int], Nodes]
"""``(distances of the query, degree) -> nodes`` good for polynomials of that degree."""


class AngleWeights(NamedTuple):
    """Rule of weights as the angle law needs it.

    Attributes:
        nodes: nodes of the tilted law.
        limit: κ has to be below it (or at it, if ``closed``) for averages over queries to exist.
        closed: whether κ = limit is allowed.
    """

    nodes: Rule
    limit: float
    closed: bool = False


def angle_weights(
    rule: str | Kernel | WeightRule, bandwidth: float, width: int, n: int | None
) -> AngleWeights:
    """Nodes of a rule of weights and the range of its averages over queries.

    Args:
        rule: the gaussian or the softmax kernel, a compact one, or α-entmax of distances
            (sparsemax included).
        bandwidth: b > 0; temperature s = b².
        width: d_k, 1 or 2.
        n: number of keys, which sets the population radius of α-entmax; else not used.

    Raises:
        InputError: another rule or width; b ≤ 0; α-entmax without n.
    """
    check_positive("bandwidth", bandwidth)
    if width not in (1, 2):
        raise InputError("width", width, "1 or 2 (angle series)")
    if isinstance(rule, WeightRule):
        return _entmax_weights(rule, bandwidth, width, n)
    t = 1 + bandwidth**2
    s = bandwidth**2
    match get_kernel(rule):
        case Kernel(power=int(power)):
            # 1/E K grows like exp(r²/2 − hr): queries may be as wide as the keys, not wider.
            return AngleWeights(
                lambda r, degree: _ball(r, np.full_like(r, bandwidth), power, width, degree),
                1.0,
                closed=True,
            )
        case GaussianKernel():
            return AngleWeights(
                lambda r, degree: _normal(r / t, s / t, r**2 / (t * (t + 1)), width, degree),
                (t * (t + 1) / 2) ** 0.5,
            )
        case SoftmaxKernel():
            return AngleWeights(
                lambda r, degree: _normal(r / s, 1.0, (r / s) ** 2, width, degree), s / 2**0.5
            )
        case other:
            allowed = "epanechnikov, biweight, triweight, gaussian, softmax, or entmax of distances"
            raise InputError("heads.kernel", other.name, allowed)


def _entmax_weights(rule: WeightRule, bandwidth: float, width: int, n: int | None) -> AngleWeights:
    if rule.scores is not SCORES["distance"] or not isinstance(rule.weights, Entmax):
        allowed = "a radial kernel, or entmax or sparsemax with scores: distance"
        raise InputError("heads.kernel", f"weight rule {rule.name}", allowed)
    if n is None:
        raise InputError("n", None, f"a number of keys, for the radius of {rule.name}")
    nu = rule.weights.nu
    level = np.log(2 * bandwidth**2 * nu) * nu - np.log(n)
    return AngleWeights(
        lambda r, degree: _ball(r, _radii(r, nu, level, width), nu, width, degree), np.inf
    )


def _log_mass(
    r: np.ndarray, h: np.ndarray, power: float, width: int, sizes: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Places of Z, logarithms of the parts of ``∫ (1 − t²)^a φ(u + ht) h^d dt``, and the sum's."""
    points, weights = ball_rule(width, power, *sizes)
    if width == 2:  # all is even across the query
        upper = points[:, 1] > 0
        points = points[upper]
        weights = 2 * weights[upper]
    first = r[:, None] + h[:, None] * points[:, 0]
    aside = h[:, None] * (points[:, 1] if width == 2 else np.zeros(len(points)))
    log = np.log(weights) + width * np.log(h)[:, None] - (first**2 + aside**2) / 2
    log = log - width / 2 * np.log(2 * np.pi)
    return first, aside, log, logsumexp(log, axis=1)


def _sizes(h: float, width: int, degree: int) -> tuple[int, int]:
    """Nodes by radius and by angle: the polynomials turn by √degree a unit of length."""
    turns = h * degree**0.5
    return 40 + int(turns if width == 1 else 0.6 * turns), 64 + 2 * int(1.5 * turns)


def _ball(r: np.ndarray, h: np.ndarray, power: float, width: int, degree: int) -> Nodes:
    """The kernel ``(1 − ‖u − z‖²/h²)₊^ν``, with a radius of its own at every distance."""
    sizes = _sizes(float(h.max()), width, degree)
    first, across, log, total = _log_mass(r, h, power, width, sizes)
    square = _log_mass(r, h, 2 * power, width, sizes)[3]
    return Nodes(first, across, np.exp(log - total[:, None]), square - 2 * total)


def _radii(r: np.ndarray, power: float, level: float, width: int) -> np.ndarray:
    """h with ``log E (h² − D²)₊^ν = level`` at every distance."""
    sizes = _sizes(float(r.max()) + REACH, width, 64)

    def excess(log_h: np.ndarray, r: np.ndarray) -> np.ndarray:
        mass = _log_mass(r, np.exp(log_h), power, width, sizes)[3]
        return np.asarray(2 * power * log_h + mass - level)

    # Beyond all keys by γ^{1/2ν}, the kernel is at least γ.
    upper = np.log(r.max() + REACH + np.exp(level / (2 * power)))
    return np.exp(elementwise.find_root(excess, (-30.0, upper), args=(r,)).x)


def _normal(
    mean: np.ndarray, variance: float, growth: np.ndarray, width: int, degree: int
) -> Nodes:
    """Kernels under which Z stays normal: its mean along the query, and its variance.

    Their overlap is ``exp(growth)`` times that of d_k centred coordinates.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(24 + degree // 2)
    weights = weights / weights.sum()
    keep = weights > 0
    spread = variance**0.5 * points[keep]
    # r(u, u) at u = 0 of one coordinate: 1/√(1 − (1 − τ²)²) with τ² the tilted variance.
    diagonal = -0.5 * width * np.log1p(-((1 - variance) ** 2))
    overlap = growth + diagonal
    if width == 1:
        first = mean[:, None] + spread
        mass = np.broadcast_to(weights[keep], first.shape)
        return Nodes(first, np.zeros_like(first), mass, overlap)
    half = spread >= 0  # an even number of points: none is 0
    first_axis, second_axis = np.meshgrid(spread, spread[half], indexing="ij")
    mass = 2 * np.multiply.outer(weights[keep], weights[keep][half]).ravel()
    first = mean[:, None] + first_axis.ravel()
    return Nodes(
        first,
        np.broadcast_to(second_axis.ravel(), first.shape),
        np.broadcast_to(mass, first.shape),
        overlap,
    )
