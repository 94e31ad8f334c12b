"""The Laplace integrals of a pair of heads, from what happens where both kernels reach.

Formulas and notation: :mod:`sims.theory.exact_integrals`. A pair adds to its heads' own curves only
the :class:`Contractions` below: matrix products over the nodes for all (s, t) at once. Here they
are taken on product grids; :mod:`sims.theory.exact_scattered` has the other rules.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel
from sims.theory.exact_integrals import (
    TILE,
    Head,
    Regression,
    Single,
    log_weights,
    nodes_of,
    relative,
    stacked_responses,
    tile,
    tiles,
)


class Pair(NamedTuple):
    """A pair's integrals: signal and noise covariance (σ² = 1), defect."""

    signal: Array
    noise: Array
    defect: Array


class Mehler(NamedTuple):
    """The joint density over the marginals': ``scale · exp(Σ pull x y − shrink (x² + y²))``."""

    pull: Float[Array, " c"]
    shrink: Float[Array, " c"]
    log_scale: Float[Array, ""]


class Contractions(NamedTuple):
    """Expectations over one key for all (s, t), (M_h, M_g), on a pair's nodes.

    ``hit``, ``once`` stand for 1 − e^{−X} and X e^{−X}; the first letter is head h's, the second
    head g's. A trailing m: times E[m | node] − c_h.
    """

    hit_hit: Array
    hit_once: Array
    once_hit: Array
    once_once: Array
    hit_once_m: Array
    once_hit_m: Array
    once_once_m: Array


def contractions(total: Array, count: int) -> Contractions:
    """Cut ``[hit; once] @ [hit, once, hit m, once m, …]``, (2M, ≥ 4M), into its parts."""
    m = count
    return Contractions(
        total[:m, :m],
        total[:m, m : 2 * m],
        total[m:, :m],
        total[m:, m : 2 * m],
        total[:m, 3 * m : 4 * m],
        total[m:, 2 * m : 3 * m],
        total[m:, 3 * m : 4 * m],
    )


def pair_terms(
    kernel: Kernel,
    step: Array,
    n: Array,
    singles: tuple[Single, Single],
    c: Contractions,
) -> tuple[Pair, Array]:
    """A pair's integrals; ``n ∬ ⟨K_h K_g (m − c_h)²⟩ φ^{n−1} ds dt`` is missing in ``signal``.

    Returns:
        The terms; and the weights Q (M_h, M_g) with which the missing part is
        ``Σ_uv Q(u, v) E[X_h e^{−X_h} X_g e^{−X_g} (m − c_h)²]``.
    """
    first, second = singles
    count = first.hit.shape[0]
    du = log_weights(kernel, count, step)
    log_phi = jnp.log1p(-jnp.clip(first.hit[:, None] + second.hit - c.hit_hit, 0.0, 1 - 1e-16))
    area = du[:, None] * du
    outer = n * area * jnp.exp((n - 1) * log_phi)
    noise = jnp.sum(outer * c.once_once)
    shift = first.centre - second.centre
    in_h = first.weight[:, None] - c.once_hit
    in_g = second.weight - c.hit_once
    m_h = (first.weighted - first.centre * first.weight)[:, None] - c.once_hit_m
    m_g = (second.weighted - second.centre * second.weight) - c.hit_once_m - shift * c.hit_once
    cross = n * (n - 1) * area * jnp.exp((n - 2) * log_phi)
    signal = shift * jnp.sum(outer * c.once_once_m) + jnp.sum(cross * m_h * m_g)
    both: Any = 1.0
    if kernel.support is not None:
        # f̂ = G + c·1{S > 0} with G = Σ w (m − c): what the empty neighbourhoods add. E G = 0, so
        # E[G_h 1{S_g > 0}] is −E[G_h 1{S_g = 0}]; u = ∞ is the last point of the grids.
        others_h = n * du @ (m_h[:, -1] * jnp.exp((n - 1) * log_phi[:, -1]))
        others_g = n * du @ (m_g[-1] * jnp.exp((n - 1) * log_phi[-1]))
        both = first.reach + second.reach + jnp.expm1(n * log_phi[-1, -1])
        signal += first.centre * second.centre * (both - first.reach * second.reach)
        signal -= second.centre * others_h + first.centre * others_g
    return (
        Pair(
            signal=signal,
            noise=noise,
            defect=relative(
                jnp.abs(noise + jnp.sum(cross * in_h * in_g) - both), jnp.maximum(both, 1e-3)
            ),
        ),
        outer,
    )


ROWS = 32
"""Nodes of head h taken at once, against a tile of head g's."""
NEGLIGIBLE = 1e-9
"""Share of ``E K_h K_g`` that tiles left out of Var[m | node], which costs O(J²) a node, hold."""


def product_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Any,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    regression: Regression,
    mehler: Mehler,
) -> Pair:
    """A pair on the product of the two heads' own grids, for canonical correlations below 1.

    In canonical coordinates the joint density is the product of the marginals and of
    ``(1 − ρ²)^{−1/2} exp[(ρ x y − ρ²(x² + y²)/2)/(1 − ρ²)]`` for each direction (Mehler's kernel).
    """
    c = mehler.pull.shape[0]
    rows, columns = tiles(rule[0][2], ROWS), tiles(rule[1][2])

    def prepared(index: int, size: int, used: Array, loading: Array, offset: Array) -> Any:
        """Of all tiles in use: [hit; once] (tiles, 2M, size), ξ, [cos; sin], log weights."""
        head, (points, log_weight, _) = heads[index], rule[index]

        def fill(i: Array, buffers: Any) -> Any:
            z, log_z = nodes_of(head, tile(points, i, size), tile(log_weight, i, size))
            angle = z @ loading.T + offset
            block = (
                stacked_responses(kernel, head, z, step, count),
                z,
                jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1),
                log_z - (z[:, :c] ** 2) @ mehler.shrink,
            )
            return tuple(
                jax.lax.dynamic_update_index_in_dim(buffer, part, i, 0)
                for buffer, part in zip(buffers, block, strict=True)
            )

        number = len(points) // size
        shapes = (2 * count, size), (size, points.shape[1]), (size, 2 * len(loading)), (size,)
        return jax.lax.fori_loop(0, used, fill, tuple(jnp.zeros((number, *s)) for s in shapes))

    left, xi, first, log_w = prepared(0, ROWS, rows, regression.first, phase)
    right, eta, second, log_v = prepared(1, TILE, columns, regression.second, jnp.zeros(()))
    signs = jnp.concatenate([regression.mean, -regression.mean])

    def measures(i: Array, j: Array) -> tuple[Array, Array]:
        """Joint weights and E[m | node] − c_h of a tile (ROWS, TILE)."""
        log_weight = (xi[i, :, :c] * mehler.pull) @ eta[j, :, :c].T + log_w[i][:, None] + log_v[j]
        mean = (first[i] * signs) @ second[j].T - singles[0].centre
        return jnp.exp(log_weight + mehler.log_scale), mean

    def contract(i: Array, total: Array) -> Array:
        def add(j: Array, part: Array) -> Array:
            weight, mean = measures(i, j)
            return part + jnp.concatenate([weight, weight * mean]) @ right[j].T

        part = jax.lax.fori_loop(0, columns, add, jnp.zeros((2 * ROWS, 2 * count)))
        return total + left[i] @ jnp.concatenate([part[:ROWS], part[ROWS:]], axis=1)

    total = jax.lax.fori_loop(0, rows, contract, jnp.zeros((2 * count, 4 * count)))
    terms, outer = pair_terms(kernel, step, n, singles, contractions(total, count))
    ignored = NEGLIGIBLE * terms.noise / (rows * columns)

    def square(i: Array, total: Array) -> Array:
        # The share of each node in the integral over (s, t), so that m² is needed once a node.
        share = left[i, count:].T @ outer

        def add(j: Array, total: Array) -> Array:
            weight, mean = measures(i, j)
            psi = weight * (share @ right[j, count:])

            def whole() -> Array:
                half = first.shape[2] // 2
                a, b = first[i][:, None], second[j]
                cosine = a[..., :half] * b[:, :half] - a[..., half:] * b[:, half:]
                sine = a[..., half:] * b[:, :half] + a[..., :half] * b[:, half:]
                variance = (cosine @ regression.cosine) * cosine + (sine @ regression.sine) * sine
                return jnp.sum(psi[..., None] * variance)

            variance = jax.lax.cond(jnp.sum(psi) > ignored, whole, lambda: jnp.zeros(()))
            return total + jnp.sum(psi * mean**2) + variance

        return jax.lax.fori_loop(0, columns, add, total)

    missing = jax.lax.fori_loop(0, rows, square, jnp.zeros(()))
    return terms._replace(signal=terms.signal + missing)
