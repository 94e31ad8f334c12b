"""One replicate: a design is drawn, every head answers every query, the label noise integrates out.

Given the design, with ``g_h(x) = Σ_i w_hi m(X_i)``, ``E[f̂_h | X] = g_h`` and
``Cov(f̂_h, f̂_g | X) = σ² Σ_i w_hi w_gi``. Keys stream through in blocks: exponents keep a running
maximum, and sums taken under an earlier maximum are rescaled, so nothing of size (Q, H, n) exists.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from sims.montecarlo.compiled import divisor
from sims.problem import Heads, Task
from sims.simulation.draws import DRAW_BLOCK, draw_block, target_values
from sims.simulation.heads import (
    ProjectedQueries,
    finite_or_zero,
    left_bandwidth,
    projected_queries,
    scaled_projection,
)
from sims.simulation.native import native_sums, with_native_bits
from sims.simulation.native.cuda import cuda_sums
from sims.simulation.sums import Sums, streamed_sums

KERNEL_SUMS = {"XLA": streamed_sums, "C++": native_sums, "CUDA": cuda_sums}
"""Ways to compute the sums."""

PILOT_DESIGNS = 16
"""Keys of the pilot design, over those of a replicate."""
LEAST_N_EFF = 10.0
"""Effective keys of a replicate, as the pilot finds them, from which the control is used: with
fewer, sharp softmax has K/p with tails so heavy that A adds more spread than it takes."""


class Control(NamedTuple):
    """A control variate for the signal covariance that no theory knows: linear in the keys.

    For any fixed c_h, p_h, ``A_h = (1/n) Σ_i a_hi`` with ``a_hi = K_h(x,X_i)(m(X_i) − c_h)/p_h``
    is a mean of n iid terms, so that ``Cov(A_h, A_g) = Cov(a_h, a_g)/n``, and every replicate
    estimates the right side from n keys where it is a single draw of the left. Hence
    ``s(g) − s(A) + mean of the estimated Cov(a)/n`` is unbiased for Cov(g), whatever c and p. Near
    the limits p = E K and c = E[K m]/p little of its spread is left, as g is A to first order.

    Attributes:
        limit: c_h, (Q, H).
        log_mass: log p_h, (Q, H).
    """

    limit: Float[Array, "Q H"]
    log_mass: Float[Array, "Q H"]


class Shared(NamedTuple):
    """Data that all replicates share; traced."""

    task: Task
    """With a target that has no constant part."""
    heads: Heads
    queries: Float[Array, "Q d"]
    """In float64."""
    control: Control | None = None
    """Control variate at the same queries."""
    constant: Float[Array, ""] | None = None
    """The target's constant part, None for 0: seen only where weights do not sum to 1."""


@dataclass(frozen=True)
class Settings:
    """All that selects a replicate's compilation, next to the shapes of the arrays."""

    n: int
    """Keys of a replicate."""
    key_block: int
    """Keys weighed together."""
    query_block: int
    """Queries weighed together."""
    dtype: str
    """Precision of draws, kernels and sums within a block; sums over blocks are float64."""
    sums: str = "XLA"
    """Implementation of the sums, one of :data:`KERNEL_SUMS`; C++ makes random bits as well."""


class Replicate(NamedTuple):
    """Result of one replicate, in float64."""

    deviation: Float[Array, "Q H"]
    """g_h(x) − m(x), the conditional mean's error given the design."""
    noise: Float[Array, "Q H H"]
    """σ² Σ_i w_hi w_gi, the conditional covariance given the design."""
    empty: Float[Array, "Q H"]
    """1 where no key was in reach (all K = 0), so that the estimate counts as 0."""
    linear: tuple[Float[Array, "Q H"], Float[Array, "Q H H"]] | None = None
    """A_h of a :class:`Control`, and an unbiased estimate of Cov(A_h, A_g) from these keys."""


def replicate(settings: Settings, key: Array, shared: Shared, batch: None = None) -> Replicate:
    """Draw one design and return the conditional moments of every head at every query.

    Args:
        settings: static sizes and choices.
        key: the replicate's random key.
        shared: the problem; its queries are a multiple of ``settings.query_block``.
        batch: nothing is shared by the replicates of a batch alone.
    """
    sums = _stream(settings, key, shared)
    done = finish_replicate(shared, sums)
    if shared.control is not None:
        done = done._replace(linear=_linear(sums, shared.control, settings.n))
    return done


@partial(jax.jit, static_argnames="settings")
def pilot(settings: Settings, key: Array, shared: Shared) -> Control:
    """The limits, from one design of :data:`PILOT_DESIGNS` times the keys of a replicate.

    Switched off (p = ∞, so A = 0) where a replicate's Kish number of effective keys,
    ``(Σ K)²/Σ K²`` of the pilot over :data:`PILOT_DESIGNS`, is below :data:`LEAST_N_EFF`. As no
    batch uses this design, the choice leaves the estimates unbiased.
    """
    settings = replace(settings, n=PILOT_DESIGNS * settings.n)
    sums = _stream(settings, key, shared)
    total = sums.linear[..., -1]
    some = total > 0
    safe = jnp.where(some, total, 1.0)
    n_eff = total**2 / jnp.where(some, jnp.diagonal(sums.gram, axis1=-2, axis2=-1), 1.0)
    useful = n_eff >= LEAST_N_EFF * PILOT_DESIGNS
    log_mass = sums.peak + jnp.log(safe) - jnp.log(float(settings.n))
    return Control(
        jnp.where(some, sums.linear[..., 0] / safe, 0.0), jnp.where(useful, log_mass, jnp.inf)
    )


def _stream(settings: Settings, key: Array, shared: Shared) -> Sums:
    """The sums over all n keys of one replicate."""
    if settings.sums == "C++":
        key = with_native_bits(key)
    queries = projected_queries(shared.heads, shared.queries, settings.dtype)
    shape = (len(shared.queries), shared.heads.count)
    pairs = jnp.zeros((*shape, shape[1]))
    sums = Sums(
        jnp.full(shape, -jnp.inf),
        pairs,
        jnp.zeros((*shape, 2)),
        None if shared.control is None else pairs,
    )

    def absorb(sums: Sums, x: Array) -> tuple[Sums, None]:
        return _merge(sums, sums_over(settings, shared, queries, x)), None

    def absorb_draw(sums: Sums, block: int | Array, size: int, together: int = 1) -> Sums:
        def drawn(block: int | Array) -> Array:
            return draw_block(shared.task, key, block, size, settings.dtype)[0]

        if together == 1:
            x = drawn(block)
        else:
            x = jax.vmap(drawn)(block * together + jnp.arange(together))
            x = x.reshape(-1, x.shape[-1])
            size = together * size
        step = min(settings.key_block, size)
        complete = size // step * step
        if complete == step:
            sums, _ = absorb(sums, x[:step])
        else:
            sums, _ = lax.scan(absorb, sums, x[:complete].reshape(-1, step, x.shape[1]))
        return sums if complete == size else absorb(sums, x[complete:])[0]

    full, rest = divmod(settings.n, DRAW_BLOCK)
    if full:
        together = divisor(full, settings.key_block // DRAW_BLOCK)
        sums = lax.fori_loop(
            0, full // together, lambda i, s: absorb_draw(s, i, DRAW_BLOCK, together), sums
        )
    if rest:
        sums = absorb_draw(sums, full, rest)
    return sums


def sums_over(
    settings: Settings,
    shared: Shared,
    queries: ProjectedQueries,
    x: Float[Array, "n d"],
) -> Sums:
    """The sums over given keys x, at projected queries."""
    heads = shared.heads
    control = shared.control
    values = target_values(shared.task.target, x)
    return KERNEL_SUMS[settings.sums](
        heads.kernel,
        queries,
        scaled_projection(heads, heads.of_keys, x, x.dtype),
        jnp.stack([values, jnp.ones_like(values)]),
        left_bandwidth(heads, x.dtype),
        settings.query_block,
        None if control is None else control.limit,
    )


def _merge(old: Sums, new: Sums) -> Sums:
    """Sums over both sets of keys, under the larger of the two shifts."""
    top = jnp.maximum(old.peak, new.peak)
    a = jnp.exp(old.peak - finite_or_zero(top))[..., None]
    b = jnp.exp(new.peak - finite_or_zero(top))[..., None]

    def pairs(old: Array, new: Array) -> Array:
        return old * a * a.mT + new * b * b.mT

    # A block with no key in reach has zero sums; its factor exp(−inf) = 0 agrees.
    return Sums(
        top,
        pairs(old.gram, new.gram),
        old.linear * a + new.linear * b,
        None if old.centred is None or new.centred is None else pairs(old.centred, new.centred),
    )


def finish_replicate(shared: Shared, sums: Sums) -> Replicate:
    """The conditional moments from the sums over all keys."""
    total = sums.linear[..., -1]
    empty = total <= 0
    inverse = jnp.where(empty, 0.0, 1 / jnp.where(empty, 1.0, total))
    gram = sums.gram * inverse[..., None] * inverse[..., None, :]
    return weighted(shared, sums.linear[..., 0] * inverse, jnp.where(empty, 0.0, 1.0), gram, empty)


def weighted(
    shared: Shared,
    mean: Float[Array, "Q H"],
    mass: Float[Array, "Q H"],
    gram: Float[Array, "Q H H"],
    empty: Bool[Array, "Q H"],
) -> Replicate:
    """The conditional moments from sums with the weights w_hi.

    Args:
        shared: the problem.
        mean: ``Σ_i w_hi m(X_i)``.
        mass: ``Σ_i w_hi``.
        gram: ``Σ_i w_hi w_gi``.
        empty: where no key is in reach.
    """
    task = shared.task
    deviation = mean - task.target(shared.queries)[:, None]
    if shared.constant is not None:  # f̂ = c Σ w + f̂ of the rest, m = c + the rest
        deviation = deviation + shared.constant * (mass - 1)
    return Replicate(deviation, task.noise_sd**2 * gram, empty.astype(jnp.float64))


def _linear(sums: Sums, control: Control, n: int) -> tuple[Array, Array]:
    scale = jnp.exp(finite_or_zero(sums.peak) - control.log_mass)
    value = scale / n * (sums.linear[..., 0] - control.limit * sums.linear[..., -1])
    assert sums.centred is not None  # for the type checker; centres were given
    products = sums.centred * scale[..., :, None] * scale[..., None, :]
    outer = n * value[..., :, None] * value[..., None, :]
    return value, (products - outer) / ((n - 1) * n)
