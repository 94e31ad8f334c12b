"""Exact theory at one per cent: every term by points where kernels reach, at a cost free of n.

Points are those of :mod:`sims.theory.exact.tilted`, integrals those of
:mod:`sims.theory.exact.gram`. The error of a number is

::

    t_{0.975, R − 1} · sd/√R

of its values in R = 8 randomisations, each of which draws points by its own scramble of a Sobol
sequence and moves the nodes in log s by another eighth of a step. A term that is a mean over
queries or heads has the error of that mean. A query's points are doubled until the error of
the ensemble's MSE at it is ``rtol`` times that MSE, or the mean over queries if that is larger.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from sims.base.errors import InputError
from sims.base.terms import ensemble_weights
from sims.problem import EmpiricalDesign, Heads, Task
from sims.theory.arrays import Number, Numbers, namespace, repeated
from sims.theory.exact.gram import (
    LARGEST,
    SPAN,
    TILE,
    WIDE,
    Atoms,
    Moments,
    gram_moments,
    randomised_moments,
)
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.refinement import TINY
from sims.theory.exact.rules import RANDOMISATIONS
from sims.theory.exact.solution import Progress, Solution
from sims.theory.exact.tilted import SHARES, Law, law_of, log_kernels, tilted_points, tilts_at
from sims.theory.exact.truncation import check_never_zero

QUANTILE = float(stdtrit(RANDOMISATIONS - 1, 0.975))
FEWEST = 12
"""log2 of the approximate number of points at level 0; they double from level to level."""
MOST_LEVELS = 5
ORDER = 0.7
"""Power of their number with which errors are expected to fall."""
ROOMS = (2**13, 3 * 2**15)
"""Sizes of the arrays that hold them, of which each compiles anew."""
SIZES = (18, 27)
"""Nodes in t of every head; and where some are far apart in log s."""
LEFT = 3e-4
"""``−n log φ`` at the first of them, before they are moved; at the last it is 2^17 times that."""
BISECTIONS, REFINEMENTS = 40, 8
RANGE_POINTS = 2**11
"""Points of a random law that nodes are chosen by."""


def normal_points(law: Law, heads: int, level: int) -> Float[np.ndarray, "R C m p"]:
    """Standard normal points of every randomisation and component of the mixture."""
    components = 1 + len(SHARES) * heads
    size = 2 ** round(FEWEST + level - np.log2(components))
    p = law.mean.shape[1] + (len(law.scale) > 1)
    power = int(np.ceil(np.log2(components * size)))
    sets = [sobol_normal(p, power, seed)[: components * size] for seed in range(RANDOMISATIONS)]
    return np.reshape(sets, (RANDOMISATIONS, components, size, p))


def atoms_at(
    task: Task,
    law: Law | None,
    heads: Heads,
    n: Number,
    x: Float[Numbers, " d"],
    normals: Float[Numbers, "R C m p"] | None,
) -> Atoms:
    """Sets of points at a query, and the kernels and the target at them.

    Everything is NumPy or JAX, as the arrays are. Points are constants to a derivative: they
    represent the law of the keys, which no head changes.

    Args:
        task: design and target.
        law: of the design; None of rows, which are one set.
        heads: the heads.
        n: number of keys.
        x: the query.
        normals: of :func:`normal_points`; None with rows.
    """
    xp = namespace(x)
    keys: Any
    mass: Any
    if law is None or normals is None:
        assert isinstance(task.design, EmpiricalDesign)  # for the type checker
        keys = task.design.rows[None]
        mass = xp.full(keys.shape[:2], 1 / keys.shape[1])
    else:
        fixed_law, fixed_heads, fixed_x = law, heads, x
        if xp is jnp:
            fixed_law, fixed_heads, fixed_x = jax.lax.stop_gradient((law, heads, x))
        heavy = not task.design.EXPONENTIAL and heads.kernel.around == "line"
        tilts = tilts_at(fixed_law, fixed_heads, fixed_x, n, heavy)
        draw = partial(tilted_points, fixed_law, tilts, fixed_heads, fixed_x)
        if xp is jnp:
            keys, mass = jax.lax.map(draw, normals)
        else:
            keys, mass = map(np.stack, zip(*map(draw, normals), strict=True))
    target: Any = task.target if xp is jnp else task.target.values
    log_kernel = log_kernels(heads, x, keys, heads.kernel)
    return Atoms(xp.moveaxis(log_kernel, 0, 1), mass, target(keys) - target(x))


def filled(atoms: Atoms, size: int) -> Atoms:
    """As many points, of mass 0 behind the others."""
    xp = namespace(atoms.mass)
    behind = (0, size - atoms.mass.shape[-1])
    parts = []
    for part in atoms:
        parts.append(xp.pad(part, [(0, 0)] * (part.ndim - 1) + [behind]))
    return Atoms(*parts)


def effective_keys(atoms: Atoms, n: Number) -> Float[Numbers, "R H"]:
    """``n (E K)²/E K²`` by each set of points."""
    xp = namespace(atoms.mass)
    kernel = xp.exp(atoms.log_kernel - atoms.log_kernel.max(2, keepdims=True))
    mass = atoms.mass[:, None]
    return n * (kernel * mass).sum(2) ** 2 / (kernel**2 * mass).sum(2)


def nodes_of(atoms: Atoms, n: Number, size: int) -> tuple[Numbers, Numbers, Numbers]:
    """log s of the nodes of every randomisation, of their cells' edges, and weights in log s.

    Nodes are u(t_j) and weights u'(t_j) times the step, with u a monotone cubic through the inverse
    of ``t(u) = log(−log φ)`` by the first set of points; any smooth u gives the same integrals.
    """
    xp = namespace(atoms.mass)
    log_kernel, mass = atoms.log_kernel[0], atoms.mass[0]
    if len(atoms.mass) > 1:
        stride = -(-len(mass) // RANGE_POINTS)
        log_kernel, mass = log_kernel[:, ::stride], mass[::stride] / mass[::stride].sum()
    knots = np.log(LEFT) - xp.log(n) + SPAN / size * np.arange(-2, size + 3)

    def log_rate(u: Numbers) -> Any:
        x = xp.exp(xp.minimum(u[..., None] + log_kernel[:, None], LARGEST))
        return xp.log(-xp.log1p(-xp.clip(-xp.expm1(-x) @ mass, 1e-300, 1 - 1e-16)))

    # Both ends by bisection, the knots between by inverse interpolation.
    low = -log_kernel.max(1) - xp.log(n) - 40.0
    low = xp.stack([low, low], axis=1)
    high = xp.stack([-log_kernel.min(1) + 4.0] * 2, axis=1)

    def halved(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
        middle = (low + high) / 2
        above = log_rate(middle) > knots[np.array([0, -1])]
        return xp.where(above, low, middle), xp.where(above, middle, high)

    def refined(u: Numbers) -> tuple[Numbers]:
        rates = log_rate(u)
        return (xp.stack([xp.interp(knots, *rows) for rows in zip(rates, u, strict=True)]),)

    low, high = repeated(halved, (low, high), BISECTIONS)
    u = low[:, :1] + (high[:, 1:] - low[:, :1]) * np.linspace(0, 1, len(knots))
    (u,) = repeated(refined, (u,), REFINEMENTS)
    # Between knots, in units of the step, a cubic with harmonic means of the slopes beside a knot.
    chord = xp.maximum(xp.diff(u, axis=1), 1e-9)
    slope = 2 / (1 / chord[:, 1:] + 1 / chord[:, :-1])
    start, first, last = u[:, 1:-2], slope[:, :-1], slope[:, 1:]
    bend = first + last - 2 * chord[:, 1:-1]
    rise = 3 * chord[:, 1:-1] - 2 * first - last
    odd = 2 * np.arange(len(u)) + 1
    moved = np.outer(np.arange(RANDOMISATIONS), odd) % RANDOMISATIONS / RANDOMISATIONS

    def cubic(shift: np.ndarray, count: int) -> tuple[Numbers, Numbers]:
        place = shift[..., None] + np.arange(count)
        knot = place.astype(int)
        w = xp.asarray(place - knot)
        row = np.arange(len(u))[:, None]
        a, b, c, d = (part[row, knot] for part in (start, first, rise, bend))
        return a + w * (b + w * (c + w * d)), b + w * (2 * c + 3 * w * d)

    nodes, weights = cubic(moved + 0.5, size)
    edges, _ = cubic(moved, size + 1)
    return nodes, edges, weights


def jax_moments(
    task: Task, heads: Heads, n: Number, queries: Float[Array, "Q d"], level: int
) -> tuple[Moments, Float[Array, "Q H"]]:
    """Terms (σ² = 1) and effective keys at every query, traced by JAX, on points of a level.

    The mean over randomisations. Points and nodes are constants to a derivative.
    """
    law = None
    normals = None
    if not isinstance(task.design, EmpiricalDesign):
        law = jax.tree.map(jnp.asarray, law_of(task.design))
        normals = jnp.asarray(normal_points(law, heads.count, level))

    def at_query(x: Array) -> tuple[Moments, Array]:
        atoms = atoms_at(task, law, heads, n, x, normals)
        tiles = -(-atoms.mass.shape[1] // TILE)
        rule = nodes_of(jax.lax.stop_gradient(atoms), n, SIZES[1])
        sets = filled(atoms, tiles * TILE)

        def moments(items: tuple[tuple[Array, Array, Array], Atoms | None]) -> Moments:
            (nodes, edges, weights), points = items
            if points is None:
                points = Atoms(*(part[0] for part in sets))
            return gram_moments(points, nodes, edges, weights, n, tiles, True)

        results = jax.lax.map(moments, (rule, None if law is None else sets))
        keys = effective_keys(atoms, n).mean(0)
        return jax.tree.map(lambda part: part.mean(0), results), keys

    return jax.lax.map(at_query, queries)


def solve_percent(
    task: Task,
    heads: Heads,
    n: int,
    queries: Float[np.ndarray, "Q d"],
    truth: Float[np.ndarray, " Q"],
    rtol: float,
    max_level: int,
    weights: ArrayLike | None,
    progress: Progress,
) -> tuple[Solution, Moments]:
    """Terms (σ² = 1) at every query, and those of each randomisation, (R, Q, …).

    Raises:
        InputError: the target is not finite, or the kernel vanishes somewhere.
    """
    task, heads = jax.tree.map(np.asarray, (task, heads))
    law = None if isinstance(task.design, EmpiricalDesign) else law_of(task.design)
    noise = float(task.noise_sd) ** 2
    count, h = len(queries), heads.count
    alpha = ensemble_weights(weights, h)
    solution = Solution.unknown(count, h)
    solution.methods.add("tilted sobol" if law else "sum over rows")
    shapes = (count, h), (count, h, h), (count, h, h), (count, h, h)
    moments = Moments(*(np.full((RANDOMISATIONS, *shape), np.nan) for shape in shapes))
    level_of = np.zeros(count, int)
    for level in range(MOST_LEVELS)[: max_level + 1]:
        normals = law and normal_points(law, h, level)
        pending = np.flatnonzero(~solution.converged[:, 0, 0] & (level_of <= level))
        for q in pending:
            atoms = atoms_at(task, law, heads, float(n), queries[q], normals)
            if not np.isfinite(atoms.value).all():
                allowed = "finite numbers wherever the design has mass"
                raise InputError("target", "NaN or infinity at a point of the design", allowed)
            check_never_zero(heads.kernel, np.asarray(atoms.log_kernel))
            solution.effective_keys[q] = effective_keys(atoms, n).mean(0)
            for whole, part in zip(moments, query_moments(atoms, n), strict=True):
                whole[:, q] = part
        mean, signal, weight = map(np.asarray, moments[:3])
        errors = (mean @ alpha) ** 2 + (signal + noise * weight) @ alpha @ alpha
        size = errors.mean(0)
        excess = half_width(errors) / np.maximum(rtol * np.maximum(size, size.mean()), TINY)
        solution.converged[:] = (excess <= 1)[:, None, None]
        progress(int(solution.converged.sum()), solution.converged.size)
        if law is None or solution.converged.all():
            break
        # Where errors are not finite no level helps.
        steps = np.clip(np.round(np.log2(np.maximum(excess, 1.0)) / ORDER), 1, MOST_LEVELS)
        further = np.minimum(level + steps, max(level + 1, MOST_LEVELS - 1))
        level_of[pending] = np.where(np.isfinite(excess), further, MOST_LEVELS)[pending]
    means = [part.mean(0) for part in moments]
    widths = [half_width(np.asarray(part)) for part in moments]
    solution.mean[:], solution.mean_error[:] = truth[:, None] + means[0], widths[0]
    solution.signal[:], solution.signal_error[:] = means[1], widths[1]
    solution.noise[:], solution.noise_error[:] = means[2], widths[2]
    solution.defect[:] = np.abs(moments.defect).mean(0)
    solution.empty[:] = 0.0
    return solution, moments


def query_moments(atoms: Atoms, n: int) -> Moments:
    """Moments at a query by every randomisation, on as many nodes as the ranges need."""
    nodes, edges, weights = nodes_of(atoms, float(n), SIZES[0])
    wide = bool(np.diff(edges, axis=2).max() > WIDE)
    if wide:
        nodes, edges, weights = nodes_of(atoms, float(n), SIZES[1])
    if len(atoms.mass) == 1:
        atoms = Atoms(*(np.repeat(part, RANDOMISATIONS, axis=0) for part in atoms))
    count = atoms.mass.shape[1]
    room = next(room for room in ROOMS if room >= count)
    tiles = np.asarray(-(-count // TILE))
    moments = randomised_moments(filled(atoms, room), nodes, edges, weights, float(n), tiles, wide)
    return jax.tree.map(np.asarray, moments)


def half_width(values: Float[np.ndarray, "R *S"]) -> Float[np.ndarray, "*S"]:
    """Half the width of the mean's 95 % interval over randomisations."""
    return QUANTILE * np.std(values, axis=0, ddof=1) / np.sqrt(RANDOMISATIONS)
