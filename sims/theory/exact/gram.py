"""Every term of the decomposition by one Gram product over a law of N points.

Formulas and notation are those of :mod:`sims.theory.exact.laplace`: with ``X = s K_h`` and
``r = m − m(x)``, all expectations over one key that two heads need are entries of

::

    G = Φᵀ diag(p) Φ,     Φ = [1 − e^{−X}, X e^{−X}, X e^{−X} r]  at the nodes s_j of every head

Sums over s are trapezoid rules of step log 2 or less in ``t = log(−log φ_h(s))``: the density
``n E[X e^{−X}] φ^{n−1}`` in log s is ``n e^t exp(−n e^t)`` in t, whatever kernel and law, so a
fixed number of nodes serves all, with an error of |Γ(1 + 2πi/log 2)|, about 5e-6; the left tail,
∝ e^t, is in the first weight. Where nodes are far apart in log s, as those of kernels near 0 or ∞
are, responses are means over their cells. ``a = 1 − φ`` is what is integrated, so that
``φ^n = exp(n log1p(−a))`` has its digits at any n. Squares are taken about each head's mean, and
all moments are divided by ``E (Σ K_h)(Σ K_g)/(Σ K_h Σ K_g)``, which is 1 but for the rule's error.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.theory.arrays import Number, Numbers

SPAN = 18 * float(np.log(2))
"""Length of the lattice in t: its step is this over the number of nodes."""
TILE = 512
"""Points taken at once: their responses then stay in a core's cache."""
WIDE = 3.0
"""Width of a cell in log s above which responses are averaged over it."""
LARGEST = 60.0
"""Bound of log X, where all responses are at their limits."""


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


class Moments(NamedTuple):
    """Terms (σ² = 1) at a query by a law of points.

    Attributes:
        mean: E f̂_h − m(x), (H,).
        signal: Cov(Σ_i w_hi m(X_i), Σ_i w_gi m(X_i)), (H, H).
        noise: E Σ_i w_hi w_gi, (H, H).
        defect: distance of E Σ_i w_hi Σ_j w_gj from 1, before moments are divided by it, (H, H).
    """

    mean: Float[Numbers, "*R H"]
    signal: Float[Numbers, "*R H H"]
    noise: Float[Numbers, "*R H H"]
    defect: Float[Numbers, "*R H H"]


def gram_moments(
    atoms: Atoms,
    nodes: Float[Array, "H M"],
    edges: Float[Array, "H M+1"],
    du: Float[Array, "H M"],
    n: Number,
    used: Number,
    wide: bool,
) -> Moments:
    """Moments by points, whose number is a multiple of :data:`TILE`.

    Args:
        atoms: the points.
        nodes: log s_j of every head.
        edges: of their cells.
        du: their weights, without the tail.
        n: number of keys.
        used: number of tiles that have mass; an integer where derivatives are taken.
        wide: whether some cell is above :data:`WIDE`.
    """
    heads, size = nodes.shape
    width = jnp.maximum(jnp.diff(edges, axis=1), 1e-6)
    step = SPAN / size
    far = width > WIDE
    if wide:
        # The midpoint of a cell is that to its mean, where responses are ∝ e^t.
        du = jnp.where(far, step / (2 * np.sinh(step / 2)) * width, du)

    def scaled(log_s: Array, log_kernel: Array) -> Array:
        return jnp.exp(jnp.minimum(log_s + log_kernel[:, None], LARGEST))

    # Derivatives compute a tile's responses again instead of keeping those of all.
    @jax.checkpoint
    def products(log_kernel: Array, p: Array, r: Array) -> Any:
        x = scaled(nodes[..., None], log_kernel)
        hit = -jnp.expm1(-x)
        once = x * jnp.exp(-x)
        twice = x * once
        if wide:
            x = scaled(edges[..., None], log_kernel)
            idle = jnp.exp(-x)
            cell = -jnp.diff(idle, axis=1) / width[..., None]
            once = jnp.where(far[..., None], cell, once)
            cell = -jnp.diff((1 + x) * idle, axis=1) / width[..., None]
            twice = jnp.where(far[..., None], cell, twice)
        measures = jnp.stack([p, p * r, p * r**2], axis=1)
        singles = jnp.concatenate([hit, once, twice], axis=1) @ measures
        phi = jnp.concatenate([hit, once, once * r], axis=1)
        grams = []
        for h in range(heads - 1):
            grams.append((phi[h] * p) @ phi[h + 1 :].reshape(-1, TILE).T)
        return singles, grams

    def add(index: Array, total: Any) -> Any:
        tile = [jax.lax.dynamic_slice_in_dim(part, index * TILE, TILE, axis=-1) for part in atoms]
        return jax.tree.map(jnp.add, total, products(*tile))

    zeros = [jnp.zeros((3 * size, 3 * size * (heads - h - 1))) for h in range(heads - 1)]
    total = jnp.zeros((heads, 3 * size, 3)), zeros
    singles, grams = jax.lax.fori_loop(0, used, add, total)
    blocks = singles.reshape(heads, 3, size, 3).swapaxes(0, 1)
    tail = -1 / np.expm1(-step)
    mean, *diagonals = _single_moments(blocks, n, du, tail)
    if heads == 1:
        return Moments(mean, *(part[:, None] for part in diagonals))
    first, second = np.triu_indices(heads, 1)
    parts = [gram.reshape(3, size, -1, 3, size) for gram in grams]
    total_parts = jnp.concatenate(parts, axis=2).transpose(0, 3, 2, 1, 4)
    du = du.at[:, 0].multiply(tail)
    pair = _pair_moments(
        total_parts,
        blocks[:2, first],
        blocks[:2, second],
        mean[first],
        mean[second],
        n,
        du[first],
        du[second],
    )
    moments = []
    for alone, together in zip(diagonals, pair, strict=True):
        matrix = jnp.diag(alone).at[first, second].set(together)
        moments.append(matrix.at[second, first].set(together))
    return Moments(mean, *moments)


def _single_moments(
    blocks: Float[Array, "3 H M 3"], n: Number, du: Float[Array, "H M"], tail: float
) -> tuple[Array, Array, Array, Array]:
    """Mean, signal, noise and defect of every head, from E of (1, r, r²) times each response."""
    hit, once, twice = blocks
    same = jnp.asarray(n * du * _power(n - 1, hit[..., 0]))
    first = same.at[:, 0].multiply(tail)
    mean = jnp.sum(first * once[..., 1], axis=1) / jnp.sum(first * once[..., 0], axis=1)
    shift = mean[:, None]
    # One key twice, and two keys (docs/theory.md, "Exact at every n").
    cross = n * (n - 1) * du * _power(n - 2, hit[..., 0])
    square = twice[..., 2] - shift * (2 * twice[..., 1] - shift * twice[..., 0])
    centred = once[..., 1] - shift * once[..., 0]
    noise = jnp.sum(same * twice[..., 0], axis=1)
    unit = noise + jnp.sum(cross * once[..., 0] ** 2, axis=1)
    signal = jnp.sum(same * square + cross * centred**2, axis=1)
    return mean, signal / unit, noise / unit, unit - 1


def _pair_moments(
    parts: Float[Array, "3 3 P M M"],
    first: Float[Array, "2 P M 3"],
    second: Float[Array, "2 P M 3"],
    mean_first: Float[Array, " P"],
    mean_second: Float[Array, " P"],
    n: Number,
    du_first: Float[Array, "P M"],
    du_second: Float[Array, "P M"],
) -> tuple[Array, Array, Array]:
    """Signal, noise and defect of pairs of heads.

    Args:
        parts: E of the products of hit, once and once r of the first head (rows) and the second.
        first: E of hit and once times (1, r, r²), of the first heads.
        second: the same of the second heads.
        mean_first: their means.
        mean_second: their means.
        n: number of keys.
        du_first: weights of the first heads' nodes.
        du_second: those of the second heads' nodes.
    """
    (both, hit_once, hit_r), (once_hit, once_once, once_r), (r_hit, r_once, r_r) = parts
    here = mean_first[:, None, None]
    there = mean_second[:, None, None]
    first = first[..., None, :]
    second = second[:, :, None]
    area = n * du_first[:, :, None] * du_second[:, None]
    a = first[0, ..., 0] + second[0, ..., 0] - both
    same = area * _power(n - 1, a)
    cross = (n - 1) * area * _power(n - 2, a)
    # One key a head: E[X_h e^{−X_h − X_g} (r − c_h)], and the same of g.
    in_first = first[1, ..., 0] - once_hit
    in_second = second[1, ..., 0] - hit_once
    centred_first = first[1, ..., 1] - r_hit - here * in_first
    centred_second = second[1, ..., 1] - hit_r - there * in_second
    product = r_r - here * once_r - there * (r_once - here * once_once)
    noise = jnp.sum(same * once_once, axis=(1, 2))
    unit = noise + jnp.sum(cross * in_first * in_second, axis=(1, 2))
    signal = jnp.sum(same * product + cross * centred_first * centred_second, axis=(1, 2))
    return signal / unit, noise / unit, unit - 1


def _power(exponent: Number, a: Array) -> Array:
    """``φ`` to that exponent."""
    return jnp.exp(exponent * jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16)))


# A third faster to compile than with fusion emitters, and as fast to run.
@partial(jax.jit, static_argnames="wide", compiler_options={"xla_cpu_use_fusion_emitters": False})
def randomised_moments(
    atoms: Atoms,
    nodes: Float[Array, "R H M"],
    edges: Float[Array, "R H M+1"],
    du: Float[Array, "R H M"],
    n: Number,
    used: Number,
    wide: bool,
) -> Moments:
    """:func:`gram_moments` of each of R sets of points."""

    def moments(items: tuple[Atoms, Array, Array, Array]) -> Moments:
        return gram_moments(*items, n, used, wide)

    return jax.lax.map(moments, (atoms, nodes, edges, du))
