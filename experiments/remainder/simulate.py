"""Variances of heads, exact and of the linearised heads, with control variates of mean zero."""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from sims.montecarlo import Fold, Replicates
from sims.problem import Heads, Task
from sims.simulation import draw
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit
from sims.theory import first_order_arrays


class Problem(NamedTuple):
    """What is simulated, and what the linearisation needs to know of it.

    Attributes:
        task: design, target, noise.
        heads: H heads.
        queries: (Q, d).
        limit: m* (Q, H).
        log_mass: log E K (Q, H).
        signal: v = E A² (Q, H).
        overlap: r = E k² (Q, H).
    """

    task: Task
    heads: Heads
    queries: ArrayLike
    limit: ArrayLike
    log_mass: ArrayLike
    signal: ArrayLike
    overlap: ArrayLike


class Sums(NamedTuple):
    """Sums over replicates, with K the controls after a leading 1, i and j their numbers.

    Attributes:
        controls: of K_i K_j, (size, i, j).
        products: of K_i times the noise variance, its remainder, and the squares of both estimates
            of :func:`replicate`, averaged over queries and heads, (size, i, 4).
        estimates: of K_i times both estimates, (Q, H, size, i, 2).
    """

    controls: Array
    products: Array
    estimates: Array


CONTROLS = 7
"""Control variates; those of the noise variance are the first three."""


def units(experiment: Experiment) -> dict[str, Unit]:
    """A point a kernel, whose problems differ in n alone: fewer keys are the first of the most."""
    kernels: dict[str, dict[int, Problem]] = {}
    for point in sorted(experiment.points, key=lambda point: point.spec.n):
        task, heads, n, queries = point.spec.build()
        kernels.setdefault(point.spec.heads.kernel, {})[n] = linearised(task, heads, queries)
    return {
        kernel: SampledUnit(sampler(next(iter(problems.values())), tuple(problems)))
        for kernel, problems in kernels.items()
    }


def linearised(task: Task, heads: Heads, queries: ArrayLike) -> Problem:
    """The problem with the limits, masses and means of squares of first-order theory."""
    law = first_order_arrays(task, heads, 1.0, queries)
    signal, overlap = (
        jnp.diagonal(part, axis1=1, axis2=2)
        for part in (law.signal_covariance, law.noise_covariance / task.noise_sd**2)
    )
    return Problem(task, heads, queries, law.limit, law.log_mass, signal, overlap)


def sampler(problem: Problem, sizes: tuple[int, ...]) -> Replicates:
    """Every variance and remainder times every control, and products of controls.

    Args:
        problem: its n is not used.
        sizes: n, ascending.
    """
    terms = ("noise_variance", "noise_variance_remainder", "variance", "variance_remainder")
    return Replicates(
        partial(replicate, sizes=sizes),
        constants=problem,
        reduce=Fold(partial(no_sums, sizes=len(sizes)), added, moments),
        dims={
            **dict.fromkeys(terms, ("size", "control")),
            "controls": ("size", "control", "other"),
        },
        coords={"size": list(sizes)},
    )


def replicate(
    key: Array, problem: Problem, _: None, *, sizes: tuple[int, ...]
) -> tuple[Float[Array, "size i"], Float[Array, "size 4"], Float[Array, "Q H size 2"]]:
    """Controls after a leading 1, variances and squares, and estimates of one draw of the keys.

    With ``k_i = K(x, X_i)/E K``, ``A_i = k_i (m(X_i) − m*)``, ``a`` the mean of A and ``1 + δ``
    that of k: ``g − m* = a/(1 + δ)`` and ``Σ w² = Σ k_i²/(n + nδ)²``, where first order has ``a``
    and ``Σ k_i²/n²``. The differences are ``−2a²δ`` and ``−2δ Σ k_i²/n²`` to the next order, whose
    spread is nearly all in products of different keys. These have mean 0, as E A = 0 and E k = 1,
    and with the means of squares, less their expectations v and r, they are control variates.
    """
    task, heads, queries, *known = problem
    n, noise_sd = jnp.asarray(sizes, float), task.noise_sd
    x, _ = draw(task, key, max(sizes))
    seen, values = jnp.einsum("hdp,nd->phn", heads.frames, x), task.target(x)

    def sums(values: Array) -> Array:
        """Over the first n, (H, size)."""
        parts = [values[:, i:j].sum(1) for i, j in pairwise((0, *sizes))]
        return jnp.cumsum(jnp.stack(parts, axis=1), axis=1)

    def at(item: tuple[Array, list[Array]]) -> tuple[Array, ...]:
        query, parts = item
        limit, log_mass, v, r = (part[:, None] for part in parts)
        log_k = heads.kernel.log_value(query[..., None], seen, heads.bandwidth[:, None])
        k = jnp.exp(log_k - log_mass)
        signal = k * (values - limit)
        a, delta = sums(signal) / n, sums(k) / n - 1
        squares, s = sums(signal**2) / n**2, sums(k**2) / n**2
        noise = noise_sd**2 * s / (1 + delta) ** 2
        # Σ (k_i − 1)²/n² = s − (1 + 2δ)/n
        controls = (
            r / n * delta,
            s - r / n,
            r / n * (delta**2 - s + (1 + 2 * delta) / n),
            v / n * delta,
            squares - v / n,
            a**2 - squares,
            (a**2 - squares) * delta,
        )
        g = a / (1 + delta)
        products = (noise, noise - noise_sd**2 * s, g**2, a**2)
        every = ((jnp.ones_like(a), *controls), products, (g, a))
        return tuple(jnp.stack(part, axis=-1) for part in every)

    along = jnp.einsum("hdp,qd->qph", heads.frames, queries)
    controls, products, estimates = jax.lax.map(at, (along, known))
    return controls.mean((0, 1)), products.mean((0, 1)), estimates


def no_sums(problem: Problem, *, sizes: int) -> Sums:
    """Before the first replicate."""
    count = CONTROLS + 1
    return Sums(
        jnp.zeros((sizes, count, count)),
        jnp.zeros((sizes, count, 4)),
        jnp.zeros((*jnp.shape(problem.limit), sizes, count, 2)),
    )


def added(carry: Sums, value: tuple[Array, Array, Array], _: Array) -> Sums:
    """The sums with one more replicate."""
    controls, products, estimates = value
    return Sums(
        carry.controls + jnp.einsum("si,sj->sij", controls, controls),
        carry.products + jnp.einsum("si,st->sit", controls, products),
        carry.estimates + jnp.einsum("si,qhsv->qhsiv", controls, estimates),
    )


def moments(carry: Sums, replicates: int) -> dict[str, Array]:
    """Means of the products; signal variances are sample variances, unbiased."""
    means = carry.estimates[..., :1, :] / replicates
    # Σ K (g − ḡ)² = Σ K g² − 2 ḡ Σ K g + ḡ² Σ K
    squares = (
        carry.products[..., 2:]
        - 2 * (means * carry.estimates).mean((0, 1))
        + (means**2).mean((0, 1)) * carry.controls[:, 0, :, None]
    )
    signal, linear = jnp.moveaxis(squares / (replicates - 1), -1, 0)
    noise, less = jnp.moveaxis(carry.products[..., :2] / replicates, -1, 0)
    return {
        "noise_variance": noise,
        "noise_variance_remainder": less,
        "variance": signal + noise,
        "variance_remainder": signal - linear + less,
        "controls": carry.controls / replicates,
    }
