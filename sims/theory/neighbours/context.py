"""First-order errors of attention rules at many queries, numbers of keys and temperatures at once.

Keys X ~ N(0, I) in one or two dimensions, which one head sees completely; distance scores. For a
kernel of the distance r everything is a radial integral of the *shells* ``∫ f(x + ru) φ(x + ru)
du`` over the unit sphere, φ = 1, m, m². A rule's quantities depend on its radius alone, so that one
table of radii serves every n and every temperature. Derivations: docs/theory/context_length.md.
Valid where n_eff ≫ 1, with relative remainder O(1/n_eff).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import gamma

from sims.theory.first_order.ball_rules import sphere_rule
from sims.theory.first_order.tilts import about

RULES: dict[str, float] = {
    "softmax": np.inf,
    "relu gap": 0.0,
    "sparsemax": 1.0,
    "5/3-entmax": 1.5,
    "1.5-entmax": 2.0,
    "4/3-entmax": 3.0,
    "top-k": 0.0,
}
"""Rules by name, with the power ν of those that are α-entmax. Softmax of distances has the Gaussian
kernel of variance s; ``relu gap`` is ReLU of the gap to the best key, at gain 1."""
ENTMAX = tuple(name for name, nu in RULES.items() if 0 < nu < np.inf)
TAIL = 5.0
"""Standard deviations of the Gaussian kernel that have to lie within the largest radius."""
NODES = 6
"""Gauss nodes between neighbouring radii, in addition to those for the shortest wave."""
SHORT = 60.0
"""In the plane a wave with more radians than that in a shell's radius has the mean 0 and the mean
square of half its squared amplitude there; the true mean is J_0(60) = −0.09 of it at most."""
NORMAL = hermegauss(5)
"""Nodes and weights of a mean over the fluctuation of the radius of the k nearest keys."""


class Problems(NamedTuple):
    """P problems, a target and a query each; B amplitudes of every target's waves.

    Attributes:
        amplitude: (B, P, J).
        frequency: (P, J, d).
        phase: (P, J).
        queries: (P, d).
    """

    amplitude: Float[np.ndarray, "B P J"]
    frequency: Float[np.ndarray, "P J d"]
    phase: Float[np.ndarray, "P J"]
    queries: Float[np.ndarray, "P d"]

    def truth(self) -> Float[np.ndarray, "B P"]:
        """The targets at the queries."""
        angle = np.einsum("pjd,pd->pj", self.frequency, self.queries) + self.phase
        return np.einsum("bpj,pj->bp", self.amplitude, np.cos(angle))


def shells(
    problems: Problems, radii: Float[np.ndarray, " H"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, "3 B P N"]]:
    """Radii, their weights of an integral over R^d, and the shells of 1, m and m² there.

    Gauss–Legendre nodes between neighbouring radii, enough for the shortest wave. A wave counts as
    short where that of its number is in every problem: problems of like waves are cheaper together.
    """
    width = problems.queries.shape[1]
    start = np.einsum("pjd,pd->pj", problems.frequency, problems.queries) + problems.phase
    lengths = np.linalg.norm(problems.frequency, axis=2)
    parts = []
    for low, high in zip(np.concatenate([[0.0], radii[:-1]]), radii, strict=True):
        long = (lengths.min(axis=0) * high < SHORT) | (width != 2)
        highest = float(lengths[:, long].max(initial=0.0))
        nodes, weights = leggauss(NODES + int(np.ceil(0.7 * highest * (high - low))))
        radius = low + (high - low) * (nodes + 1) / 2
        weight = weights * (high - low) / 2 * radius ** (width - 1)
        around, direction_weight = sphere_rule(width, 24 + int(np.ceil(2.4 * high * (highest + 3))))
        projections = np.einsum("pjd,ad->pja", problems.frequency[:, long], around)
        toward = problems.queries @ around.T
        squared = np.sum(problems.queries**2, axis=1)[:, None]
        rest = 0.5 * np.sum(problems.amplitude[:, :, ~long] ** 2, axis=2)
        radius_moments = []
        for r in radius:
            density = np.exp(-0.5 * (squared + 2 * r * toward + r**2))
            density *= direction_weight / (2 * np.pi) ** (width / 2)
            waves = np.cos(start[:, long, None] + r * projections)
            m = np.einsum("bpj,pja->bpa", problems.amplitude[:, :, long], waves)
            density_total = density.sum(axis=1)
            mean = np.sum(density * m, axis=2)
            square = np.sum(density * m**2, axis=2)
            radius_moments.append(
                np.stack(np.broadcast_arrays(density_total, mean, square + rest * density_total))
            )
        parts.append((radius, weight, np.stack(radius_moments, axis=-1)))
    radii_parts, weight_parts, value_parts = zip(*parts, strict=True)
    values = np.concatenate(value_parts, axis=-1)
    return np.concatenate(radii_parts), np.concatenate(weight_parts), values


class Table(NamedTuple):
    """A rule's quantities over radii, by what sets the radius.

    Attributes:
        level: increasing, (P, H): ``log E K`` of α-entmax, the logarithm of the radius or of the
            Gaussian's width of fixed kernels, ``log P(D < h)`` of top-k.
        columns: of every target, ``m* − m(x)``, n times the rest of the bias, n times the signal
            variance and, of ReLU of the gap, whose radius exceeds the fixed one by d_(1), dm*/dλ (0
            elsewhere); then log r of r = n/n_eff and log P(D < h), 0 for the Gaussian kernel.
        of: the rule.
        nearest: ``E d_(1)²`` times ``n^{2/d}``, d_(1) the distance of the nearest key, (P,).
        width: d.
    """

    level: Float[np.ndarray, "P H"]
    columns: Float[np.ndarray, "6 B P H"]
    of: str
    nearest: Float[np.ndarray, " P"]
    width: int

    def errors(self, n: ArrayLike, parameter: ArrayLike, noise_sd: float | np.ndarray) -> "Errors":
        """Squared errors at any n and parameter, which are broadcast: their shape is S below.

        Args:
            n: numbers of keys.
            parameter: the temperature s, or of top-k the number k.
            noise_sd: σ, or one of every problem, (P, 1, …).
        """
        n, parameter = np.broadcast_arrays(np.asarray(n, float), np.asarray(parameter, float))
        by = self._nearest_keys if self.of == "top-k" else self._of_radius
        return by(n, parameter, noise_sd)

    def _of_radius(self, n: np.ndarray, s: np.ndarray, noise_sd: float | np.ndarray) -> "Errors":
        nu = RULES[self.of]
        if self.of in ENTMAX:
            level = nu * np.log(2 * s * nu) - np.log(n)
        else:
            level = 0.5 * np.log(s if self.of == "softmax" else 2 * s)
        limit, ratio, signal, slope, overlap, mass = self._interpolate(level)
        shape = (-1, *[1] * n.ndim)
        shift = slope * self.nearest.reshape(shape) * n ** (-2 / self.width)
        bias = limit + ratio / n + shift
        noise = noise_sd**2 * overlap / n
        variance = signal / n + noise
        return Errors(bias**2 + variance, variance, n / overlap, n * mass)

    def _nearest_keys(self, n: np.ndarray, k: np.ndarray, noise_sd: float | np.ndarray) -> "Errors":
        """Given the distance of the (k+1)-th key the k nearest are iid within it."""
        share = (k + 1) / (n + 1)
        spread = np.sqrt(share * (1 - share) / (n + 2))
        nodes, weights = NORMAL
        share = share[..., None]
        k = k[..., None]
        n = n[..., None]
        level = np.log(np.clip(share + spread[..., None] * nodes, 0.1 * share, 1.0))
        mean, _, within, _, _, _ = self._interpolate(level)
        weights = weights / weights.sum()
        bias = mean @ weights
        signal = (within / k + mean**2) @ weights - bias**2
        noise = noise_sd**2 / k[..., 0]
        count = np.broadcast_to(k[..., 0], bias.shape[1:])
        return Errors(bias**2 + signal + noise, signal + noise, count, count)

    def _interpolate(self, level: np.ndarray) -> list[np.ndarray]:
        """Limit, ratio, signal, slope (B, P, *S), overlap and mass (P, *S); NaN outside."""
        values = []
        for levels, rows in zip(self.level, np.moveaxis(self.columns, 2, 0), strict=True):
            values.append(CubicSpline(levels, rows, axis=-1, extrapolate=False)(level))
        *columns, overlap, mass = np.stack(values, axis=2)
        return [*columns, np.exp(overlap[0]), np.exp(mass[0])]


class Errors(NamedTuple):
    """First-order errors; NaN where a table does not reach.

    Attributes:
        mse: mean squared errors, (B, P, *S).
        variance: what variance is of them.
        n_eff: effective keys, (P, *S).
        attended: keys within the population's radius, (P, *S).
    """

    mse: np.ndarray
    variance: np.ndarray
    n_eff: np.ndarray
    attended: np.ndarray


def tables(problems: Problems, radii: ArrayLike) -> dict[str, Table]:
    """A table of every rule.

    Args:
        problems: targets and queries, in one or two dimensions.
        radii: increasing, (H,); those of the Gaussian kernel's width are a :data:`TAIL`-th.
    """
    radii = np.asarray(radii, float)
    radius, weight, values = shells(problems, radii)
    truth = problems.truth()[..., None]
    width = problems.queries.shape[1]
    density = np.exp(-0.5 * np.sum(problems.queries**2, axis=1)) / (2 * np.pi) ** (width / 2)
    ball_volume = np.pi ** (width / 2) / gamma(1 + width / 2)
    nearest = gamma(1 + 2 / width) * (ball_volume * density) ** (-2 / width)
    gap = radii[:, None] ** 2 - radius**2
    inside = radius < radii[:, None]

    def integrals(kernel: np.ndarray) -> np.ndarray:
        """``E K``, ``E Km`` and ``E Km²``, (3, B, P, H), of kernels given at the nodes."""
        return np.asarray(values @ (kernel * weight).T)

    def ball(power: float) -> np.ndarray:
        return integrals(np.where(inside, gap, 0.0) ** power * inside)

    flat = ball(0.0)
    none = np.zeros_like(flat[0])
    logs = np.broadcast_to(np.log(radii), none.shape[1:])
    rules = {}

    def add(
        name: str,
        level: np.ndarray,
        limit: np.ndarray,
        ratio: np.ndarray,
        signal: np.ndarray,
        overlap: np.ndarray,
        mass: np.ndarray = flat[0],
        slope: np.ndarray = none,
    ) -> None:
        columns = [limit - truth, ratio, signal, slope, np.log(overlap), np.log(mass)]
        rules[name] = Table(level, np.stack(columns), name, nearest, width)

    def fixed(
        once: np.ndarray, twice: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of a fixed radius: m*, n times the rest of the bias and the signal variance, and r."""
        limit = once[1] / once[0]
        square = once[0] ** 2
        ratio = -(twice[1] - limit * twice[0]) / square
        return limit, ratio, about(twice, limit, limit) / square, twice[0] / square

    bell = np.exp(-(radius**2) / (2 * (radii[:, None] / TAIL) ** 2))
    add("softmax", logs - np.log(TAIL), *fixed(integrals(bell), integrals(bell**2)), mass=none + 1)
    once = ball(1.0)
    gap_terms = fixed(once, ball(2.0))
    add("relu gap", logs, *gap_terms, slope=(flat[1] - gap_terms[0] * flat[0]) / once[0])
    for name in ENTMAX:  # docs/theory/first_order.md, "Adaptive radii to first order"
        nu = RULES[name]
        kernel = ball(nu)
        lower = ball(nu - 1)
        product = ball(2 * nu - 1)
        total = kernel[0]
        mean = kernel[1] / total
        low = lower[1] / lower[0]
        slope = nu * lower[0]
        twice = ball(2 * nu) / total**2
        overlap = twice[0]
        # dm°/dλ along the radii, λ = h²; the mean under ν − 1 ≥ 0 is smooth enough for a spline.
        turn = CubicSpline(np.log(radii), low, axis=-1)(np.log(radii), 1) / (2 * radii**2)
        ratio = -nu * (product[1] - low * product[0]) / (total * slope)
        ratio = ratio + 0.5 * total * (overlap - 1) / slope * turn
        signal = about(twice, low, low) - (low - mean) ** 2
        add(name, np.log(total[0]), mean, ratio, signal, overlap)
    mean = flat[1] / flat[0]
    add("top-k", np.log(flat[0, 0]), mean, none, about(flat, mean, mean) / flat[0], 1 / flat[0])
    return rules
