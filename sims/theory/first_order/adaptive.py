"""First order in 1/n for α-entmax of distances: compact kernels whose radius the sample sets.

The weights are ``(λ − D_i²)₊^ν/c`` with the constant ``c = (2sν)^ν`` and λ, the squared radius, the
root of ``Σ_i (λ − D_i²)₊^ν = c``; D_i is the distance of the projected query and key. Derivation:
``docs/theory/first_order.md``, "Adaptive radii to first order". Valid where many keys are attended
to, n_eff ≫ 1, with relative remainder O(1/n_eff).

Designs: Gaussian, any Σ ⪰ 0 that the heads see as positive definite. Targets: trigonometric series.
Heads: d_k of 1 or 2, ν ≥ 1. All integrals run over a ball, or over the product of two, where their
integrands are smooth but for the factor (1 − u²)^a: Gauss–Jacobi rules take it as their weight.
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from sims.base.errors import InputError
from sims.problem import Heads, Task, TrigonometricSeries, check_compatible
from sims.problem.design_laws import GaussianDesign
from sims.theory import rounding
from sims.theory.coverage import check_radii
from sims.theory.first_order.ball_rules import (
    ANGULAR,
    RADIAL,
    ball_rule,
    product_points,
    sphere_rule,
)
from sims.theory.first_order.closed_forms import labelled
from sims.theory.first_order.tilts import Tilt, about, tilted_moments

PAIRED = (12, 16)
"""The same for each of two heads with d_k = 2, whose product rule has (12 · 16)² nodes."""
STEP = 1e-3
"""Relative step of the derivative in λ; its error is the fourth power of that."""


class ProjectedDesign(NamedTuple):
    """Projection of a Gaussian design on frames of heads: ``t = VᵀX ~ N(0, S)``, and X given t.

    Attributes:
        precision: S⁻¹.
        log_norm: −½ log det 2πS.
        gain: ``ΣVS⁻¹``, by which ``E[X | t]`` follows t.
        rest: the covariance of X given t.
    """

    precision: Float[np.ndarray, "k k"]
    log_norm: float
    gain: Float[np.ndarray, "d k"]
    rest: Float[np.ndarray, "d d"]

    @classmethod
    def from_frame(
        cls, sigma: Float[np.ndarray, "d d"], frame: Float[np.ndarray, "d k"]
    ) -> "ProjectedDesign":
        """The projection; an InputError where S is singular (aligned heads, say)."""
        spread = sigma @ frame
        seen = frame.T @ spread
        if np.linalg.cond(seen) > 1e10:
            allowed = "heads that see linearly independent parts of the design (adaptive radii)"
            raise InputError("heads.frames", "a singular projection of the design", allowed)
        gain = np.linalg.solve(seen, spread.T).T
        log_norm = -0.5 * np.linalg.slogdet(2 * np.pi * seen)[1]
        return cls(np.linalg.inv(seen), float(log_norm), gain, sigma - gain @ spread.T)

    def density(self, t: Float[np.ndarray, "N k"]) -> Float[np.ndarray, " N"]:
        """Density of the projected points."""
        return np.exp(self.log_norm - 0.5 * np.einsum("ni,ij,nj->n", t, self.precision, t))

    def moments(
        self, target: TrigonometricSeries, t: Float[np.ndarray, "N k"]
    ) -> Float[np.ndarray, "3 N"]:
        """Density of t, times 1, E[m | t] and E[m² | t]."""
        density = self.density(t)
        mean, square = tilted_moments(target, Tilt(np.zeros(len(t)), t @ self.gain.T, self.rest))
        return density * np.stack([np.ones(len(t)), mean, square])


def shell(
    seen: ProjectedDesign,
    query: Float[np.ndarray, " k"],
    target: TrigonometricSeries,
    square: float,
) -> Float[np.ndarray, "3"]:
    """The density of D² at λ, times 1, and the means of m and m² on the sphere D² = λ."""
    around, weights = sphere_rule(len(query), 2 * ANGULAR)
    values = seen.moments(target, query + square**0.5 * around) @ weights
    return square ** (len(query) / 2 - 1) / 2 * values


def slope_of(function: Callable[[float], float], x: float) -> float:
    """The derivative at a positive place, by central differences of fourth order."""
    near = function(x * (1 + STEP)) - function(x * (1 - STEP))
    far = function(x * (1 + 2 * STEP)) - function(x * (1 - 2 * STEP))
    return (8 * near - far) / (12 * STEP * x)


def rising_root(function: Callable[[float], float], start: float) -> float:
    """The root of a rising function, by unit steps from ``start`` and Brent."""
    low = high = start
    while function(low) > 0:
        low -= 1.0
    while function(high) < 0:
        high += 1.0
    return float(brentq(function, low, high, xtol=1e-13))


class Head(NamedTuple):
    """A head at a query: projected design, projected query, power, and γ = c/n."""

    seen: ProjectedDesign
    query: Float[np.ndarray, " k"]
    power: float
    target: TrigonometricSeries
    mean_kernel: float

    def integral(self, square: float, power: float) -> Float[np.ndarray, "3"]:
        """``E (λ − D²)₊^a φ`` for φ = 1, m, m²."""
        nodes, weights = ball_rule(len(self.query), power)
        values = self.seen.moments(self.target, self.query + square**0.5 * nodes)
        return square ** (power + len(self.query) / 2) * values @ weights

    def mass(self, square: float, power: float) -> float:
        """``E (λ − D²)₊^a`` alone."""
        nodes, weights = ball_rule(len(self.query), power)
        density = self.seen.density(self.query + square**0.5 * nodes)
        return float(square ** (power + len(self.query) / 2) * density @ weights)

    def radius(self) -> float:
        """λ*: the root of ``E (λ − D²)₊^ν = γ``, which rises in λ."""

        def excess(log_square: float) -> float:
            mass = max(self.mass(float(np.exp(log_square)), self.power), 1e-300)
            return float(np.log(mass / self.mean_kernel))

        return float(np.exp(rising_root(excess, np.log(self.mean_kernel) / self.power)))


class Single(NamedTuple):
    """First-order quantities of one head at one query; 1/n taken out where it is said.

    Attributes:
        square: λ*, the squared radius as n → ∞ at this γ = c/n.
        limit: ``m* = E[Km]/γ``.
        lower: ``m° = E[K'm]/E[K']``, K' = ∂K/∂λ: the mean under the power ν − 1.
        bias: n times ``E f̂ − m*``.
        signal: n times the signal variance.
        overlap: ``r = E K²/γ²``.
        third: ``E K³/γ³``.
        mass: ``P(D < h)``.
        spread: √n sd(λ̂).
        constant: expected number of attended keys minus ``n P(D < h)``.
    """

    square: float
    limit: float
    lower: float
    bias: float
    signal: float
    overlap: float
    third: float
    mass: float
    spread: float
    constant: float


def single(head: Head) -> Single:
    """Quantities of a single head: docs/theory/first_order.md, "Adaptive radii to first order"."""
    nu = head.power
    gamma = head.mean_kernel
    square = head.radius()

    def lower_mean(radius_square: float) -> float:
        total, mean, _ = head.integral(radius_square, nu - 1)
        return float(mean / total)

    limit = float(head.integral(square, nu)[1]) / gamma
    slope = nu * head.mass(square, nu - 1)
    lower = lower_mean(square)
    product = nu * head.integral(square, 2 * nu - 1)
    twice = head.integral(square, 2 * nu) / gamma**2
    overlap = float(twice[0])

    def edge(radius_square: float) -> float:
        return shell(head.seen, head.query, head.target, radius_square)[0] / (
            nu * head.mass(radius_square, nu - 1)
        )

    turn = slope_of(lower_mean, square)
    variance = gamma**2 * (overlap - 1)
    return Single(
        square,
        limit,
        lower,
        float(-(product[1] - lower * product[0]) / (gamma * slope))
        + 0.5 * variance / (gamma * slope) * turn,
        float(about(twice, lower, lower)) - (lower - limit) ** 2,
        overlap,
        head.mass(square, 3 * nu) / gamma**3,
        head.mass(square, 0.0),
        max(variance, 0.0) ** 0.5 / slope,
        float(edge(square) * product[0] + 0.5 * variance * slope_of(edge, square)) / slope,
    )


def fixed_radius(head: Head) -> Single:
    """The quantities of a head whose radius is fixed at √λ*, as a compact kernel has it.

    Its weights are ``K/ΣK``; to first order m* takes the place of m°, and nothing is shared by way
    of the radius.
    """
    free = single(head)
    twice = head.integral(free.square, 2 * head.power) / head.mean_kernel**2
    limit = free.limit
    return free._replace(
        lower=limit,
        bias=float(limit * free.overlap - twice[1]),
        signal=float(about(twice, limit, limit)),
        spread=0.0,
        constant=0.0,
    )


def pair_terms(
    heads: tuple[Head, Head], singles: tuple[Single, Single], joint_design: ProjectedDesign
) -> tuple[float, float]:
    """``r_hg``, and n times the signal covariance of two heads with that ``joint_design``."""
    places = []
    weights = []
    for head, facts in zip(heads, singles, strict=True):
        width = len(head.query)
        sizes = PAIRED if width == 2 else (RADIAL, ANGULAR)
        nodes, node_weights = ball_rule(width, head.power, *sizes)
        places.append(head.query + facts.square**0.5 * nodes)
        weights.append(facts.square ** (head.power + width / 2) * node_weights)
    moments = joint_design.moments(heads[0].target, product_points(*places))
    moments = moments.reshape(3, *map(len, places))
    first, second = singles
    scale = heads[0].mean_kernel * heads[1].mean_kernel
    shared = weights[0] @ moments @ weights[1] / scale
    signal = about(shared, first.lower, second.lower)
    radii = (first.lower - first.limit) * (second.lower - second.limit)
    return float(shared[0]), float(signal - radii)


def adaptive_terms(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    hold: bool = False,
) -> xr.Dataset:
    """The first-order prediction of α-entmax heads with distance scores, as a labelled result.

    Args:
        task: task with a Gaussian design.
        heads: d_k of 1 or 2, α-entmax (sparsemax included) of distances, ν from 1 to 50.
        n: number of keys, ≥ 1.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.
        hold: hold every radius at its limit, :func:`fixed_radius`.

    Returns:
        The dataset of :func:`~.closed_forms.first_order_terms`, with m* (``limit``) and the radius
        as n → ∞ at this temperature and n, its standard deviation ``radius_sd``, the expected
        number of keys within that radius, ``attended``, and within the sample's own,
        ``expected_attended``, each (query, head).

    Raises:
        InputError: another weight rule, design or width; a singular projection; parts of the
            problem do not fit together, or float64 cannot hold it.
    """
    points = np.asarray(check_compatible(task, heads, n, queries))
    task = rounding.without_constant(task)
    rows = view_heads(task, heads, n, points)
    single_of = fixed_radius if hold else single
    singles = [list(map(single_of, row)) for row in rows]
    facts_of = dict(zip(Single._fields, np.moveaxis(np.array(singles), -1, 0), strict=True))
    overlap, signal = np.zeros((2, len(points), heads.count, heads.count))
    everyone = np.arange(heads.count)
    overlap[:, everyone, everyone] = facts_of["overlap"]
    signal[:, everyone, everyone] = facts_of["signal"]
    for (h, g), joint_design in views(task, heads, 2).items():
        for q, (row, known) in enumerate(zip(rows, singles, strict=True)):
            pair = pair_terms((row[h], row[g]), (known[h], known[g]), joint_design)
            overlap[q, [h, g], [g, h]], signal[q, [h, g], [g, h]] = pair
    bias = facts_of["limit"] - task.target.values(points)[:, None] + facts_of["bias"] / n
    square = facts_of["square"]
    attended = n * facts_of["mass"]
    facts = {
        "n_eff": n / facts_of["overlap"],
        "n_third": n * facts_of["overlap"] / facts_of["third"],
        "limit": facts_of["limit"],
        "radius": square**0.5,
        "radius_sd": facts_of["spread"] / (2 * (square * n) ** 0.5),
        "attended": attended,
        "expected_attended": attended + facts_of["constant"],
    }
    noise = float(task.noise_sd) ** 2 * overlap / n
    return labelled(task.target, points, n, bias, signal / n, noise, facts, weights)


def view_heads(
    task: Task, heads: Heads, n: int, points: Float[np.ndarray, "Q d"]
) -> list[list[Head]]:
    """The heads at every query; an InputError where theory does not cover the problem."""
    power = float(check_radii(task, heads).nu)
    target = jax.tree.map(np.asarray, task.target)
    gammas = (2 * np.asarray(heads.bandwidth, float) ** 2 * power) ** power / n
    seen = views(task, heads, 1)
    frames = np.asarray(heads.frames)
    rows = []
    for x in points:
        row = []
        for h, gamma in enumerate(gammas.tolist()):
            row.append(Head(seen[h,], frames[h].T @ x, power, target, gamma))
        rows.append(row)
    return rows


def views(task: Task, heads: Heads, size: int) -> dict[tuple[int, ...], ProjectedDesign]:
    """Projected designs of every group of ``size`` heads, by their numbers."""
    assert isinstance(task.design, GaussianDesign)  # for the type checker; see check_radii
    sigma = np.asarray(task.design.covariance)
    key_frames = np.asarray(heads.of_keys)
    projected = {}
    for group in combinations(range(heads.count), size):
        frame = np.hstack(list(key_frames[list(group)]))
        projected[group] = ProjectedDesign.from_frame(sigma, frame)
    return projected
