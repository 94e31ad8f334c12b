"""The integrals of a pair of heads, on the product of the two heads' own grids.

Formulas and notation: :mod:`sims.theory.exact.laplace`. A pair adds to its heads' own curves only
expectations over one key, matrix products over the nodes for all (s, t) at once. Nodes are (ξ_h,
ξ_g) in canonical coordinates, in which the joint density is the product of the marginals and of
``(1 − ρ²)^{−1/2} exp[(ρ x y − ρ²(x² + y²)/2)/(1 − ρ²)]`` for each direction (Mehler's kernel), for
canonical correlations ρ below 1.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.theory.arrays import Numbers
from sims.theory.exact.gram import compiled, log_phi, power, sums_of_keys
from sims.theory.exact.laplace import (
    TILE,
    Head,
    Nodes,
    Regression,
    Setting,
    Single,
    relative,
    tiles,
)

ROWS = 32
"""Nodes of head h taken at once, against a tile of head g's."""

Buffers = tuple[Array, Array, Array, Array]
"""Responses, nodes, cosines and sines, and log weights of all tiles of a head."""


class Pair(NamedTuple):
    """A pair's integrals: signal and noise covariance (σ² = 1), and the defect."""

    signal: Float[Numbers, ""] | float
    noise: Float[Numbers, ""] | float
    defect: Float[Numbers, ""] | float


Terms = TypeVar("Terms", Single, Pair)
"""Result of a rule for a head or a pair."""


class Couple(NamedTuple):
    """Two heads at one query in canonical coordinates.

    Attributes:
        heads: both, rotated so that ``Cov(ξ_h, ξ_g) = diag(ρ)``.
        correlation: ρ (min(k_h, k_g),), descending.
    """

    heads: tuple[Head, Head]
    correlation: Float[Numbers, " c"]


@compiled
def product_pair(
    setting: Setting,
    grids: tuple[Nodes, Nodes],
    couple: Couple,
    singles: tuple[Single, Single],
    regression: Regression,
) -> Pair:
    """A pair on the product of two grids.

    Args:
        setting: kernel, keys and grid.
        grids: nodes of the unit ball of each head.
        couple: the heads.
        singles: their own integrals and curves, on one grid in log s each.
        regression: the target given a joint node.
    """
    size = setting.size
    # The joint density over the marginals': scale · exp(Σ pull x y − shrink (x² + y²)).
    rho = couple.correlation
    gap = 1 - rho**2
    pull = rho / gap
    shrink = 0.5 * rho * pull
    log_scale = -0.5 * jnp.sum(jnp.log(gap))
    c = len(rho)
    rows = tiles(grids[0].used, ROWS)
    columns = tiles(grids[1].used)

    def prepare_tiles(
        index: int, length: int, used: Array, loading: Numbers, offset: Numbers
    ) -> Buffers:
        """Prepared tiles in use: [hit; once] (tiles, 2M, length), ξ, [cos; sin], log weights."""
        head = couple.heads[index]
        nodes = head.placed(grids[index])

        def fill(i: Array, buffers: Buffers) -> Buffers:
            z, log_z = nodes.tile(i, length)
            angle = z @ loading.T + offset
            block = (
                jnp.concatenate(setting.responses(head, z)[:2]),
                z,
                jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1),
                log_z - (z[:, :c] ** 2) @ shrink,
            )
            return jax.tree.map(
                lambda buffer, part: jax.lax.dynamic_update_index_in_dim(buffer, part, i, 0),
                buffers,
                block,
            )

        count, rank = nodes.points.shape
        shapes = (2 * size, length), (length, rank), (length, 2 * len(loading)), (length,)
        empty = tuple(jnp.zeros((count // length, *shape)) for shape in shapes)
        return jax.lax.fori_loop(0, used, fill, empty)

    first_rows, xi, first, log_w = prepare_tiles(0, ROWS, rows, regression.first, regression.phase)
    right, eta, second, log_v = prepare_tiles(1, TILE, columns, regression.second, jnp.zeros(()))
    signs = jnp.concatenate([regression.mean, -regression.mean])

    def measures(i: Array, j: Array) -> tuple[Array, Array]:
        """Joint weights and E[m | node] − c_h of a tile (ROWS, TILE)."""
        log_weight = (xi[i, :, :c] * pull) @ eta[j, :, :c].T + log_w[i][:, None] + log_v[j]
        # cos(α + β) = cos α cos β − sin α sin β, so the mean is one product.
        mean = (first[i] * signs) @ second[j].T - singles[0].centre
        return jnp.exp(log_weight + log_scale), mean

    def contract(i: Array, total: Array) -> Array:
        def add(j: Array, part: Array) -> Array:
            weight, mean = measures(i, j)
            return part + jnp.concatenate([weight, weight * mean]) @ right[j].T

        part = jax.lax.fori_loop(0, columns, add, jnp.zeros((2 * ROWS, 2 * size)))
        return total + first_rows[i] @ jnp.concatenate([part[:ROWS], part[ROWS:]], axis=1)

    total = jax.lax.fori_loop(0, rows, contract, jnp.zeros((2 * size, 4 * size)))
    terms, outer = pair_terms(setting, singles, total)

    def square(i: Array, total: Array) -> Array:
        # The share of each node in the integral over (s, t), so that m² is needed once a node.
        share = first_rows[i, size:].T @ outer

        def add(j: Array, total: Array) -> Array:
            weight, mean = measures(i, j)
            psi = weight * (share @ right[j, size:])

            # Cosines and sines of the sums of both heads' angles.
            half = first.shape[2] // 2
            a = first[i][:, None]
            b = second[j]
            cosine = a[..., :half] * b[:, :half] - a[..., half:] * b[:, half:]
            sine = a[..., half:] * b[:, :half] + a[..., :half] * b[:, half:]
            variance = (cosine @ regression.cosine) * cosine + (sine @ regression.sine) * sine
            return total + jnp.sum(psi * (mean**2 + jnp.sum(variance, axis=-1)))

        return jax.lax.fori_loop(0, columns, add, total)

    missing = jax.lax.fori_loop(0, rows, square, jnp.zeros(()))
    return terms._replace(signal=terms.signal + missing)


def pair_terms(
    setting: Setting, singles: tuple[Single, Single], total: Float[Array, "rows columns"]
) -> tuple[Pair, Float[Numbers, "M M"]]:
    """A pair's integrals; ``n ∬ ⟨K_h K_g (m − c_h)²⟩ φ^{n−1} ds dt`` is missing in ``signal``.

    Args:
        setting: kernel, keys and grid.
        singles: both heads' integrals.
        total: expectations over one key, ``[hit; once] @ [hit, once, hit m, once m, …]``: rows are
            head h's, ``hit`` and ``once`` stand for 1 − e^{−X} and X e^{−X}, a trailing m for
            E[m | node] − c_h.

    Returns:
        The terms; and the weights Q (M_h, M_g) with which the missing part is
        ``Σ_uv Q(u, v) E[X_h e^{−X_h} X_g e^{−X_g} (m − c_h)²]``.
    """
    first, second = singles
    n = setting.n
    du = setting.weights()
    parts = total[:, : 4 * setting.size].reshape(2, setting.size, 4, setting.size).swapaxes(1, 2)
    (hit_hit, hit_once, _, hit_once_m), (once_hit, once_once, once_hit_m, once_once_m) = parts
    # φ(s, t) = 1 − a_h − a_g + D. Each bracket of one key a head is the head's own curve less what
    # the other head's response takes off it. (docs/theory/exact.md)
    a = first.hit[:, None] + second.hit - hit_hit
    area = du[:, None] * du
    shift = first.centre - second.centre
    in_h = first.weight[:, None] - once_hit
    in_g = second.weight - hit_once
    m_h = (first.weighted - first.centre * first.weight)[:, None] - once_hit_m
    m_g = (second.weighted - second.centre * second.weight) - hit_once_m - shift * hit_once
    noise, total_square, signal = sums_of_keys(
        n, area, a, (once_once, shift * once_once_m), (in_h, in_g), (m_h, m_g), (-2, -1)
    )
    joint_reach: Numbers = jnp.ones(())
    if setting.compact:
        # f̂ = G + c·1{S > 0} with G = Σ w (m − c): what the empty neighbourhoods add. E G = 0, so
        # E[G_h 1{S_g > 0}] is −E[G_h 1{S_g = 0}]; u = ∞ is the last point of the grids.
        # (docs/theory/exact.md, empty neighbourhoods)
        remainder_h = n * du @ (m_h[:, -1] * power(n - 1, a[:, -1]))
        remainder_g = n * du @ (m_g[-1] * power(n - 1, a[-1]))
        joint_reach = first.reach + second.reach + jnp.expm1(n * log_phi(a[-1, -1]))
        signal += first.centre * second.centre * (joint_reach - first.reach * second.reach)
        signal -= second.centre * remainder_h + first.centre * remainder_g
    gap = jnp.abs(total_square - joint_reach)
    defect = relative(gap, jnp.maximum(joint_reach, 1e-3))
    return Pair(signal, noise, defect), n * area * power(n - 1, a)
