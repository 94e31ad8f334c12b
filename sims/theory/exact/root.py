"""Expectations at the root of a random sum: exact integrals for α-entmax of distances.

λ̂ is the only root of the rising sum ``Σ_i K_i(λ) = c``, ``K = (λ − D²)₊^ν``. For any H

    E H(λ̂) = ∫ dλ E[ Σ_i K_i'(λ) δ(Σ_i K_i(λ) − c) H(λ) ],     δ(y) = ∫ e^{iωy} dω/2π

(Kac–Rice, without a modulus since the slope is positive), and for given λ and ω keys are
independent. A product of sums over keys splits into set partitions: keys of one block coincide, so
b blocks count ``n(n−1)…(n−b+1)`` times the blocks' means times ``φ^{n−b}``, ``φ = E e^{iωK}``. Two
heads have two λ and two ω. H = 1 has to give 1: the *defect*.

Everything is scaled by λ^ν, so that ``κ = (1 − v)^ν`` with ``v = D²/λ``, and λ runs in its
logarithm. Derivation: docs/theory/adaptive_kernels.md, "Exact at every n".
"""

import operator
from collections.abc import Callable
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Complex, Float
from scipy.optimize import brentq
from scipy.special import erfc

from sims.theory.exact.pairs import Pair
from sims.theory.exact.tables import COARSE, FARTHEST, TAPER, Level, Table
from sims.theory.first_order.adaptive import Head, ProjectedDesign, Single
from sims.theory.first_order.ball_rules import sphere_rule

Part = tuple[int, ...]
"""Name of a part of :class:`Side`."""
Factor = tuple[int, ...]
"""A function of one key, of each head: (present, power of κ', of κ, of m)."""
REST = (0, 0, 0)
NONE, ONE, SLOPE, KERNEL, MEAN = (
    (0, 0, 0, 0),
    (1, 0, 0, 0),
    (1, 1, 0, 0),
    (1, 0, 1, 0),
    (1, 0, 1, 1),
)


class Side(NamedTuple):
    """Part of a head in the integrals at one λ: nodes in v times frequencies.

    Attributes:
        places: v·λ, the squared distances of the nodes.
        scale: λ^ν/c.
        measure: weights of ω, in units of λ^{−ν}, over 2π and times ``e^{−iωc}``, and dλ's.
        parts: the nodes' weights times ``e^{iωκ} − 1``, by (0, 0, 0), and times ``e^{iωκ} κ'^i
            κ^j``, by (1, i, j).
    """

    places: Float[np.ndarray, " R"]
    scale: float
    measure: Complex[np.ndarray, " W"]
    parts: dict[Part, Complex[np.ndarray, "W R"]]


class Root(NamedTuple):
    """A head with what first order says of it, and the number of keys.

    Attributes:
        head: where it looks from, and its power.
        first: its first-order quantities, around which integrals are arranged.
        n: number of keys.
    """

    head: Head
    first: Single
    n: int

    @property
    def constant(self) -> float:
        """c, the denominator of the estimate."""
        return self.n * self.head.mean_kernel

    def grid(self, level: Level) -> Float[np.ndarray, " L"]:
        """λ at which the integral's trapezoid rule is taken, equidistant in the logarithm.

        Beyond its ends λ̂ lies with probability below ``exp(−½ reach²)``.
        """
        centre = float(np.log(self.first.square))
        ends: list[float] = []
        for sign in (-1.0, 1.0):

            def beyond(log_square: float, sign: float = sign) -> float:
                return sign * self._tail_distance(log_square) - level.reach

            far = centre + sign
            while beyond(far) < 0:
                far += sign
            ends.append(float(brentq(beyond, centre, far, rtol=1e-3)))
        width = level.step * self.first.spread / (self.first.square * self.n**0.5)
        return np.exp(np.linspace(ends[0], ends[1], int(np.ceil((ends[1] - ends[0]) / width)) + 1))

    def nodes(self, square: float, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """cos θ and sin θ of the nodes at radii ``√λ sin θ``, and their weights in the ball.

        Half-integer powers of ``1 − v = cos²θ`` are smooth in θ, too.
        """
        width = len(self.head.query)
        nodes, weights = np.polynomial.legendre.leggauss(count)
        theta = np.pi / 4 * (nodes + 1)
        sine, cosine = np.sin(theta), np.cos(theta)
        return (
            cosine,
            sine,
            np.pi / 4 * weights * square ** (width / 2) * sine ** (width - 1) * cosine,
        )

    def _tail_distance(self, log_square: float) -> float:
        """Signed distance of c in the tail of the law of Σ_i K_i(λ): below 0 where c is too large.

        By Chernoff's bound a tail is below ``exp(−½ of its square)``.
        """
        square = float(np.exp(log_square))
        cosine, sine, node_weights = self.nodes(square, COARSE[0])
        directions, weights = sphere_rule(len(self.head.query), COARSE[1])
        points = self.head.query + square**0.5 * sine[:, None, None] * directions
        density = self.head.seen.density(points.reshape(-1, points.shape[-1])).reshape(
            points.shape[:2]
        )
        mass = node_weights * (density @ weights)
        kappa = cosine ** (2 * self.head.power)
        target = self.constant / square**self.head.power / self.n
        if target >= 1:  # κ ≤ 1
            return -np.inf

        def slope(t: float) -> float:
            tilted = mass * np.exp(t * kappa)
            return target - float(tilted @ kappa) / (1 + float(mass @ np.expm1(t * kappa)))

        sign = -1.0 if slope(0.0) < 0 else 1.0
        far = sign
        while slope(far) * sign > 0 and abs(far) < FARTHEST:
            far *= 2
        if abs(far) >= FARTHEST:
            return -sign * np.inf
        t = brentq(slope, 0.0, far)
        rate = self.n * (t * target - np.log1p(float(mass @ np.expm1(t * kappa))))
        return -sign * (2 * max(rate, 0.0)) ** 0.5

    def side(self, square: float, dlog: float, level: Level, half: bool) -> Side:
        """Nodes and frequencies at λ = ``square``; ω ≥ 0 alone if ``half``."""
        head = self.head
        cosine, sine, node_weights = self.nodes(square, level.radial)
        kappa = cosine ** (2 * head.power)
        slope = head.power * cosine ** (2 * head.power - 2)
        power = square**head.power
        reach = level.reach
        mean = self.n * head.mass(square, head.power) / power
        variance = self.n * head.mass(square, 2 * head.power) / power**2
        # Steps in ω repeat the law of the sum: c must not be met again on either side of it.
        above = reach**2 / 6 + (reach**4 / 36 + reach**2 * variance) ** 0.5
        gap = self.constant / power - mean
        period = max(min(1.1 * self.constant / power, gap + reach * variance**0.5), above - gap)
        step = 2 * np.pi / period
        count = int(np.ceil(level.cut / variance**0.5 / step))
        frequency = step * np.arange(0 if half else -count, count + 1)
        phase = np.exp(-1j * frequency * self.constant / power)
        taper = 0.5 * erfc((np.abs(frequency) / (level.cut * variance**-0.5) - TAPER[0]) * TAPER[1])
        measure = step / (2 * np.pi) * dlog * taper * phase
        if half:  # the other half is the complex conjugate
            measure[1:] *= 2
        angle = 1j * frequency[:, None] * kappa
        wave = node_weights * np.exp(angle)
        parts: dict[Part, np.ndarray] = {REST: node_weights * np.expm1(angle)}
        for i, j in ((0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2)):
            parts[1, i, j] = wave * slope**i * kappa**j
        return Side(square * sine**2, power / self.constant, measure, parts)


def falling(
    n: int, phi: Complex[np.ndarray, "..."], measure: Complex[np.ndarray, "..."]
) -> list[Complex[np.ndarray, "..."]]:
    """``n(n−1)…(n−b+1) φ^{n−b}`` times the measure, for b = 1 … 4 blocks of keys that coincide."""
    log = np.log(np.maximum(np.abs(phi), 1e-300)) + 1j * np.angle(phi)
    counts = np.cumprod(n - np.arange(4.0))
    return [count * measure * np.exp((n - b) * log) for b, count in enumerate(counts, 1)]


def part_of(block: Factor) -> Part:
    """The part of a side that factors of one head take of a key."""
    return block[0] > 0, *block[1:3]


@cache
def partitions(factors: tuple[Factor, ...]) -> list[tuple[Factor, ...]]:
    """Set partitions of factors: their blocks, each the sum of its factors."""
    if not factors:
        return [()]
    first, *others = factors
    found = []
    for blocks in partitions(tuple(others)):
        found.append((first, *blocks))
        for place, block in enumerate(blocks):
            joined = tuple(map(operator.add, first, block))
            found.append((*blocks[:place], joined, *blocks[place + 1 :]))
    return found


def expected(
    powers: list[np.ndarray], mean: Callable[[Factor], np.ndarray], *factors: Factor
) -> float:
    """The integrand of a product of sums over keys, from the mean of each block and ``falling``."""
    sums: list[Any] = [0.0] * len(factors)
    for blocks in partitions(factors):
        sums[len(blocks) - 1] = sums[len(blocks) - 1] + reduce(operator.mul, map(mean, blocks))
    total = 0.0
    for power, values in zip(powers, sums, strict=False):
        total += float(np.sum(power * values).real)
    return total


class Expectations(NamedTuple):
    """Expectations for a head, or for a pair of heads g, h; m_h is about its limit m*_h.

    Attributes:
        total: total of 1, which is 1 but for the defect.
        product: ``E Σ_i w_hi m_hi Σ_j w_gj m_gj``, g = h for a head.
        noise: ``E Σ_i w_hi w_gi``.
        mean: of a head, as all that follow: ``E Σ_i w_i m_i``.
        attended: expected number of keys attended to.
        root: ``E λ̂^½``.
        root_square: ``E λ̂``.
    """

    total: float
    product: float
    noise: float
    mean: float = 0.0
    attended: float = 0.0
    root: float = 0.0
    root_square: float = 0.0

    @property
    def variance(self) -> float:
        """Variance of ``Σ_i w_i m_i``."""
        return self.product - self.mean**2

    @property
    def defect(self) -> float:
        """Distance of the total from 1."""
        return abs(self.total - 1)

    def terms(self, error: "Expectations", means: float, scale: float) -> tuple[Pair, Pair]:
        """Signal, noise and defect, and the errors of the first two, which the defect adds to.

        Args:
            error: the errors.
            means: product of the means.
            scale: of the signal.
        """
        signal = error.product + 2 * abs(self.mean) * error.mean + self.defect * scale
        noise = error.noise + self.defect * abs(self.noise)
        return Pair(self.product - means, self.noise, self.defect), Pair(signal, noise, 0.0)


def sums_over_nodes(side: Side, table: Table) -> dict[Part, Complex[np.ndarray, "W F"]]:
    """Every part of a side, summed over its nodes with the densities of a table."""
    values = table.basis(0, side.places) @ table.series
    return {name: part @ values for name, part in side.parts.items()}


def one_head(root: Root, level: Level) -> Expectations:
    """Expectations of a head at one level of refinement."""
    head = root.head
    n = root.n
    grid = root.grid(level)
    table = Table.tabulate(head.seen, [head], [root.first.limit], (float(grid[-1]),), level)
    dlog = float(np.log(grid[1] / grid[0]))
    total = np.zeros(7)
    for square in grid:
        side = root.side(float(square), dlog, level, half=True)
        sums_of = sums_over_nodes(side, table)

        def mean(block: Factor, sums_of: dict[Part, np.ndarray] = sums_of) -> np.ndarray:
            return sums_of[part_of(block)][:, (0, 1, 3)[block[3]]]

        powers = falling(n, 1 + mean(NONE), side.measure)
        once = expected(powers, mean, SLOPE)
        total += (
            once,
            side.scale**2 * expected(powers, mean, SLOPE, MEAN, MEAN),
            side.scale**2 * expected(powers, mean, SLOPE, (1, 0, 2, 0)),
            side.scale * expected(powers, mean, SLOPE, MEAN),
            expected(powers, mean, SLOPE, ONE),
            once * square**0.5,
            once * square,
        )
    return Expectations(*map(float, total))


Weighed = tuple[Side, dict[Part, np.ndarray], np.ndarray]
"""A side, its sums over nodes, and the joint table's basis at its places."""


def two_heads(
    roots: tuple[Root, Root], joint_design: ProjectedDesign, level: Level
) -> Expectations:
    """Expectations of a pair at one level; in ``joint_design`` h's coordinates are first."""
    n = roots[0].n
    heads = [root.head for root in roots]
    grids = [root.grid(level) for root in roots]
    limits = (float(grids[0][-1]), float(grids[1][-1]))
    centres = [root.first.limit for root in roots]
    joint = Table.tabulate(joint_design, heads, centres, limits, level)
    sides: tuple[list[Weighed], list[Weighed]] = ([], [])
    for k, root in enumerate(roots):
        table = Table.tabulate(root.head.seen, [root.head], [centres[k]], (limits[k],), level)
        dlog = float(np.log(grids[k][1] / grids[k][0]))
        for square in grids[k]:
            side = root.side(float(square), dlog, level, half=k == 0)
            sums = sums_over_nodes(side, table)
            sides[k].append((side, sums, joint.basis(k, side.places)))
    total = np.zeros(3)
    for first, first_sums, first_basis in sides[0]:
        near = np.einsum("rm,mkf->rkf", first_basis, joint.series)
        for second, second_sums, second_basis in sides[1]:
            values = np.einsum("rkf,sk->frs", near, second_basis)
            total += pair_integrand(n, (first, second), (first_sums, second_sums), values)
    return Expectations(*map(float, total))


def pair_integrand(
    n: int,
    sides: tuple[Side, Side],
    head_sums: tuple[dict[Part, np.ndarray], dict[Part, np.ndarray]],
    values: Float[np.ndarray, "4 R S"],
) -> Float[np.ndarray, "3"]:
    """The integrand at one pair (λ_h, λ_g), summed over frequencies.

    Args:
        n: number of keys.
        sides: sides of h and g.
        head_sums: sums over the parts of each head.
        values: densities of two nodes, times 1, m_h, m_g and m_hm_g.
    """
    first, second = sides
    first_sums, second_sums = head_sums

    @cache
    def first_product(part: Part, f: int) -> np.ndarray:
        return first.parts[part] @ values[f]

    @cache
    def mean(block: Factor) -> np.ndarray:
        part = part_of(block[:4])
        other = part_of(block[4:])
        # One small product after another: larger ones BLAS would spread over threads.
        found = first_product(part, block[3] + 2 * block[7]) @ second.parts[other].T
        if other == REST:
            found = found + first_sums[part][:, None, block[3]]
        if part == REST:
            found = found + second_sums[other][:, block[7]]
        return found

    powers = falling(n, 1 + mean(NONE + NONE), first.measure[:, None] * second.measure)
    slopes = SLOPE + NONE, NONE + SLOPE
    scale = first.scale * second.scale
    return np.array(
        [
            expected(powers, mean, *slopes),
            scale * expected(powers, mean, *slopes, MEAN + NONE, NONE + MEAN),
            scale * expected(powers, mean, *slopes, KERNEL + KERNEL),
        ]
    )
