"""The angle law of any radial kernel, fixed or adaptive, as a power series in squared cosines.

``r_hg = E[K_hK_g]/(E K_h E K_g)`` of two heads, averaged over queries x ~ N(0, κ²I), for keys
X ~ N(0, I), orthonormal frames and one rule for both heads::

    ρ(c_1, …) = Σ A_{p_1…} c_1^{2p_1} c_2^{2p_2} …,     A ≥ 0,  A_0 = 1

with c_j the cosines of the principal angles. The noise correlation of the heads is ρ(c)/ρ(1).
Derivation: ``docs/theory/angle_law.md``. First order in 1/n.

As no coefficient is negative, what is left out is bounded by what the aligned heads lack: a series
cut at degree P is too small by at most ``max|c|^{P+2} (ρ(1) − ρ_P(1))``, ρ(1) by quadrature.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln, roots_legendre

from sims.base.checks import check_non_negative
from sims.base.errors import InputError
from sims.problem import Kernel
from sims.theory.first_order.angle_nodes import AngleWeights, Nodes, angle_weights
from sims.weights import WeightRule

DEGREES = {1: 400, 2: 60}
"""Degree in the cosines at which a series is cut, by d_k, unless said otherwise."""
STEP = 0.06
"""Of the trapezoid rule over queries, in units of κ: for polynomials of degree up to 900."""
MOST = 900
"""Largest degree."""
FARTHEST = (9.0, 38.0)
"""Least and most distance of queries, in units of κ: φ(38) is the least normal number."""
NEGLIGIBLE = 34.0
"""Queries end where their part in ρ(1) is e^{−34} of the largest."""
ROUNDING = 1e-12
"""Relative error of any value in float64: measured against closed forms, 5e-14."""


class AngleSeries(NamedTuple):
    """The angle law of one rule of weights.

    Attributes:
        coefficients: A_p of ``c^{2p}``, (P/2 + 1,), or A_pq of ``c_1^{2p} c_2^{2q}``.
        aligned: ρ(1), by quadrature of E K²/(E K)²; n over the harmonic mean of n_eff.
        edge: what queries beyond the last one would add to ρ(1), at most.
    """

    coefficients: Float[np.ndarray, "..."]
    aligned: float
    edge: float

    @property
    def missing(self) -> float:
        """Part of ρ(1) that the series lacks: the sum of all coefficients left out."""
        return max(self.aligned - float(self.coefficients.sum()), 0.0)

    def overlap(self, cosines: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """ρ at cosines (…, d_k), and a bound on its error; ρ(1) itself is by quadrature."""
        squares = np.minimum(np.square(cosines), 1.0)
        order = len(self.coefficients) - 1
        powers = squares[..., None] ** np.arange(order + 1)
        values = powers[..., 0, :] @ self.coefficients
        if self.coefficients.ndim == 2:
            values = np.sum(values * powers[..., 1, :], axis=-1)
        aligned = (squares == 1).all(-1)
        values = np.where(aligned, self.aligned, values)
        truncation = np.where(aligned, 0.0, squares.max(-1) ** (order + 1) * self.missing)
        return values, truncation + self.edge + ROUNDING * values

    def correlation(self, cosines: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Noise correlation ρ(c)/ρ(1) at cosines (…, d_k), and a bound on its error."""
        value, bound = self.overlap(cosines)
        relative = self.edge / self.aligned + ROUNDING
        return value / self.aligned, bound / self.aligned + value / self.aligned * relative


def angle_series(
    rule: str | Kernel | WeightRule,
    bandwidth: float,
    query_scale: float,
    *,
    width: int = 1,
    n: int | None = None,
    degree: int | None = None,
) -> AngleSeries:
    """The series of one rule of weights.

    Args:
        rule: a radial kernel (gaussian, epanechnikov, biweight, triweight), the softmax kernel, or
            of distances α-entmax or sparsemax.
        bandwidth: b > 0; temperature s = b².
        query_scale: κ ≥ 0. The average is finite for all angles where κ ≤ 1 (compact kernels),
            κ² < t(t + 1)/2 with t = 1 + b² (gaussian), κ² < s²/2 (softmax), everywhere else.
        width: d_k, 1 or 2.
        n: number of keys, for α-entmax.
        degree: P, even: the total degree in the cosines at which the series is cut.

    Raises:
        InputError: the rule is another one, an argument is out of its range.
    """
    degree = DEGREES.get(width, 2) if degree is None else degree
    if degree % 2 or degree > MOST:
        raise InputError("degree", degree, f"an even number up to {MOST}")
    weighting = angle_weights(rule, bandwidth, width, n)
    check_non_negative("query_scale", query_scale)
    if not (query_scale <= weighting.limit if weighting.closed else query_scale < weighting.limit):
        sign = "<=" if weighting.closed else "<"
        raise InputError(
            "query_scale", query_scale, f"{sign} {weighting.limit:g}: no average beyond"
        )
    queries = _queries(weighting, query_scale, width, degree)
    nodes = weighting.nodes(query_scale * queries.distance, degree)
    coefficients = (_line if width == 1 else _plane)(nodes, queries, degree)
    return AngleSeries(coefficients, *_aligned(nodes, queries))


class Queries(NamedTuple):
    """A rule for averages over queries ``κz``, z ~ N(0, I), of what depends on |z| = R.

    Attributes:
        distance: R, (R,).
        log_weight: logarithms of the weights, which sum to 1.
    """

    distance: Float[np.ndarray, " R"]
    log_weight: Float[np.ndarray, " R"]


def _queries(weighting: AngleWeights, query_scale: float, width: int, degree: int) -> Queries:
    """Rule for queries as far out as ρ(1) needs: compact kernels weigh far ones by e^{r²/2}."""
    if query_scale == 0:
        return Queries(np.zeros(1), np.zeros(1))
    end = FARTHEST[0]
    if np.isfinite(weighting.limit):
        coarse = np.arange(0.0, FARTHEST[1] + 0.5, 0.5)
        part = weighting.nodes(query_scale * coarse, 2).log_overlap - coarse**2 / 2
        beyond = coarse[part > part.max() - NEGLIGIBLE].max() + 1
        end = float(np.clip(beyond, *FARTHEST))
    if width == 1:
        z = np.arange(0.0, end, STEP)
        weight = np.where(z > 0, 2.0, 1.0) * STEP / (2 * np.pi) ** 0.5
    else:
        # In the plane the density of |z| is odd: a trapezoid rule would not converge at 0.
        points, weight = roots_legendre(40 + int(end * degree**0.5))
        z = (points + 1) / 2 * end
        weight = weight / 2 * end * z
    return Queries(z, np.log(weight) - z**2 / 2)


def _aligned(nodes: Nodes, queries: Queries) -> tuple[float, float]:
    """ρ(1), and what lies beyond the last query: a tail that falls at least exponentially."""
    parts = np.exp(nodes.log_overlap + queries.log_weight)
    if len(parts) == 1:
        return float(parts[0]), 0.0
    fall = max(float(np.log(parts[-2] / parts[-1])), 1e-3) if parts[-1] > 0 else np.inf
    return float(parts.sum()), float(parts[-1] / fall)


def _hermite(
    x: Float[np.ndarray, "*s"], start: Float[np.ndarray, "*s"], degree: int
) -> list[Float[np.ndarray, "*s"]]:
    """``start·He_j(at)/√j!`` for j = 0 … degree."""
    values = [start, x * start]
    for j in range(1, degree):
        values.append((x * values[-1] - j**0.5 * values[-2]) / (j + 1) ** 0.5)
    return values[: degree + 1]


def _line(nodes: Nodes, queries: Queries, degree: int) -> Float[np.ndarray, " terms"]:
    """``A_p = Σ_{j+l=2p} β_jl²`` with ``β_jl = E[(a_j/a_0)(κz) He_l(z)]/√l!``, both in d_k = 1."""
    root = np.exp(queries.log_weight / 2)
    values = _hermite(nodes.first, np.broadcast_to(root[:, None], nodes.first.shape), degree)
    kernel = np.array([np.einsum("rn,rn->r", nodes.mass, row) for row in values])
    if len(root) == 1:  # at the origin alone: only l = 0
        return kernel[::2, 0] ** 2
    query = np.array(_hermite(queries.distance, root, degree))
    total = np.zeros(degree // 2 + 1)
    for parity in (0, 1):
        orders = np.arange(parity, degree + 1, 2)
        squares = (kernel[orders] @ query[orders].T) ** 2
        half = np.add.outer(orders, orders) // 2
        keep = half <= degree // 2
        np.add.at(total, half[keep], squares[keep])
    return total


def _laguerre(
    radius: Float[np.ndarray, "*s"], start: Float[np.ndarray, "*s"], order: int, count: int
) -> list[Float[np.ndarray, "*s"]]:
    """``start·(−1)^k √(k!/(k+m)!) R^m L_k^{(m)}(R²)``, R = radius, m = order, for k < count."""
    size = np.where(radius > 0, radius, 1.0)
    power = order * np.log(size) - gammaln(order + 1) / 2
    first = start * np.where((radius > 0) | (order == 0), np.exp(power), 0.0)
    values = [first, -first * (1 + order - radius**2) / (1 + order) ** 0.5]
    for k in range(1, count - 1):
        step = (2 * k + 1 + order - radius**2) * values[-1]
        before = (k * (k + order)) ** 0.5 * values[-2]
        values.append(-(step + before) / ((k + 1) * (k + 1 + order)) ** 0.5)
    return values[:count]


def _plane(nodes: Nodes, queries: Queries, degree: int) -> Float[np.ndarray, "terms terms"]:
    """The same in d_k = 2, by complex Hermite polynomials of ``(z_1 + iz_2)/√2``.

    Of degree N and angular order m they keep m under any radial kernel; real ones of degrees
    (j, N − j) are their images under :func:`_turned`.
    """
    root = np.exp(queries.log_weight / 2)
    start = np.broadcast_to(root[:, None], nodes.first.shape) * nodes.mass
    radius = np.hypot(nodes.first, nodes.across) / 2**0.5
    angle = np.arctan2(nodes.across, nodes.first)
    query_degree = 0 if len(root) == 1 else degree
    size = degree // 2 + 1
    by_order = []
    for m in range(degree + 1):
        count = (degree - m) // 2 + 1
        turn = start * np.cos(m * angle)
        kernel = np.array([v.sum(1) for v in _laguerre(radius, turn, m, count)])
        if query_degree:
            query_rows = np.array(_laguerre(queries.distance / 2**0.5, root, m, count))
        else:
            query_rows = np.ones((count, 1)) * (np.arange(count)[:, None] + m == 0)
        by_order.append(kernel @ query_rows.T)  # (k of the kernel, k' of the query)
    turned = list(map(_turned, range(degree + 1)))
    total = np.zeros((size, size))
    for first in range(degree + 1):
        for second in range(first % 2, min(degree - first, query_degree) + 1, 2):
            common = range(first % 2, min(first, second) + 1, 2)
            beta = np.array([by_order[m][(first - m) // 2, (second - m) // 2] for m in common])
            # Orders m and −m add up where `across` is even, and cancel where it is odd.
            orders = np.array(common)
            weight = np.where(orders > 0, 2.0, 1.0) * beta
            rows = turned[first][(first + orders) // 2]
            columns = turned[second][(second + orders) // 2]
            parts = (rows.T * weight) @ columns
            first_counts = np.add.outer(np.arange(first + 1), np.arange(second + 1))
            second_counts = first + second - first_counts
            even = second_counts % 2 == 0
            np.add.at(total, (first_counts[even] // 2, second_counts[even] // 2), parts[even] ** 2)
    return total


def _turned(degree: int) -> Float[np.ndarray, "terms terms"]:
    """Row p: coefficients of ``He_j(z_1)He_{N−j}(z_2)/√(j!(N−j)!)`` in the complex polynomial.

    Of powers (p, N − p), without their phases i^{N−j}: Kravchuk's functions, orthonormal, by
    ``√((j+1)(N−j)) d_{j+1} + √(j(N−j+1)) d_{j−1} = (2p − N) d_j``, an eigenvalue problem.
    """
    j = np.arange(1.0, degree + 1)
    rows = eigh_tridiagonal(np.zeros(degree + 1), (j * (degree - j + 1)) ** 0.5)[1].T
    # Beyond its last turn a function keeps its sign, which is +.
    last = degree - (np.abs(rows[:, ::-1]) > 1e-6).argmax(axis=1)
    return np.asarray(rows * np.sign(rows[np.arange(degree + 1), last])[:, None])
