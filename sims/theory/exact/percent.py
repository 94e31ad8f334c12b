"""Exact theory by points where kernels reach: every term at a cost free of n.

Points are those of :mod:`sims.theory.exact.tilted`, integrals those of
:mod:`sims.theory.exact.gram`. The error of a number is

::

    t_{0.975, R − 1} · sd/√R

of its values in R = 8 randomisations, each of which draws points by its own scramble of a Sobol
sequence at every query (or takes all rows of a table) and moves the nodes in log s by another
eighth of a step. A term that is a mean over queries or heads has the error of that mean. A query's
points, or the nodes of a table, are doubled until the error of the ensemble's MSE at it is ``rtol``
times that MSE, or the mean over queries if that is larger.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from sims.base.errors import InputError
from sims.base.terms import ensemble_weights
from sims.problem import CustomDesign, EmpiricalDesign, Heads, Kernel, StudentDesign, Task
from sims.theory.arrays import Number, Numbers, namespace, repeated
from sims.theory.exact.gram import (
    LARGEST,
    ROOM,
    TILE,
    WIDE,
    Atoms,
    Moments,
    Nodes,
    gram_sums,
    moments_of,
    randomised_moments,
    randomised_sums,
)
from sims.theory.exact.quadrature import sobol_normal
from sims.theory.exact.solution import TINY, Progress, Solution
from sims.theory.exact.tilted import (
    SHARES,
    Law,
    Points,
    law_of,
    log_kernels,
    tilted_points,
    tilts_at,
    transported,
)
from sims.theory.exact.truncation import check_never_zero

RANDOMISATIONS = 8
"""Sets of points and of nodes."""
QUANTILE = float(stdtrit(RANDOMISATIONS - 1, 0.975))
FEWEST = 12
"""log2 of the approximate number of points at level 0; they double from level to level."""
MOST_LEVEL = 5
ORDER = 0.7
"""Power of their number with which errors are expected to fall."""
LEFT = 3e-4
"""``−n log φ`` at the first node, before nodes are moved, over the lesser of 1 and its limit."""
BISECTIONS, REFINEMENTS = 40, 8
RANGE_POINTS = 2**10
"""Points of largest kernels, and at most as many others, that nodes are chosen by."""


class Lattice(NamedTuple):
    """Nodes of a head in v: their number, their distance, and e^v at the first."""

    size: int
    step: float
    left: float

    @classmethod
    def of(cls, kernel: Kernel, wide: bool, level: int = 0) -> "Lattice":
        """That of a kernel: longer if it is compact, denser if nodes are far apart in log s."""
        step = float(np.log(2)) / 2**level
        left = LEFT / 4**level
        if kernel.support is not None:
            return cls(26 + 4 * level << level, step, left)
        size = 17 + 2 * level << level
        return cls(size * 3 // 2, step * 2 / 3, left) if wide else cls(size, step, left)


def normal_points(law: Law, heads: int, level: int, query: int) -> Float[np.ndarray, "R C m p"]:
    """Standard normal points of every randomisation and component of the mixture.

    Queries have scrambles of their own, so that their errors average out; heads of one query share
    them, so that differences between sets of heads are precise.
    """
    components = 1 + len(SHARES) * heads
    size = 2 ** round(FEWEST + level - np.log2(components))
    p = law.mean.shape[1] + (len(law.scale) > 1)
    power = int(np.ceil(np.log2(components * size)))
    seeds = RANDOMISATIONS * query + np.arange(RANDOMISATIONS)
    sets = [sobol_normal(p, power, int(seed))[: components * size] for seed in seeds]
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
        law: of the design; None of rows, all of which are every set.
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
        fixed: Any = task.design, law, heads, x
        if xp is jnp:
            fixed = jax.lax.stop_gradient(fixed)
        design, fixed_law, fixed_heads, at = fixed
        heavy = isinstance(design, StudentDesign | CustomDesign) and heads.kernel.around == "line"
        tilts = tilts_at(fixed_law, fixed_heads, at, n, heavy)

        def draw(normal: Numbers) -> Points:
            return transported(design, tilted_points(fixed_law, tilts, fixed_heads, at, normal))

        if xp is jnp:
            keys, mass = jax.lax.map(draw, normals)
        else:
            keys, mass = map(np.stack, zip(*map(draw, normals), strict=True))
    target: Any = task.target if xp is jnp else task.target.values
    log_kernel = xp.asarray(log_kernels(heads, x, keys, heads.kernel))
    atoms = xp.moveaxis(log_kernel, 0, 1), mass, target(keys) - target(x)
    return Atoms(*(xp.broadcast_to(part, (RANDOMISATIONS, *part.shape[1:])) for part in atoms))


def filled(atoms: Atoms, size: int) -> Atoms:
    """As many points, of mass 0 behind the others."""
    xp = namespace(atoms.mass)
    behind = (0, size - atoms.mass.shape[-1])
    return jax.tree.map(lambda part: xp.pad(part, [(0, 0)] * (part.ndim - 1) + [behind]), atoms)


def range_points(atoms: Atoms) -> tuple[Float[Numbers, "H K"], Float[Numbers, "H K"]]:
    """log K and masses of a few points that stand for the first set, of each head its own."""
    xp = namespace(atoms.mass)
    order = xp.argsort(-atoms.log_kernel[0], axis=1)
    log_kernel = xp.take_along_axis(atoms.log_kernel[0], order, axis=1)
    mass = atoms.mass[0][order]
    stride = max(1, -(-(mass.shape[1] - RANGE_POINTS) // RANGE_POINTS))
    largest = mass[:, :RANGE_POINTS]
    others = mass[:, RANGE_POINTS::stride]
    rest = 1 - largest.sum(1, keepdims=True)
    others = others * rest / xp.maximum(others.sum(1, keepdims=True), TINY)
    parts = log_kernel[:, :RANGE_POINTS], log_kernel[:, RANGE_POINTS::stride]
    return xp.concatenate(parts, axis=1), xp.concatenate([largest, others], axis=1)


def nodes_of(atoms: Atoms, n: Number, lattice: Lattice) -> Nodes:
    """Nodes of every randomisation.

    They are u(v_j) in log s, and their weights u'(v_j) times the step, with u a monotone cubic
    through the inverse of ``t(u) = log(−log φ)`` by the first set of points; any smooth u gives the
    same integrals.
    """
    xp = namespace(atoms.mass)
    log_kernel, mass = range_points(atoms)
    alive = log_kernel > -np.inf
    limit = -n * xp.log(xp.where(alive, 0.0, mass).sum(1))
    start = np.log(lattice.left) + xp.minimum(xp.log(limit), 0.0)
    v = start[:, None] + lattice.step * np.arange(-2, lattice.size + 3)
    knots = -xp.log(n * (xp.exp(-v) + 1 / limit[:, None]))

    def log_rate(u: Numbers) -> Any:
        x = xp.exp(xp.minimum(u[..., None] + log_kernel[:, None], LARGEST))
        hit = (-xp.expm1(-x) @ mass[..., None])[..., 0]
        return xp.log(-xp.log1p(-xp.clip(hit, 1e-300, 1 - 1e-16)))

    # Both ends by bisection, the knots between by inverse interpolation.
    low = -log_kernel.max(1) - xp.log(n) - 40.0
    low = xp.stack([low, low], axis=1)
    high = 4.0 - xp.where(alive, log_kernel, np.inf).min(1)
    high = xp.stack([high, high], axis=1)

    def halved(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
        middle = (low + high) / 2
        above = log_rate(middle) > knots[:, np.array([0, -1])]
        return xp.where(above, low, middle), xp.where(above, middle, high)

    def refined(u: Numbers) -> tuple[Numbers]:
        rows = zip(knots, log_rate(u), u, strict=True)
        return (xp.stack([xp.interp(*row) for row in rows]),)

    low, high = repeated(halved, (low, high), BISECTIONS)
    u = low[:, :1] + (high[:, 1:] - low[:, :1]) * np.linspace(0, 1, knots.shape[1])
    (u,) = repeated(refined, (u,), REFINEMENTS)
    # Between knots, in units of the step, a cubic with harmonic means of the slopes beside a knot.
    chord = xp.maximum(xp.diff(u, axis=1), 1e-9)
    slope = 2 / (1 / chord[:, 1:] + 1 / chord[:, :-1])
    start, first, last = u[:, 1:-2], slope[:, :-1], slope[:, 1:]
    bend = first + last - 2 * chord[:, 1:-1]
    rise = 3 * chord[:, 1:-1] - 2 * first - last
    odd = 2 * np.arange(len(u)) + 1
    moved = np.outer(np.arange(RANDOMISATIONS), odd) % RANDOMISATIONS / RANDOMISATIONS

    def cubic(shift: np.ndarray, size: int) -> tuple[Numbers, Numbers]:
        place = shift[..., None] + np.arange(size)
        knot = place.astype(int)
        w = xp.asarray(place - knot)
        row = np.arange(len(u))[:, None]
        a, b, c, d = (part[row, knot] for part in (start, first, rise, bend))
        return a + w * (b + w * (c + w * d)), b + w * (2 * c + 3 * w * d)

    nodes, slopes = cubic(moved + 0.5, lattice.size)
    edges, _ = cubic(moved, lattice.size + 1)
    # The midpoint of a wide cell is that to its mean, where responses are ∝ e^v.
    half = lattice.step / 2
    width = xp.diff(edges, axis=2)
    weight = xp.where(width > WIDE, half / np.sinh(half) * width, slopes)
    tail = -1 / np.expm1(-lattice.step)
    weight = weight * np.append(np.ones(lattice.size - 1), tail)
    return Nodes(nodes, edges, weight, xp.full(RANDOMISATIONS, tail))


def jax_moments(
    task: Task, heads: Heads, n: Number, queries: Float[Array, "Q d"], level: int
) -> Moments:
    """Terms (σ² = 1) at every query, traced by JAX, on points of a level.

    The mean over randomisations. Points and nodes are constants to a derivative.
    """
    law = None
    normals = None
    if not isinstance(task.design, EmpiricalDesign):
        law = jax.tree.map(jnp.asarray, law_of(task.design))
        normals = jnp.asarray(normal_points(law, heads.count, level, 0))
    lattice = Lattice.of(heads.kernel, True)

    def at_query(x: Array) -> Moments:
        atoms = atoms_at(task, law, heads, n, x, normals)
        tiles = -(-atoms.mass.shape[1] // TILE)
        rule = jax.lax.stop_gradient(nodes_of(atoms, n, lattice))
        sets = filled(atoms, tiles * TILE)
        truth = jnp.asarray(task.target(x))

        def moments(items: tuple[Nodes, Atoms]) -> Moments:
            nodes, points = items
            return moments_of(gram_sums(points, nodes, tiles, True), nodes, n, truth)

        results = jax.lax.map(moments, (rule, sets))
        return jax.tree.map(lambda part: part.mean(0), results)

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
        InputError: the target is not finite, or the kernel vanishes without a ``support``.
    """
    task, heads = jax.tree.map(np.asarray, (task, heads))
    law = None if isinstance(task.design, EmpiricalDesign) else law_of(task.design)
    noise = float(task.noise_sd) ** 2
    count, h = len(queries), heads.count
    alpha = ensemble_weights(weights, h)
    solution = Solution(count, h)
    solution.methods.add("tilted sobol" if law else "sum over rows")
    shapes = (count, h), (count, h, h), (count, h, h), (count, h, h), (count, h)
    moments = Moments(*(np.full((RANDOMISATIONS, *shape), np.nan) for shape in shapes))
    level = np.zeros(count, int)
    pending = np.arange(count)
    most = min(max_level, MOST_LEVEL)
    while len(pending):
        for q in pending:
            normals = law and normal_points(law, h, level[q], int(q))
            atoms = atoms_at(task, law, heads, float(n), queries[q], normals)
            if not np.isfinite(atoms.value).all():
                allowed = "finite numbers wherever the design has mass"
                raise InputError("target", "NaN or infinity at a point of the design", allowed)
            check_never_zero(heads.kernel, np.asarray(atoms.log_kernel))
            found = query_moments(atoms, n, float(truth[q]), heads.kernel, 0 if law else level[q])
            for whole, part in zip(moments, found, strict=True):
                whole[:, q] = part
        mean, signal, weight = map(np.asarray, moments[:3])
        errors = (mean @ alpha) ** 2 + (signal + noise * weight) @ alpha @ alpha
        size = errors.mean(0)
        excess = half_width(errors) / np.maximum(rtol * np.maximum(size, size.mean()), TINY)
        solution.converged[:] = (excess <= 1)[:, None, None]
        progress(int(solution.converged.sum()), solution.converged.size)
        # Where errors are not finite no level helps.
        pending = np.flatnonzero((excess > 1) & np.isfinite(excess) & (level < most))
        steps = np.maximum(np.round(np.log2(excess[pending]) / ORDER), 1)
        level[pending] = np.minimum(level[pending] + steps, most)
    means = [part.mean(0) for part in moments]
    widths = [half_width(np.asarray(part)) for part in moments]
    solution.mean[:], solution.mean_error[:] = truth[:, None] + means[0], widths[0]
    solution.signal[:], solution.signal_error[:] = means[1], widths[1]
    solution.noise[:], solution.noise_error[:] = means[2], widths[2]
    solution.defect[:] = np.abs(moments.defect).mean(0)
    solution.empty[:] = means[4]
    return solution, moments


def query_moments(atoms: Atoms, n: int, truth: float, kernel: Kernel, level: int) -> Moments:
    """Moments at a query by every randomisation, on nodes that are doubled from level to level."""
    nodes = nodes_of(atoms, float(n), Lattice.of(kernel, False, level))
    wide = bool(np.diff(nodes.edges, axis=2).max() > WIDE)
    if wide:
        nodes = nodes_of(atoms, float(n), Lattice.of(kernel, True, level))
    sums: Any = None
    for start in range(0, atoms.mass.shape[1], ROOM):
        part = Atoms(*(array[..., start : start + ROOM] for array in atoms))
        tiles = np.asarray(-(-part.mass.shape[1] // TILE))
        added = randomised_sums(filled(part, ROOM), nodes, tiles, wide)
        sums = added if sums is None else jax.tree.map(jnp.add, sums, added)
    return jax.tree.map(np.asarray, randomised_moments(sums, nodes, float(n), truth))


def half_width(values: Float[np.ndarray, "R *S"]) -> Float[np.ndarray, "*S"]:
    """Half the width of the mean's 95 % interval over randomisations."""
    return QUANTILE * np.std(values, axis=0, ddof=1) / np.sqrt(RANDOMISATIONS)
