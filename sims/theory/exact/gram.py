"""Every term of the decomposition by one Gram product over a law of N points.

With ``S_h = Σ_i K_h(x, X_i)`` and ``1/S = ∫₀^∞ e^{−sS} ds`` every moment of a ratio is an integral
over s, and over t of a second head, of expectations over *one* key
(docs/theory/exact.md). With ``X = s K_h`` and ``r = m − m(x)`` all of them are entries of

::

    G = Φᵀ diag(p) Φ,     Φ = [1 − e^{−X}, X e^{−X}, X e^{−X} r, 1{K_h > 0}]  at the nodes s_j

Sums over s are trapezoid rules in v, of which ``E = −n log φ(s)``, ``φ = E e^{−X}``, is

::

    1/E = e^{−v} + 1/Λ,     Λ = −n log P(K_h = 0),  infinite unless the kernel is compact

In v the density ``n E[X e^{−X}] φ^{n−1}`` of log s is ``e^{−E} dE/dv``, whatever kernel, law and n,
so a fixed number of nodes serves all. A step of log 2 has an error of |Γ(1 + 2πi/log 2)|, about
5e-6; the tails, ∝ e^{±v}, are in the outer weights. Where nodes are far apart in log s, as those of
kernels near 0 or ∞ are, responses are means over their cells. ``a = 1 − φ`` is what is integrated,
so that ``φ^n = exp(n log1p(−a))`` has its digits at any n. Squares are taken about each head's
mean, and all moments are divided by ``E (Σ K_h)(Σ K_g)/(Σ K_h Σ K_g)`` over the probability that
both sums are positive, which is 1 but for the rule's error.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.theory.arrays import Number, Numbers

TILE = 512
"""Points taken at once: their responses then stay in a core's cache."""
ROOM = 16 * TILE
"""Points of a call: more take several."""
WIDE = 3.0
"""Width of a cell in log s above which responses are averaged over it."""
LARGEST = 60.0
"""Bound of log X, where all responses are at their limits."""


# A third faster to compile than with fusion emitters, and as fast to run.
compiled = partial(jax.jit, compiler_options={"xla_cpu_use_fusion_emitters": False})


class Atoms(NamedTuple):
    """A law of N points at a query, as the integrals see it.

    Attributes:
        log_kernel: log K_h at every point, (H, N).
        mass: p, (N,).
        value: r, (N,).
    """

    log_kernel: Float[Numbers, "*R H N"]
    mass: Float[Numbers, "*R N"]
    value: Float[Numbers, "*R N"]


class Nodes(NamedTuple):
    """Nodes of every head.

    Attributes:
        log_s: their places, (H, M).
        edges: those of their cells, (H, M + 1).
        weight: in log s, (H, M), with the right tail in the last.
        tail: what the first weight is multiplied by where the integrand is ∝ e^v.
    """

    log_s: Float[Numbers, "*R H M"]
    edges: Float[Numbers, "*R H M+1"]
    weight: Float[Numbers, "*R H M"]
    tail: Float[Numbers, "*R"]


class Sums(NamedTuple):
    """Expectations over one key, from which all moments follow.

    Attributes:
        single: of every row of Φ times (1, r, r²), (H, 3M + 1, 3).
        twice: of ``X² e^{−X}`` times (1, r, r²), (H, M, 3).
        pairs: entries of G for each head and all after it.
    """

    single: Float[Array, "H 3M+1 3"]
    twice: Float[Array, "H M 3"]
    pairs: list[Float[Array, "3M+1 _"]]


class Moments(NamedTuple):
    """Terms (σ² = 1) at a query by a law of points; without keys in reach f̂ is 0.

    Attributes:
        mean: E f̂_h − m(x), (H,).
        signal: Cov(Σ_i w_hi m(X_i), Σ_i w_gi m(X_i)), (H, H).
        noise: E Σ_i w_hi w_gi, (H, H).
        defect: relative distance of E Σ_i w_hi Σ_j w_gj from the probability of keys in reach,
            before moments are divided by it, (H, H).
        empty: probability of none in reach of a head, (H,).
    """

    mean: Float[Numbers, "*R H"]
    signal: Float[Numbers, "*R H H"]
    noise: Float[Numbers, "*R H H"]
    defect: Float[Numbers, "*R H H"]
    empty: Float[Numbers, "*R H"]


def gram_sums(atoms: Atoms, nodes: Nodes, used: Number, wide: bool) -> Sums:
    """Expectations by points, whose number is a multiple of :data:`TILE`.

    Args:
        atoms: the points.
        nodes: of every head.
        used: number of tiles that have mass; an integer where derivatives are taken.
        wide: whether some cell is above :data:`WIDE`.
    """
    heads, size = nodes.log_s.shape
    width = jnp.maximum(jnp.diff(nodes.edges, axis=1), 1e-6)
    far = (width > WIDE)[..., None]

    def scaled(log_s: Array, log_kernel: Array) -> Array:
        return jnp.exp(jnp.minimum(log_s[..., None] + log_kernel[:, None], LARGEST))

    # Derivatives compute a tile's responses again instead of keeping those of all.
    @jax.checkpoint
    def products(log_kernel: Array, p: Array, r: Array) -> Sums:
        x = scaled(jnp.asarray(nodes.log_s), log_kernel)
        hit = -jnp.expm1(-x)
        once = x * jnp.exp(-x)
        twice = x * once
        if wide:
            x = scaled(jnp.asarray(nodes.edges), log_kernel)
            idle = jnp.exp(-x)
            cell = -jnp.diff(idle, axis=1) / width[..., None]
            once = jnp.where(far, cell, once)
            cell = -jnp.diff((1 + x) * idle, axis=1) / width[..., None]
            twice = jnp.where(far, cell, twice)
        alive = jnp.where(log_kernel > -jnp.inf, 1.0, 0.0)[:, None]
        phi = jnp.concatenate([hit, once, once * r, alive], axis=1)
        measures = jnp.stack([p, p * r, p * r**2], axis=1)
        grams = []
        for h in range(heads - 1):
            grams.append((phi[h] * p) @ phi[h + 1 :].reshape(-1, TILE).T)
        return Sums(phi @ measures, twice @ measures, grams)

    def add(index: Array, total: Sums) -> Sums:
        tile = [jax.lax.dynamic_slice_in_dim(part, index * TILE, TILE, axis=-1) for part in atoms]
        return jax.tree.map(jnp.add, total, products(*tile))

    rows = 3 * size + 1
    pairs = [jnp.zeros((rows, rows * (heads - h - 1))) for h in range(heads - 1)]
    empty = Sums(jnp.zeros((heads, rows, 3)), jnp.zeros((heads, size, 3)), pairs)
    return jax.lax.fori_loop(0, used, add, empty)


def moments_of(sums: Sums, nodes: Nodes, n: Number, truth: Number) -> Moments:
    """Moments from expectations over one key; ``truth`` is m(x)."""
    heads, size = nodes.log_s.shape
    du = jnp.asarray(nodes.weight)
    first_du = du.at[:, 0].multiply(nodes.tail)
    rows = sums.single[:, : 3 * size].reshape(heads, 3, size, 3)
    hit, once = rows[:, 0], rows[:, 1]
    alive = sums.single[:, -1, 0]

    _, centre, (noise, unit, signal) = head_sums(n, (first_du, du), hit[..., 0], once, sums.twice)
    reach = -jnp.expm1(n * log_phi(alive))
    unit = unit / reach
    level = centre + truth
    signal = signal / unit + level**2 * reach * (1 - reach)
    mean = centre * reach - truth * (1 - reach)
    alone = signal, noise / unit, unit - 1
    if heads == 1:
        signal, noise, defect = (part[:, None] for part in alone)
        return Moments(mean, signal, noise, defect, 1 - reach)

    first, second = np.triu_indices(heads, 1)
    parts = [gram.reshape(len(gram), -1, len(gram)) for gram in sums.pairs]
    products = jnp.concatenate(parts, axis=1).swapaxes(0, 1)
    sides = [(rows[of], centre[of], level[of], first_du[of], alive[of]) for of in (first, second)]
    together = _pair_moments(products, sides[0], sides[1], n)
    moments = []
    for diagonal, others in zip(alone, together, strict=True):
        matrix = jnp.diag(diagonal).at[first, second].set(others)
        moments.append(matrix.at[second, first].set(others))
    signal, noise, defect = moments
    return Moments(mean, signal, noise, defect, 1 - reach)


Side = tuple[Array, Array, Array, Array, Array]
"""Of the first or second heads of P pairs: expectations of [hit, once, once r] times (1, r, r²),
(P, 3, M, 3); c = E[f̂ | S > 0] in r and in m, (P,); weights (P, M); P(K > 0), (P,)."""


def _pair_moments(
    products: Float[Array, "P 3M+1 3M+1"], first: Side, second: Side, n: Number
) -> tuple[Array, Array, Array]:
    """Signal, noise and defect of pairs of heads.

    Args:
        products: E of products of rows of Φ of the first head and of the second.
        first: the first heads.
        second: the second heads.
        n: number of keys.
    """
    rows_h, centre_h, level_h, du_h, alive_h = first
    rows_g, centre_g, level_g, du_g, alive_g = second
    size = du_h.shape[1]
    inner = products[:, :-1, :-1].reshape(-1, 3, size, 3, size).transpose(1, 3, 0, 2, 4)
    (both, hit_once, hit_r), (once_hit, once_once, once_r), (r_hit, r_once, r_r) = inner
    here = centre_h[:, None, None]
    there = centre_g[:, None, None]
    area = du_h[:, :, None] * du_g[:, None]
    a = rows_h[:, 0, :, None, 0] + rows_g[:, 0, None, :, 0] - both
    # One key a head: E[X_h e^{−X_h − X_g} (r − c_h)], and the same of g.
    in_h = rows_h[:, 1, :, None, 0] - once_hit
    in_g = rows_g[:, 1, None, :, 0] - hit_once
    centred_h = rows_h[:, 1, :, None, 1] - r_hit - here * in_h
    centred_g = rows_g[:, 1, None, :, 1] - hit_r - there * in_g
    product = r_r - here * once_r - there * (r_once - here * once_once)

    # P(S > 0) of both, and n ∫ E[K_h (r − c_h) e^{−sK_h} 1{K_g = 0}] φ(s, ∞)^{n−1} ds.
    outside_h = _outside(products[:, :-1, -1], rows_h, centre_h, alive_g, du_h, n)
    outside_g = _outside(products[:, -1, :-1], rows_g, centre_g, alive_h, du_g, n)
    reach_h, reach_g, either = (
        -jnp.expm1(n * log_phi(a))
        for a in (alive_h, alive_g, alive_h + alive_g - products[:, -1, -1])
    )
    reach = reach_h + reach_g - either
    noise, unit, signal = sums_of_keys(
        n, area, a, (once_once, product), (in_h, in_g), (centred_h, centred_g), (-2, -1)
    )
    unit = unit / reach
    signal = signal / unit + level_h * level_g * (reach - reach_h * reach_g)
    signal = signal - level_g * outside_h - level_h * outside_g
    return signal, noise / unit, unit - 1


def _outside(
    column: Float[Array, "P 3M"],
    rows: Float[Array, "P 3 M 3"],
    centre: Float[Array, " P"],
    alive: Float[Array, " P"],
    du: Float[Array, "P M"],
    n: Number,
) -> Float[Array, " P"]:
    """``E[Σ_i w_hi (r_i − c_h) 1{S_g = 0}]``.

    Args:
        column: E of [hit, once, once r] of h where g's kernel is positive.
        rows: E of [hit, once, once r] times (1, r, r²), of h.
        centre: c_h.
        alive: P(K_g > 0).
        du: weights of h.
        n: number of keys.
    """
    hit, once, once_r = jnp.moveaxis(column.reshape(len(column), 3, -1), 1, 0)
    centred = rows[:, 1, :, 1] - once_r - centre[:, None] * (rows[:, 1, :, 0] - once)
    phi = power(n - 1, rows[:, 0, :, 0] + alive[:, None] - hit)
    return jnp.sum(n * du * centred * phi, axis=1)


def sums_of_keys(
    n: Number,
    area: Numbers,
    a: Array,
    twice: tuple[Array, Array],
    once: tuple[Array, Array],
    centred: tuple[Array, Array],
    axes: tuple[int, ...],
) -> tuple[Array, Array, Array]:
    """``E Σ_i w_hi w_gi``, ``E Σ_i w_hi Σ_j w_gj`` and ``E Σ_i w_hi r_i Σ_j w_gj r_j``, r about c.

    One key twice and two keys: ``n ∫ E[K_hK_g …] φ^{n−1}`` and ``n(n−1) ∫ E[K_h …] E[K_g …]
    φ^{n−2}``, over s and t, or over s where g is h (docs/theory/exact.md).

    Args:
        n: number of keys.
        area: weights of the nodes.
        a: 1 − φ.
        twice: expectations of a key in both sums, times 1 and r_h r_g.
        once: of a key in the sum of h, and of one in that of g.
        centred: these times r.
        axes: those of the nodes.
    """
    same = n * area * power(n - 1, a)
    cross = n * (n - 1) * area * power(n - 2, a)
    noise = jnp.sum(same * twice[0], axis=axes)
    total = noise + jnp.sum(cross * once[0] * once[1], axis=axes)
    return noise, total, jnp.sum(same * twice[1] + cross * centred[0] * centred[1], axis=axes)


def head_sums(
    n: Number, weights: tuple[Array, Numbers], a: Array, once: Array, twice: Array
) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """``P(S > 0)`` and ``c = E[f̂ | S > 0]`` of heads, and :func:`sums_of_keys` about c.

    Args:
        n: number of keys.
        weights: of the nodes in log s, the first with and without the left tail, (…, M).
        a: 1 − φ, (…, M).
        once: ``E X e^{−X}`` times (1, r, r²), (…, M, 3).
        twice: ``E X² e^{−X}`` times these.
    """
    same = n * weights[0] * power(n - 1, a)
    mass = jnp.sum(same * once[..., 0], axis=-1)
    safe = jnp.where(mass > 0, mass, 1.0)
    centre = jnp.where(mass > 0, jnp.sum(same * once[..., 1], axis=-1) / safe, 0.0)
    shift = centre[..., None]
    square = twice[..., 2] - shift * (2 * twice[..., 1] - shift * twice[..., 0])
    own = once[..., 0]
    centred = once[..., 1] - shift * own
    of_keys = sums_of_keys(
        n, weights[1], a, (twice[..., 0], square), (own, own), (centred, centred), (-1,)
    )
    return mass, centre, of_keys


def power(exponent: Number, a: Array) -> Array:
    """``φ`` to that exponent, ``φ = 1 − a``."""
    return jnp.exp(exponent * log_phi(a))


def log_phi(a: Array) -> Array:
    """``log φ``."""
    return jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16))


@partial(compiled, static_argnames="wide")
def randomised_sums(atoms: Atoms, nodes: Nodes, used: Number, wide: bool) -> Sums:
    """:func:`gram_sums` of each of R sets of points."""
    return jax.lax.map(lambda item: gram_sums(item[0], item[1], used, wide), (atoms, nodes))


@compiled
def randomised_moments(sums: Sums, nodes: Nodes, n: Number, truth: Number) -> Moments:
    """:func:`moments_of` each of R sets of points."""
    return jax.lax.map(lambda item: moments_of(item[0], item[1], n, truth), (sums, nodes))
