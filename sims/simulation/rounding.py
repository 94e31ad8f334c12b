"""How far rounding moves an estimate: the same few keys and queries, weighed twice.

Rounding depends on the problem more than on the machine: on ω·x beside 1, on the target beside its
error, on distances beside the bandwidth. So it is measured, on keys of the problem's own law, by
the engine's arithmetic written out in NumPy, where nothing needs compiling: once in float64, and
once in the precision in question with every projection, angle, wave and weight moved by up to one
unit of rounding. The choice of precision that follows depends on the problem alone, neither on
the seed nor on the number of batches: a longer run begins with the batches of a shorter one.
"""

import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.checks import on_device
from sims.errors import InputError
from sims.identity import digest
from sims.problem import (
    KERNELS,
    Design,
    Heads,
    Kernel,
    Target,
    Task,
    TrigonometricSeries,
)
from sims.simulation.heads import UNIT
from sims.weights import WeightRule

SMALL = 1e-4
"""Rounding, as a share of a term, up to which float32 is kept: a tenth of an MCSE of 0.1 %, which
no published run reaches."""
LARGEST = 1e-2
"""Rounding, as a share of the heads' MSE, up to which a float64 estimate is given at all."""
DESIGNS, QUERIES = 4, 2
"""Sets of keys, and queries (the one farthest out among them), that are weighed twice."""
WORK = 2**17
"""Kernels, or waves, evaluated at most in each of the two."""


class Shares(NamedTuple):
    """Bounds on what rounding does to the second moments of the heads' errors.

    Attributes:
        mse: as a share of the heads' MSE.
        by_keys: as a share of what the keys alone make of it, bias² + signal variance.
        noise: as a share of the noise variance.
    """

    mse: float
    by_keys: float
    noise: float

    @property
    def largest(self) -> float:
        """Of the two parts."""
        return max(self.by_keys, self.noise)


class Centred(NamedTuple):
    """A task whose target has no constant part, and that part; None for 0."""

    task: Task
    constant: Float[Array, ""] | None


def centred(task: Task) -> Centred:
    """Take the constant part off the target."""
    constant = task.target.constant
    if not constant:
        return Centred(task, None)
    task = eqx.tree_at(lambda t: t.target, task, task.target.without_constant())
    return Centred(task, on_device(np.asarray(constant)))


@dataclass(frozen=True)
class _Problem:
    """A problem that is known by the digest of its parts."""

    identity: str
    parts: tuple[Task, Heads, int, Float[np.ndarray, "Q d"], str] = field(compare=False)


def settled(
    task: Task, heads: Heads, n: int, queries: Float[np.ndarray, "Q d"], precision: str
) -> tuple[str, Shares]:
    """The precision that the problem needs, at least the one asked for, and the rounding in it.

    What was found of a problem is kept: more batches of it, or other seeds, cost nothing again.

    Raises:
        InputError: float64 cannot hold the problem.
    """
    parts = (task, heads, n, queries, precision)
    try:
        identity = digest(*parts)
    except InputError:  # it holds functions that cannot be told from others
        return _settled(*parts)
    return _kept(_Problem(identity, parts))


@functools.lru_cache(maxsize=256)
def _kept(problem: _Problem) -> tuple[str, Shares]:
    return _settled(*problem.parts)


def _settled(
    task: Task, heads: Heads, n: int, queries: Float[np.ndarray, "Q d"], precision: str
) -> tuple[str, Shares]:
    """As :func:`settled`, computed."""
    if precision == "float32":
        shares = rounding(task, heads, n, queries, precision)
        if shares.largest <= SMALL:
            return precision, shares
    shares = rounding(task, heads, n, queries, "float64")
    where = "problem, simulated in float64"
    if np.isnan(shares.mse):
        raise InputError(where, "values out of range", "a target nearer 1, or a wider bandwidth")
    if shares.mse > LARGEST:
        allowed = f"at most {LARGEST:g} of it: slower or smaller waves, or a wider bandwidth"
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
    task, constant = centred(task)
    rng = np.random.default_rng(0)
    outward = queries[np.argsort(np.abs(queries).sum(axis=1))]
    queries = outward[np.linspace(0, len(queries) - 1, min(QUERIES, len(queries))).astype(int)]
    each = max(heads.count * len(queries), task.target.terms)
    count = min(n, max(WORK // (DESIGNS * each), 16))
    x = _draw(task, rng, DESIGNS * count).astype(precision)
    deviation, noise = _weighed(task, heads, x, queries, constant, "float64", None)
    other, other_noise = _weighed(task, heads, x, queries, constant, precision, rng)
    with np.errstate(all="ignore"):
        ratio = count / n
        error, size = _square(other - deviation, ratio), _square(deviation, ratio)
        moves = np.array(
            [
                np.mean(error + 2 * np.sqrt(error * size)),
                ratio * np.mean(np.abs((other_noise - noise).mean(0))),
            ]
        )
        sizes = np.array([size.mean(), ratio * noise.mean()])
        shares = np.where(moves == 0, 0.0, moves / sizes)
        whole = moves.sum() / sizes.sum() if moves.any() else 0.0
    if not np.isfinite([*moves, *sizes]).all():
        return Shares(*[np.nan] * 3)
    return Shares(float(whole), *map(float, shares))


def _draw(task: Task, rng: np.random.Generator, count: int) -> Float[np.ndarray, "N d"]:
    """Keys of the design, drawn by NumPy, or by its sampler where normals do not make them."""
    design = task.design
    if not design.OF_NORMALS:
        return np.asarray(_sampled(design, count))
    return design.from_normals(rng.normal(size=(count, design.dimension + design.EXTRA_NORMALS)))[0]


@eqx.filter_jit  # its steps one by one would each be compiled, as would those of a rule
def _sampled(design: Design, count: int) -> Float[Array, "N d"]:
    return design.sample(jax.random.key(0), count, jnp.float64)


def _square(values: Float[np.ndarray, "D Q H"], share: float) -> Float[np.ndarray, "Q H"]:
    """E v² where only a share of the variance over designs is left."""
    mean, variance = values.mean(0), values.var(0, ddof=1)
    return np.maximum(mean**2 - variance / len(values), 0.0) + share * variance


def _weighed(
    task: Task,
    heads: Heads,
    x: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "Q d"],
    constant: Float[Array, ""] | None,
    dtype: str,
    moved: np.random.Generator | None,
) -> tuple[Float[np.ndarray, "D Q H"], Float[np.ndarray, "D Q H"]]:
    """Deviations from m(x), and noise variances, of every head at every query for each design.

    Args:
        task: with a target that has no constant part.
        heads: H heads.
        x: keys of all designs, one design after another.
        queries: x.
        constant: the target's constant part.
        dtype: of the arithmetic between keys and sums.
        moved: draws the moves by a unit of rounding, if there are to be any.
    """

    def unit(values: np.ndarray) -> np.ndarray | float:
        """Up to one unit of rounding of each value, either way; 0 where nothing is moved."""
        if moved is None:
            return 0.0
        part = moved.uniform(-1, 1, values.shape).astype(values.dtype)
        return np.asarray(np.finfo(values.dtype).eps * part * values)

    def move(values: np.ndarray) -> np.ndarray:
        return values + unit(values)

    with np.errstate(all="ignore"):
        kernel = heads.rule if isinstance(heads.rule, Kernel) else None
        b = np.asarray(heads.bandwidth)[:, None]
        scaled = kernel is not None and kernel.scaled
        scale = b[:, None] if scaled else 1.0
        of_queries, of_keys = np.asarray(heads.frames) / scale, np.asarray(heads.of_keys) / scale
        q = move(np.einsum("hdp,qd->pqh", of_queries, queries).astype(dtype))[..., None]
        # One product of all coordinates of all heads with the keys, (p, H, N).
        each = np.moveaxis(of_keys, 2, 0).astype(dtype).reshape(-1, x.shape[1])
        k = move((each @ x.astype(dtype).T).reshape(-1, heads.count, len(x)))
        values = _moved(task.target, x.astype(dtype), unit).reshape(DESIGNS, -1)
        truth = _moved(task.target, queries, unit)[:, None]
        deviations, noises = [], []
        for keys, m in zip(np.split(k, DESIGNS, axis=-1), values, strict=True):
            # Sums in the precision of the work, what follows from them in float64, as the engine.
            if kernel is None:
                u, inverse = move(_by_rule(heads, q, keys)), np.ones(())
                mass = u.sum(-1)
            else:
                u = move(_kernel(kernel, q, keys, UNIT if scaled else b.astype(dtype)))
                total = u.sum(-1).astype(float)
                mass = (total > 0).astype(float)
                nothing = 0.0 if vanishes(kernel) else np.nan
                inverse = np.where(total > 0, 1 / total, nothing)
            deviation = (u @ m).astype(float) * inverse - truth
            if constant is not None:
                deviation = deviation + float(constant) * (mass - 1)
            deviations.append(deviation)
            noises.append(float(task.noise_sd) ** 2 * (u**2).sum(-1).astype(float) * inverse**2)
    return np.stack(deviations), np.stack(noises)


def _moved(target: Target, x: np.ndarray, moves: Any) -> Float[np.ndarray, " N"]:
    """m(x) in the precision of x, every step moved; of a function of one's own its ends alone."""
    if not isinstance(target, TrigonometricSeries):
        values = np.asarray(target(jnp.asarray((x + moves(x)).astype(x.dtype))))
        return values + moves(values)
    # As the engine computes it: angles in turns, of which only the broken part counts.
    turns = x @ (np.asarray(target.frequency) / (2 * np.pi)).T.astype(x.dtype)
    turns = turns + (np.asarray(target.phase) / (2 * np.pi)).astype(x.dtype)
    waves = np.cos(2 * np.pi * (turns - np.round(turns) + moves(turns)))
    return (waves + moves(waves)) @ np.asarray(target.amplitude).astype(x.dtype)


def vanishes(rule: Kernel | WeightRule) -> bool:
    """Whether a head may have no key in reach: no kernel of this package without a support."""
    return not isinstance(rule, Kernel) or rule not in KERNELS.values() or rule.support is not None


def _kernel(kernel: Kernel, q: Any, keys: Any, bandwidth: Any) -> np.ndarray:
    """Kernels (Q, H, n) over the largest of each head, 0 where all vanish."""
    keys = keys[:, None]
    if kernel.log_ratio is None or not kernel.scaled:
        log_k = np.asarray(kernel.log_value(q, keys, bandwidth))
    else:
        near = np.clip(q, keys.min(-1, keepdims=True), keys.max(-1, keepdims=True))
        log_k = np.asarray(kernel.log_ratio(q, keys, near))
    peak = log_k.max(-1, keepdims=True)
    return np.exp(log_k - np.where(np.isfinite(peak), peak, 0))


def _by_rule(heads: Heads, q: Any, keys: Any) -> np.ndarray:
    """Weights (Q, H, n) of a weight rule, in float64 as the engine sums them."""
    assert isinstance(heads.rule, WeightRule)  # for the type checker
    bandwidth = heads.bandwidth.astype(keys.dtype)
    return np.stack(
        [_weights_of(heads.rule, one, keys, bandwidth) for one in q[..., 0].swapaxes(0, 1)]
    ).astype(float)


@eqx.filter_jit
def _weights_of(
    rule: WeightRule, query: Float[Array, "p H"], keys: Float[Array, "p H n"], bandwidth: Array
) -> Float[Array, "H n"]:
    return jax.vmap(rule, in_axes=(1, 1, 0))(query, keys, bandwidth)
