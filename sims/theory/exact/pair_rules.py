"""Quadrature rules for a pair of heads: product grids, Gauss–Hermite grids and random points.

Product grids take nodes (ξ_h, ξ_g), each head's own, for canonical correlations below 1. The other
rules take (ξ_h, v), independent standard normal coordinates with ``ξ_g = ρ ξ_h + √(1−ρ²) v``, and
serve any canonical correlation: where ρ = 1 the joint law is singular and v has no part. Formulas
and notation: :mod:`sims.theory.exact.laplace` and :mod:`sims.theory.exact.pairs`; docs/theory.md,
"Exact at every n", nodes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.theory.arrays import Number, Numbers
from sims.theory.exact.laplace import (
    TILE,
    Nodes,
    Proposal,
    Regression,
    Setting,
    Single,
    tile,
    tiles,
)
from sims.theory.exact.pairs import Couple, Pair, pair_terms

ROWS = 32
"""Nodes of head h that a product grid takes at once, against a tile of head g's."""
HERMITE_ROWS, HERMITE_COLUMNS = 16, 32
"""Nodes of head h, and Gauss–Hermite points, taken at once: more of these would be idle where v has
one free direction."""
SCATTERED = 1024
"""Random points taken at once."""
NEGLIGIBLE = 1e-9
"""Share of ``E K_h K_g`` that tiles left out of Var[m | node], which costs O(J²) a node, hold."""

Buffers = tuple[Array, Array, Array, Array]
"""Responses, nodes, cosines and sines, and log weights of all tiles of a head."""


class Mehler(NamedTuple):
    """The joint density over the marginals': ``scale · exp(Σ pull x y − shrink (x² + y²))``."""

    pull: Float[Numbers, " c"]
    shrink: Float[Numbers, " c"]
    log_scale: Number


class Conditional(NamedTuple):
    """Location and scale of v given ξ_h: ``v = offset + slope ξ_h + root z``, z standard normal."""

    offset: Float[Numbers, " k_g"]
    slope: Float[Numbers, "k_g k_h"]
    root: Float[Numbers, "k_g k_g"]
    log_scale: Number
    """log |det root|."""


def product_pair(
    setting: Setting, grids: tuple[Nodes, Nodes], couple: Couple, mehler: Mehler
) -> Pair:
    """A pair on the product of the two heads' own grids, for canonical correlations below 1.

    In canonical coordinates the joint density is the product of the marginals and of
    ``(1 − ρ²)^{−1/2} exp[(ρ x y − ρ²(x² + y²)/2)/(1 − ρ²)]`` for each direction (Mehler's kernel).
    """
    size = setting.size
    regression = couple.regression
    c = mehler.pull.shape[0]
    assert isinstance(regression, Regression)  # for the type checker
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
                setting.stacked_responses(head, z),
                z,
                jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1),
                log_z - (z[:, :c] ** 2) @ mehler.shrink,
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
        log_weight = (xi[i, :, :c] * mehler.pull) @ eta[j, :, :c].T + log_w[i][:, None] + log_v[j]
        # cos(α + β) = cos α cos β − sin α sin β, so the mean is one product.
        mean = (first[i] * signs) @ second[j].T - couple.singles[0].centre
        return jnp.exp(log_weight + mehler.log_scale), mean

    def contract(i: Array, total: Array) -> Array:
        def add(j: Array, part: Array) -> Array:
            weight, mean = measures(i, j)
            return part + jnp.concatenate([weight, weight * mean]) @ right[j].T

        part = jax.lax.fori_loop(0, columns, add, jnp.zeros((2 * ROWS, 2 * size)))
        return total + first_rows[i] @ jnp.concatenate([part[:ROWS], part[ROWS:]], axis=1)

    total = jax.lax.fori_loop(0, rows, contract, jnp.zeros((2 * size, 4 * size)))
    terms, outer = pair_terms(setting, couple.singles, total)
    ignored = NEGLIGIBLE * terms.noise / (rows * columns)

    def square(i: Array, total: Array) -> Array:
        # The share of each node in the integral over (s, t), so that m² is needed once a node.
        share = first_rows[i, size:].T @ outer

        def add(j: Array, total: Array) -> Array:
            weight, mean = measures(i, j)
            psi = weight * (share @ right[j, size:])

            def full_variance() -> Array:
                # Cosines and sines of the sums of both heads' angles.
                half = first.shape[2] // 2
                a = first[i][:, None]
                b = second[j]
                cosine = a[..., :half] * b[:, :half] - a[..., half:] * b[:, half:]
                sine = a[..., half:] * b[:, :half] + a[..., :half] * b[:, half:]
                variance = (cosine @ regression.cosine) * cosine + (sine @ regression.sine) * sine
                return jnp.sum(psi[..., None] * variance)

            variance = jax.lax.cond(jnp.sum(psi) > ignored, full_variance, lambda: jnp.zeros(()))
            return total + jnp.sum(psi * mean**2) + variance

        return jax.lax.fori_loop(0, columns, add, total)

    missing = jax.lax.fori_loop(0, rows, square, jnp.zeros(()))
    return terms._replace(signal=terms.signal + missing)


def hermite_pair(
    setting: Setting,
    grids: tuple[Nodes, Nodes],
    couple: Couple,
    correlation: Float[Numbers, " c"],
    conditional: Conditional,
) -> Pair:
    """A pair on head h's polar grid times a Gauss–Hermite grid in v.

    For nearly aligned heads, whose joint density a product grid cannot resolve. The Gauss–Hermite
    grid moves with ξ_h to where both the conditional density and K_g are large. Head h responds
    once a node of its own: head g's responses are summed over v first. Angles are a sum of one term
    a node and one a point, ``θ = α(ξ_h) + β(z)``, so cosines are products of few.
    """
    ball = couple.heads[0].placed(grids[0])
    hermite = grids[1]
    size = setting.size
    regression = couple.regression
    assert isinstance(regression, Regression)  # for the type checker
    rows = tiles(ball.used, HERMITE_ROWS)
    columns = tiles(hermite.used, HERMITE_COLUMNS)
    beta = hermite.points @ (regression.second @ conditional.root).T
    cos_beta, sin_beta = jnp.cos(beta), jnp.sin(beta)

    def contract(i: Array, total: Array) -> Array:
        xi, log_xi = ball.tile(i, HERMITE_ROWS)
        centre = conditional.offset + xi @ conditional.slope.T
        alpha = xi @ regression.first.T + centre @ regression.second.T + regression.phase
        cos_alpha, sin_alpha = jnp.cos(alpha)[:, None], jnp.sin(alpha)[:, None]

        def add(j: Array, part: Array) -> Array:
            points, log_point = hermite.tile(j, HERMITE_COLUMNS)
            v = centre[:, None] + points @ conditional.root.T
            a = tile(cos_beta, j, HERMITE_COLUMNS)
            b = tile(sin_beta, j, HERMITE_COLUMNS)
            mean, square = regression.moments(
                cos_alpha * a - sin_alpha * b,
                sin_alpha * a + cos_alpha * b,
                couple.singles[0].centre,
            )
            log_weight = log_point - 0.5 * jnp.sum(v**2, axis=2)
            measures = jnp.exp(log_weight)[..., None] * jnp.stack(
                [jnp.ones_like(mean), mean, square], axis=2
            )
            y = _second(correlation, xi[:, None], v).reshape(HERMITE_ROWS * HERMITE_COLUMNS, -1)
            log_k = setting.log_kernel(couple.heads[1], y).reshape(HERMITE_ROWS, HERMITE_COLUMNS)
            hit, once, _ = setting.responses(couple.heads[1], log_k)
            return part + jnp.concatenate([hit, once], axis=1) @ measures

        part = jax.lax.fori_loop(0, columns, add, jnp.zeros((HERMITE_ROWS, 2 * size, 3)))
        part = part * jnp.exp(log_xi + conditional.log_scale)[:, None, None]
        measured = jnp.concatenate([part[..., 0], part[..., 1], part[:, size:, 2]], axis=1)
        return total + setting.stacked_responses(couple.heads[0], xi) @ measured

    empty = jnp.zeros((2 * size, 5 * size))
    return _with_squares(setting, couple, jax.lax.fori_loop(0, rows, contract, empty))


def scattered_pair(
    setting: Setting, nodes: Nodes, couple: Couple, correlation: Float[Numbers, " c"]
) -> Pair:
    """A pair on scattered nodes, taken in blocks so that the responses stay in cache.

    Args:
        setting: kernel, keys and grid.
        nodes: (ξ_h, v), and log weights with the density; ``used`` is a multiple of SCATTERED
            unless there are fewer.
        couple: both heads.
        correlation: canonical correlations ρ.
    """
    head_h, head_g = couple.heads
    regression = couple.regression
    size = setting.size
    blocks = max(1, len(nodes.points) // SCATTERED)
    k = jnp.shape(head_h.centre)[0]
    points = jnp.reshape(nodes.points, (blocks, -1, nodes.points.shape[1]))
    log_weight = jnp.reshape(nodes.log_weight, (blocks, -1))

    def block(index: Array, total: Array) -> Array:
        x = points[index, :, :k]
        v = points[index, :, k:]
        mean, square = regression.conditional_moments(couple.singles[0].centre, x, v)
        responses = setting.stacked_responses(head_h, x)
        right = setting.stacked_responses(head_g, _second(correlation, x, v))
        right = right * jnp.exp(log_weight[index])
        measured = jnp.concatenate([right, right * mean, right[size:] * square])
        return total + responses @ measured.T

    total = jax.lax.fori_loop(
        0, tiles(nodes.used, SCATTERED), block, jnp.zeros((2 * size, 5 * size))
    )
    return _with_squares(setting, couple, total)


def sobol_pair(
    setting: Setting,
    normals: Float[Array, "R N p"],
    couple: Couple,
    correlation: Float[Numbers, " c"],
    proposal: Proposal,
) -> Pair:
    """:func:`scattered_pair` by randomised quasi-Monte Carlo; a leading axis of R randomisations.

    The singles have that axis too: where heads are randomised, the spread then shows their error.
    """

    def replicate(item: tuple[Array, tuple[Single, Single]]) -> Pair:
        normal, singles = item
        pair = couple._replace(singles=singles)
        return scattered_pair(setting, proposal.draw(normal), pair, correlation)

    return jax.lax.map(replicate, (normals, couple.singles))


def _second(
    correlation: Float[Numbers, " c"], x: Float[Numbers, "... k_h"], v: Float[Numbers, "*N k_g"]
) -> Float[Array, "*N k_g"]:
    """``ξ_g = ρ ξ_h + √(1−ρ²) v`` at nodes (ξ_h, v)."""
    c = correlation.shape[0]
    return (
        jnp.asarray(v)
        .at[..., :c]
        .set(correlation * x[..., :c] + jnp.sqrt(1 - correlation**2) * v[..., :c])
    )


def _with_squares(setting: Setting, couple: Couple, total: Float[Array, "rows columns"]) -> Pair:
    """The terms from ``[hit; once] @ [hit, once, hit m, once m, once m²]``."""
    terms, outer = pair_terms(setting, couple.singles, total)
    squares = total[setting.size :, 4 * setting.size :]
    return terms._replace(signal=terms.signal + jnp.sum(outer * squares))
