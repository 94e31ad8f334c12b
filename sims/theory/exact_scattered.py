"""Pairs of heads on rules that have no product form: Gauss–Hermite grids and random points.

Nodes are (ξ_h, v), independent standard normal coordinates with ``ξ_g = ρ ξ_h + √(1−ρ²) v``: where
ρ = 1 the joint law is singular and v has no part. They serve any canonical correlations up to and
including 1. Formulas and notation: :mod:`sims.theory.exact_pairs`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel
from sims.theory.exact_integrals import (
    Head,
    Proposal,
    Regression,
    Single,
    draw,
    log_kernel,
    moments,
    nodes_of,
    responses,
    stacked_responses,
    tile,
    tiles,
)
from sims.theory.exact_pairs import Pair, contractions, pair_terms


class Conditional(NamedTuple):
    """Where v matters given ξ_h: ``v = offset + slope ξ_h + root z``, z standard normal."""

    offset: Float[Array, " k_g"]
    slope: Float[Array, "k_g k_h"]
    root: Float[Array, "k_g k_g"]
    log_scale: Float[Array, ""]
    """log |det root|."""


def _second(correlation: Array, x: Array, v: Array) -> Array:
    """ξ_g (…, k_g) at nodes (…, k_h) and (…, k_g)."""
    c = correlation.shape[0]
    return v.at[..., :c].set(correlation * x[..., :c] + jnp.sqrt(1 - correlation**2) * v[..., :c])


def _terms(
    kernel: Kernel,
    step: Array,
    n: Array,
    singles: tuple[Single, Single],
    total: Array,
) -> Pair:
    """From ``[hit; once] @ [hit, once, hit m, once m, once m²]``, (2M, 5M)."""
    count = total.shape[0] // 2
    terms, outer = pair_terms(kernel, step, n, singles, contractions(total, count))
    return terms._replace(signal=terms.signal + jnp.sum(outer * total[count:, 4 * count :]))


def scattered_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    regression: Regression,
    correlation: Array,
    xi: Array,
    rest: Array,
    log_weight: Array,
    used: Array | int,
) -> Pair:
    """A pair on scattered nodes.

    They come in blocks, so that the responses stay in cache: ``xi`` is ξ_h (blocks, N, k_h),
    ``rest`` is v (blocks, N, k_g), ``log_weight`` (blocks, N) holds the density. The first
    ``used`` blocks count.
    """

    def block(index: Array, total: Array) -> Array:
        x, v, log_w = xi[index], rest[index], log_weight[index]
        angle = x @ regression.first.T + v @ regression.second.T + phase
        mean, square = moments(regression, jnp.cos(angle), jnp.sin(angle), singles[0].centre)
        left = stacked_responses(kernel, heads[0], x, step, count)
        right = stacked_responses(kernel, heads[1], _second(correlation, x, v), step, count)
        right = right * jnp.exp(log_w)
        measured = jnp.concatenate([right, right * mean, right[count:] * square])
        return total + left @ measured.T

    total = jax.lax.fori_loop(0, used, block, jnp.zeros((2 * count, 5 * count)))
    return _terms(kernel, step, n, singles, total)


COLUMNS = 32
"""Gauss–Hermite points taken at once: more would be idle where v has one free direction."""
ROWS = 16
"""Nodes of head h taken at once."""


def hermite_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Any,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    regression: Regression,
    correlation: Array,
    conditional: Conditional,
) -> Pair:
    """A pair on head h's polar grid times a Gauss–Hermite grid in v.

    For nearly aligned heads, whose joint density a product grid cannot resolve. The Gauss–Hermite
    grid moves with ξ_h to where both the conditional density and K_g are large. Head h responds
    once a node of its own: head g's responses are summed over v first. Angles are a sum of one term
    a node and one a point, ``θ = α(ξ_h) + β(z)``, so cosines are products of few.
    """
    (ball, log_ball, used), (points, log_point, used_points) = rule
    rows, columns = tiles(used, ROWS), tiles(used_points, COLUMNS)
    beta = points @ (regression.second @ conditional.root).T
    cos_beta, sin_beta = jnp.cos(beta), jnp.sin(beta)

    def contract(i: Array, total: Array) -> Array:
        xi, log_xi = nodes_of(heads[0], tile(ball, i, ROWS), tile(log_ball, i, ROWS))
        centre = conditional.offset + xi @ conditional.slope.T
        alpha = xi @ regression.first.T + centre @ regression.second.T + phase
        cos_alpha, sin_alpha = jnp.cos(alpha)[:, None], jnp.sin(alpha)[:, None]

        def add(j: Array, part: Array) -> Array:
            v = centre[:, None] + tile(points, j, COLUMNS) @ conditional.root.T
            a, b = tile(cos_beta, j, COLUMNS), tile(sin_beta, j, COLUMNS)
            mean, square = moments(
                regression,
                cos_alpha * a - sin_alpha * b,
                sin_alpha * a + cos_alpha * b,
                singles[0].centre,
            )
            log_weight = tile(log_point, j, COLUMNS) - 0.5 * jnp.sum(v**2, axis=2)
            measures = jnp.exp(log_weight)[..., None] * jnp.stack(
                [jnp.ones_like(mean), mean, square], axis=2
            )
            y = _second(correlation, xi[:, None], v).reshape(ROWS * COLUMNS, -1)
            log_k = log_kernel(kernel, heads[1], y).reshape(ROWS, COLUMNS)
            hit, once, _ = responses(kernel, heads[1], log_k, step, count)
            return part + jnp.concatenate([hit, once], axis=1) @ measures

        part = jax.lax.fori_loop(0, columns, add, jnp.zeros((ROWS, 2 * count, 3)))
        part = part * jnp.exp(log_xi + conditional.log_scale)[:, None, None]
        measured = jnp.concatenate([part[..., 0], part[..., 1], part[:, count:, 2]], axis=1)
        return total + stacked_responses(kernel, heads[0], xi, step, count) @ measured

    empty = jnp.zeros((2 * count, 5 * count))
    return _terms(kernel, step, n, singles, jax.lax.fori_loop(0, rows, contract, empty))


def sobol_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Array,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    regression: Regression,
    correlation: Array,
    proposal: Proposal,
) -> Pair:
    """:func:`scattered_pair` by randomised quasi-Monte Carlo; a leading axis of randomisations.

    The singles have that axis too: where heads are randomised, the spread then shows their error.
    """
    k = heads[0].centre.shape[0]

    def replicate(item: tuple[Array, tuple[Single, Single]]) -> Pair:
        normal, curves = item
        points, log_weight = draw(proposal, normal)
        blocks = (max(1, len(points) // 1024), -1)
        return scattered_pair(
            kernel,
            count,
            step,
            n,
            phase,
            heads,
            curves,
            regression,
            correlation,
            points[:, :k].reshape(*blocks, k),
            points[:, k:].reshape(*blocks, points.shape[1] - k),
            log_weight.reshape(blocks),
            blocks[0],
        )

    return jax.lax.map(replicate, (rule, singles))
