"""Effect of rounding on an estimate, from a few keys and queries in both precisions.

Rounding depends more on the problem than on the machine: on the size of ω·x, on the target relative
to its error, and on distances relative to the bandwidth. It is measured with the engine's sums on
keys of the problem's design: once in float64, and once in the precision in question with keys,
queries and targets moved by up to one unit of rounding. The choice of precision that follows
depends on the problem alone, neither on the seed nor on the number of batches: a longer run begins
with the batches of a shorter one.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.base.errors import InputError
from sims.problem import Heads, Kernel, Target, Task, TrigonometricSeries
from sims.problem.design_laws import ImageDesign
from sims.simulation.all_keys import over_keys
from sims.simulation.draws import draw, split_constant, target_values
from sims.simulation.heads import projected_queries
from sims.simulation.replicate import Settings, Shared, finish_replicate, sums_over

SMALL = 1e-4
"""Rounding, as a share of a term, up to which float32 is kept: a tenth of an MCSE of 0.1 %, which
no published run reaches."""
LARGEST = 1e-2
"""Rounding, as a share of the heads' MSE, up to which a float64 estimate is accepted."""
DESIGNS, QUERIES = 4, 2
"""Numbers of key sets and of queries (including the farthest) that are computed twice."""
LOST = 0.125
"""Rounding of an angle, in turns, at which its cosine is lost."""
WORK = 2**13
"""Maximum number of kernels, or waves, evaluated in each precision."""


QUICK = {"xla_backend_optimization_level": 0}
"""Compiler options for programs that run once."""


class Shares(NamedTuple):
    """Bounds on rounding in the second moments of the heads' errors.

    Attributes:
        mse: bound as a share of the heads' MSE.
        by_keys: bound as a share of bias² + signal variance, the part due to the keys.
        noise: bound as a share of the noise variance.
    """

    mse: float
    by_keys: float
    noise: float

    @property
    def largest(self) -> float:
        """Larger of the bounds on the two parts."""
        return float(np.max([self.by_keys, self.noise]))


def choose_precision(
    task: Task, heads: Heads, n: int, queries: Float[np.ndarray, "Q d"], precision: str
) -> tuple[str, Shares]:
    """Precision that the problem needs, at least the requested one, and its rounding.

    Raises:
        InputError: float64 cannot hold the problem.
    """
    shares = rounding(task, heads, n, queries, precision)
    if precision == "float32":
        if shares.largest <= SMALL:
            return precision, shares
        shares = rounding(task, heads, n, queries, "float64")
    where = "problem, simulated in float64"
    if not np.isfinite(shares.mse):
        raise InputError(
            where,
            "values out of range",
            "a smaller target, a wider bandwidth, or a kernel that is finite",
        )
    if shares.mse > LARGEST:
        allowed = f"at most {LARGEST:g} of it: a smoother or smaller target, or a wider bandwidth"
        raise InputError(where, f"rounding by {shares.mse:.2g} of the MSE", allowed)
    return "float64", shares


def rounding(
    task: Task, heads: Heads, n: int, queries: Float[np.ndarray, "Q d"], precision: str
) -> Shares:
    """Bounds on what rounding does to the heads' errors; NaN where values are out of range.

    With g the deviation of a head from m(x) given the keys, e its change between the two
    evaluations and Δ that of the noise variance N, the bounds are ``E e² + 2 √(E e² · E g²)``
    (Cauchy–Schwarz) beside ``E g²`` and ``|E Δ|`` beside N, means over heads and queries. Where n
    exceeds the keys that are weighed, variances over designs count by the ratio of the two.

    Args:
        task: design, target, noise level.
        heads: H heads.
        n: number of keys of a replicate.
        queries: x.
        precision: "float32" or "float64".
    """
    task, constant = split_constant(task)
    unit = float(jnp.finfo(precision).eps)
    rng = np.random.default_rng(0)
    outward = queries[np.argsort(np.abs(queries).sum(axis=1))]
    queries = outward[np.linspace(0, len(queries) - 1, min(QUERIES, len(queries))).astype(int)]
    evaluations = max(heads.count * len(queries), task.target.terms)
    count = min(n, max(WORK // (DESIGNS * evaluations), 16))
    x = _keys(task, rng, DESIGNS * count).reshape(DESIGNS, count, -1)
    moved_keys = x * (1 + unit * rng.uniform(-1, 1, x.shape))
    moved_queries = queries * (1 + unit * rng.uniform(-1, 1, queries.shape))
    near = (moved_keys, moved_queries)
    moments = weigh_twice(task, heads, constant, (x, queries), near, precision)
    (deviation, noise), (moved, moved_noise) = jax.tree.map(np.asarray, moments)
    with np.errstate(all="ignore"):
        ratio = count / n
        error = _mean_square(moved - deviation, ratio)
        size = _mean_square(deviation, ratio)
        keys = (np.mean(error + 2 * np.sqrt(error * size)), size.mean())
        labels = (ratio * np.abs((moved_noise - noise).mean(0)).mean(), ratio * noise.mean())
        shares = Shares(_share(*np.add(keys, labels)), _share(*keys), _share(*labels))
    seen = np.vstack([x.reshape(-1, x.shape[-1]), queries])
    lost = _lost_share(task.target, seen, unit)
    return Shares(np.maximum(shares.mse, lost), np.maximum(shares.by_keys, lost), shares.noise)


def _lost_share(target: Target, x: Float[np.ndarray, "N d"], unit: float) -> float:
    """Share of a series' variance in waves whose argument has no digit of its fraction of a turn.

    Both evaluations then see the same multiple of a turn, and agree on a wrong value.
    """
    if not isinstance(target, TrigonometricSeries):
        return 0.0
    turns = np.abs(x) @ np.abs(np.asarray(target.frequency)).T / (2 * np.pi)
    power = np.asarray(target.amplitude) ** 2
    return float((unit * turns > LOST).mean(0) @ power / max(power.sum(), unit))


def _share(move: float, value: float) -> float:
    return float(move / value) if move != 0 else 0.0


def _keys(task: Task, rng: np.random.Generator, count: int) -> Float[np.ndarray, "N d"]:
    """Keys of the design, drawn by NumPy, which compiles nothing, where normals make them."""
    design = task.design
    if not isinstance(design, ImageDesign):
        return np.asarray(draw(task, jax.random.key(0), count)[0])
    return design.from_normals(rng.normal(size=(count, design.dimension + design.EXTRA_NORMALS)))


def _mean_square(values: Float[np.ndarray, "D Q H"], share: float) -> Float[np.ndarray, "Q H"]:
    """E v² where only a share of the variance over designs is left."""
    mean = values.mean(0)
    variance = values.var(0, ddof=1)
    return np.maximum(mean**2 - variance / len(values), 0.0) + share * variance


@partial(jax.jit, static_argnames="precision", compiler_options=QUICK)
def weigh_twice(
    task: Task,
    heads: Heads,
    constant: Float[Array, ""] | None,
    points: tuple[Array, Array],
    moved: tuple[Array, Array],
    precision: str,
) -> list[tuple[Array, Array]]:
    """Deviations from m(x), and noise variances, (D, Q, H): in float64, and moved by rounding.

    Args:
        task: with a target that has no constant part.
        heads: H heads.
        constant: the target's constant part.
        points: keys of D designs (D, n, d), and queries (Q, d).
        moved: the same, by up to a unit of rounding.
        precision: precision of the second.
    """
    unit = float(jnp.finfo(precision).eps)

    def moved_target(x: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Values moved by up to a unit of rounding, at each point another way."""
        way = jnp.sin(1e4 * x.sum(-1)) * unit
        return target_values(task.target, x) * (1 + way.astype(x.dtype))

    def weigh(x: Array, queries: Array, target: object, dtype: str) -> tuple[Array, Array]:
        shared = Shared(
            eqx.tree_at(lambda t: t.target, task, target), heads, queries, constant=constant
        )
        settings = Settings(x.shape[1], x.shape[1], len(queries), dtype)

        def of_design(x: Float[Array, "n d"]) -> tuple[Array, Array]:
            if isinstance(heads.rule, Kernel):
                projected = projected_queries(heads, queries, dtype)
                moments = finish_replicate(shared, sums_over(settings, shared, projected, x))
            else:
                moments = over_keys(settings, shared, x)
            return moments.deviation, jnp.diagonal(moments.noise, axis1=-2, axis2=-1)

        return jax.vmap(of_design)(x.astype(dtype))

    return [weigh(*points, task.target, "float64"), weigh(*moved, moved_target, precision)]
