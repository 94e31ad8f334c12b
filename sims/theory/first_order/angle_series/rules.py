"""What one head weighs at a query, for the angle law of any radial kernel.

A head of width d_k ∈ {1, 2} sees ``Z ~ N(0, I)`` from a query at distance r of the origin. Its
kernel is a function of the distance ‖u − Z‖ (softmax is the exception). Here expectations of the
tilted law of Z, the one with density K/E K, become sums over nodes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import roots_jacobi, roots_legendre

from sims.checks import check_count, check_positive
from sims.errors import InputError
from sims.problem import Kernel
from sims.problem.kernels import GAUSSIAN, KERNELS, SOFTMAX, STUDENT_FREEDOM, get_kernel
from sims.weights import SCORES, WeightRule
from sims.weights.entmax import Entmax
from sims.weights.sparse import TopK

COMPACT = {KERNELS["epanechnikov"]: 1.0, KERNELS["biweight"]: 2.0, KERNELS["triweight"]: 3.0}
"""Kernels (1 − u²)₊^ν by the object, with their ν."""
REACH = 9.0
"""Beyond this distance of the origin there are no keys to speak of: φ is below 1e-17 of φ(0)."""
HALVINGS = 55
"""Of a bracket in log λ, for the radius of adaptive rules."""


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


class Seer(NamedTuple):
    """One rule of weights as the angle law needs it.

    Attributes:
        nodes: of the tilted law.
        limit: κ has to be below it (or at it, if ``closed``) for averages over queries to exist.
        closed: whether κ = limit is allowed.
    """

    nodes: Rule
    limit: float
    closed: bool = False


def seer(rule: str | Kernel | WeightRule, bandwidth: float, width: int, n: int | None) -> Seer:
    """How a rule of weights sees its keys.

    Args:
        rule: the gaussian, softmax, laplace or student kernel, a compact one, or, of distances,
            α-entmax (sparsemax included) or uniform top-k.
        bandwidth: b > 0; temperature s = b². Uniform top-k does not depend on it.
        width: d_k, 1 or 2.
        n: number of keys, which sets the population radius of adaptive rules; else not used.

    Raises:
        InputError: another rule or width; b ≤ 0; an adaptive rule without n.
    """
    check_positive("bandwidth", bandwidth)
    if width not in (1, 2):
        raise InputError("width", width, "1 or 2 (angle series)")
    if isinstance(rule, WeightRule):
        return _adaptive(rule, bandwidth, width, n)
    kernel = get_kernel(rule)
    if kernel in COMPACT:
        power = COMPACT[kernel]
        # 1/E K grows like exp(r²/2 − hr), so that queries may be as wide as the keys, not wider.
        return Seer(lambda r, degree: _ball(r, np.full_like(r, bandwidth), power, width, degree),
                    1.0, closed=True)  # fmt: skip
    if kernel is GAUSSIAN:
        t = 1 + bandwidth**2
        return Seer(lambda r, degree: _normal(r / t, bandwidth**2 / t, r**2 / (t * (t + 1)),
                                              width, degree), (t * (t + 1) / 2) ** 0.5)  # fmt: skip
    if kernel is SOFTMAX:
        s = bandwidth**2
        return Seer(lambda r, degree: _normal(r / s, 1.0, (r / s) ** 2, width, degree), s / 2**0.5)
    if kernel in PROFILES:
        return Seer(
            lambda r, degree: _profile(r, PROFILES[kernel], bandwidth, width, degree), np.inf
        )
    known = [k.name for k in (*COMPACT, GAUSSIAN, SOFTMAX, *PROFILES)]
    raise InputError(
        "heads.kernel", kernel.name, f"{', '.join(known)}, or entmax, top_k of distances"
    )


def _adaptive(rule: WeightRule, bandwidth: float, width: int, n: int | None) -> Seer:
    """Rules whose radius the sample sets, at the radius of the population."""
    if n is None:
        raise InputError("n", None, f"a number of keys, for the radius of {rule.name}")
    check_count("n", n)
    if rule.scores is SCORES["distance"] and isinstance(rule.weights, Entmax):
        power = rule.weights.nu
        level = np.log(2 * bandwidth**2 * power) * power - np.log(n)
    elif rule.scores is SCORES["distance"] and isinstance(rule.weights, TopK):
        if rule.weights.weighting != "uniform":
            raise InputError("heads.kernel", rule.name, "top_k with uniform weights (angle series)")
        check_count("n", n, least=rule.weights.k + 1)  # all keys would have no edge
        power, level = 0.0, float(np.log(rule.weights.k / n))
    else:
        allowed = "a radial kernel, or entmax, sparsemax or top_k with scores: distance"
        raise InputError("heads.kernel", f"weight rule {rule.name}", allowed)

    def nodes(r: Float[np.ndarray, " R"], degree: int) -> Nodes:
        return _ball(r, _radii(r, power, level, width), power, width, degree)

    return Seer(nodes, np.inf)


def _disc(power: float, width: int, radial: int, angular: int) -> tuple[np.ndarray, ...]:
    """Nodes (along, across ≥ 0) and weights of ``∫ (1 − |t|²)^a f(t) dt`` over the unit ball."""
    if width == 1:
        along, weights = roots_jacobi(radial, power, power)
        return along, np.zeros_like(along), weights
    squares, weights = roots_jacobi(radial, power, 0.0)
    radius = np.sqrt((squares + 1) / 2)
    angle = np.pi * (np.arange(angular) + 0.5) / angular
    points = np.multiply.outer(radius, np.stack([np.cos(angle), np.sin(angle)]))
    each = np.repeat(weights / 2 ** (power + 1) * np.pi / angular, angular)
    return points[:, 0].ravel(), points[:, 1].ravel(), each


def _log_mass(r: np.ndarray, h: np.ndarray, rule: tuple[np.ndarray, ...], width: int) -> tuple:
    """Places of Z, logarithms of the parts of ``∫ (1 − t²)^a φ(u + ht) h^d dt``, and the sum's."""
    along, across, weights = rule
    first = r[:, None] + h[:, None] * along
    aside = h[:, None] * across
    log = np.log(weights) + width * np.log(h)[:, None] - (first**2 + aside**2) / 2
    log = log - width / 2 * np.log(2 * np.pi)
    top = log.max(1, keepdims=True)
    return first, aside, log, (top + np.log(np.exp(log - top).sum(1, keepdims=True)))[:, 0]


def _sizes(h: float, width: int, degree: int) -> tuple[int, int]:
    """Nodes by radius and by angle: the polynomials turn by √degree a unit of length."""
    turns = h * degree**0.5
    return 40 + int(turns if width == 1 else 0.6 * turns), 32 + int(1.5 * turns)


def _ball(r: np.ndarray, h: np.ndarray, power: float, width: int, degree: int) -> Nodes:
    """The kernel ``(1 − ‖u − z‖²/h²)₊^ν``, with a radius of its own at every distance."""
    sizes = _sizes(float(h.max()), width, degree)
    first, across, log, total = _log_mass(r, h, _disc(power, width, *sizes), width)
    square = _log_mass(r, h, _disc(2 * power, width, *sizes), width)[3]
    return Nodes(first, across, np.exp(log - total[:, None]), square - 2 * total)


def _radii(r: np.ndarray, power: float, level: float, width: int) -> np.ndarray:
    """h with ``log E (h² − D²)₊^ν = level`` at every distance, by halving a bracket in log h."""
    low = np.full_like(r, -30.0)
    # Beyond all keys by γ^{1/2ν}, the kernel is at least γ.
    beyond = np.exp(level / (2 * power)) if power else 0.0
    high = np.full_like(r, np.log(r.max() + REACH + beyond))
    rule = _disc(power, width, *_sizes(float(r.max()) + REACH, width, 64))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        mass = 2 * power * middle + _log_mass(r, np.exp(middle), rule, width)[3]
        low, high = np.where(mass < level, middle, low), np.where(mass < level, high, middle)
    return np.exp((low + high) / 2)


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
    own = -0.5 * width * np.log1p(-((1 - variance) ** 2))
    overlap = growth + own
    if width == 1:
        first = mean[:, None] + spread
        mass = np.broadcast_to(weights[keep], first.shape)
        return Nodes(first, np.zeros_like(first), mass, overlap)
    half = spread >= 0  # an even number of points: none is 0
    along, across = np.meshgrid(spread, spread[half], indexing="ij")
    mass = 2 * np.multiply.outer(weights[keep], weights[keep][half]).ravel()
    first = mean[:, None] + along.ravel()
    return Nodes(first, np.broadcast_to(across.ravel(), first.shape),
                 np.broadcast_to(mass, first.shape), overlap)  # fmt: skip


PROFILES: dict[Kernel, Callable[[np.ndarray, int], np.ndarray]] = {
    KERNELS["laplace"]: lambda distance, _: -distance,
    KERNELS["student"]: lambda distance, width: (
        -0.5 * (STUDENT_FREEDOM + width) * np.log1p(distance**2 / STUDENT_FREEDOM)
    ),
}
"""Kernels that never vanish and are smooth but at the query: ``(distance/b, d_k) -> log K``."""


def _profile(
    r: np.ndarray,
    log_kernel: Callable[[np.ndarray, int], np.ndarray],
    bandwidth: float,
    width: int,
    degree: int,
) -> Nodes:
    """Any other radial kernel: Gauss–Legendre rules by the distance from the query."""
    reach = r + REACH
    radial, angular = _sizes(float(reach.max()), width, degree)
    points, weights = roots_legendre(radial + 40)
    distance, weights = (points + 1) / 2, weights / 2
    if width == 1:
        along, across = np.concatenate([-distance, distance]), np.zeros(2 * len(distance))
        weights, distance = np.tile(weights, 2), np.tile(distance, 2)
    else:
        angle = np.pi * (np.arange(angular) + 0.5) / angular
        along, across = (np.multiply.outer(distance, f(angle)).ravel() for f in (np.cos, np.sin))
        weights = np.repeat(2 * np.pi / angular * weights * distance, angular)
        distance = np.repeat(distance, angular)
    first, aside, log, _ = _log_mass(r, reach, (along, across, weights), width)
    kernel = log_kernel(np.multiply.outer(reach, distance) / bandwidth, width)

    def total(values: np.ndarray) -> np.ndarray:
        top = values.max(1, keepdims=True)
        return top + np.log(np.exp(values - top).sum(1, keepdims=True))

    once, twice = total(log + kernel), total(log + 2 * kernel)
    return Nodes(first, aside, np.exp(log + kernel - once), (twice - 2 * once)[:, 0])
