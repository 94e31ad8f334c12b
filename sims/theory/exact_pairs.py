"""The Laplace integrals of a pair of heads, on product grids, Gauss–Hermite grids or random points.

Formulas and notation: :mod:`sims.theory.exact_integrals`. A pair adds to its heads' own curves only
what happens where both kernels reach, through the :class:`Contractions` below: matrix products
over the nodes for all (s, t) at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel
from sims.theory.exact_integrals import (
    Head,
    Proposal,
    Single,
    Target,
    conditional_forms,
    draw,
    log_density,
    log_kernel,
    log_steps,
    nodes_of,
    quadratic,
    relative,
    responses,
)


class Pair(NamedTuple):
    """A pair's integrals: signal and noise covariance (σ² = 1), defect."""

    signal: Array
    noise: Array
    defect: Array


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


def contractions(left: Array, right: Array, plain: Array, weighted: Array) -> Contractions:
    """From ``[hit; once]`` of the heads, (2M, N) each, and the two measures applied to ``right``.

    Args:
        left: of head h.
        right: of head g; used for its size only.
        plain: (N_h, 2M_g), weights of the nodes applied to ``rightᵀ``.
        weighted: the same with the target's conditional mean.
    """
    m = left.shape[0] // 2
    k = right.shape[0] // 2
    zero, one = left @ plain, left @ weighted
    return Contractions(
        zero[:m, :k],
        zero[:m, k:],
        zero[m:, :k],
        zero[m:, k:],
        one[:m, k:],
        one[m:, :k],
        one[m:, k:],
    )


def pair_terms(
    kernel: Kernel,
    step: Array,
    n: Array,
    heads: tuple[Head, Head],
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
    (_, du), (_, dv) = (log_steps(kernel, h.low, count, step) for h in heads)
    log_phi = jnp.log1p(-jnp.clip(first.hit[:, None] + second.hit - c.hit_hit, 0.0, 1 - 1e-16))
    area = du[:, None] * dv
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
        others_g = n * dv @ (m_g[-1] * jnp.exp((n - 1) * log_phi[-1]))
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


def product_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    rule: Any,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    correlation: Array,
) -> Pair:
    """A pair on the product of the two heads' own grids, for canonical correlations below 1.

    In canonical coordinates the joint density is the product of the marginals and of
    ``(1 − ρ²)^{−1/2} exp[(ρ x y − ρ²(x² + y²)/2)/(1 − ρ²)]`` for each direction (Mehler's kernel).
    """
    (xi, log_w), (eta, log_v) = (nodes_of(h, r) for h, r in zip(heads, rule, strict=True))
    c = correlation.shape[0]
    gap = 1 - correlation**2
    own = [
        log + log_density(z) - 0.5 * (z[:, :c] ** 2) @ (correlation**2 / gap)
        for log, z in ((log_w, xi), (log_v, eta))
    ]
    bilinear = (xi[:, :c] * (correlation / gap)) @ eta[:, :c].T
    weight = jnp.exp(own[0][:, None] + own[1] + bilinear - 0.5 * jnp.sum(jnp.log(gap)))

    # Regression of the target's angles on (ξ_h, ξ_g): 2×2 systems, one for each direction.
    first, second = (h.loading for h in heads)
    theta_h = first.at[:, :c].set((first[:, :c] - correlation * second[:, :c]) / gap)
    theta_g = second.at[:, :c].set((second[:, :c] - correlation * first[:, :c]) / gap)
    residual = target.total - first @ theta_h.T - second @ theta_g.T
    b, cosine_form, sine_form = conditional_forms(target, (residual + residual.T) / 2)
    alpha, beta = xi @ theta_h.T + target.phase, eta @ theta_g.T
    ca, sa, cb, sb = jnp.cos(alpha), jnp.sin(alpha), jnp.cos(beta), jnp.sin(beta)
    mean = (ca * b) @ cb.T - (sa * b) @ sb.T - singles[0].centre

    left, right = (
        stacked_responses(kernel, h, z, step, count) for h, z in zip(heads, (xi, eta), strict=True)
    )
    terms, outer = pair_terms(
        kernel,
        step,
        n,
        heads,
        singles,
        contractions(left, right, weight @ right.T, (weight * mean) @ right.T),
    )
    # The share of each node in the integral over (s, t), so that m² is needed once a node.
    psi = weight * (left[count:].T @ (outer @ right[count:]))

    square = jnp.sum(psi * mean**2) + _largest_first(
        psi,
        lambda i, j: (
            quadratic(cosine_form, ca[i] * cb[j] - sa[i] * sb[j])
            + quadratic(sine_form, sa[i] * cb[j] + ca[i] * sb[j])
        ),
    )
    return terms._replace(signal=terms.signal + square)


def _largest_first(
    share: Array, values: Callable[[Array, Array], Array], block: int = 2048, tail: float = 1e-9
) -> Array:
    """``Σ_ij share_ij · values(i, j)``, leaving out nodes that hold ``tail`` of Σ share together.

    Var[m | node] costs O(J²) a node, and most nodes of a product grid hardly count.
    """
    flat = share.ravel()
    padded = jnp.pad(flat, (0, -len(flat) % block))
    order = jnp.argsort(-padded)
    total = jnp.sum(flat)

    def going(state: tuple[Array, Array, Array]) -> Array:
        start, left, _ = state
        return (start < len(padded)) & (left > tail * total)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        start, left, sum_so_far = state
        index = jax.lax.dynamic_slice(order, (start,), (block,))
        part = padded[index]
        # Padding has share 0; its index is past the end and is clipped by the lookup.
        found = values(index // share.shape[1], index % share.shape[1])
        return start + block, left - part.sum(), sum_so_far + part @ found

    return jax.lax.while_loop(going, step, (jnp.asarray(0), total, jnp.zeros(())))[2]


def scattered_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    correlation: Array,
    xi: Array,
    rest: Array,
    log_weight: Array,
) -> Pair:
    """A pair on scattered nodes, for any canonical correlations up to and including 1.

    Nodes are (ξ_h, v), independent standard normal coordinates with ``ξ_g = ρ ξ_h + √(1−ρ²) v``:
    where ρ = 1 the joint law is singular and v has no part.

    Nodes come in blocks, so that the responses stay in cache: ``xi`` is ξ_h (blocks, N, k_h),
    ``rest`` is v (blocks, N, k_g), ``log_weight`` (blocks, N) holds the density.
    """
    c = correlation.shape[0]
    gap = jnp.sqrt(1 - correlation**2)
    first, second = (h.loading for h in heads)
    new = second.at[:, :c].set(
        jnp.where(
            gap > 0, (second[:, :c] - correlation * first[:, :c]) / jnp.where(gap > 0, gap, 1), 0
        )
    )
    b, cosine_form, sine_form = conditional_forms(
        target, target.total - first @ first.T - new @ new.T
    )

    def block(carry: Any, item: tuple[Array, Array, Array]) -> tuple[Any, None]:
        x, v, log_w = item
        y = v.at[:, :c].set(correlation * x[:, :c] + gap * v[:, :c])
        theta = x @ first.T + v @ new.T + target.phase
        cosine, sine = jnp.cos(theta), jnp.sin(theta)
        mean = cosine @ b - singles[0].centre
        square = mean**2 + quadratic(cosine_form, cosine) + quadratic(sine_form, sine)
        left = stacked_responses(kernel, heads[0], x, step, count)
        right = stacked_responses(kernel, heads[1], y, step, count)
        weighted = right * jnp.exp(log_w)
        zero_one = contractions(left, right, weighted.T, (weighted * mean).T)
        two = left[count:] @ (weighted[count:] * square).T
        return jax.tree.map(jnp.add, carry, (zero_one, two)), None

    empty = jnp.zeros((count, count))
    (zero_one, two), _ = jax.lax.scan(
        block, (Contractions(*[empty] * 7), empty), (xi, rest, log_weight)
    )
    terms, outer = pair_terms(kernel, step, n, heads, singles, zero_one)
    return terms._replace(signal=terms.signal + jnp.sum(outer * two))


def stacked_responses(kernel: Kernel, head: Head, xi: Array, step: Array, count: int) -> Array:
    """``[1 − e^{−X}; X e^{−X}]`` on the grid in log s: (2M, N)."""
    u, _ = log_steps(kernel, head.low, count, step)
    hit, once, _ = responses(u, log_kernel(kernel, head, xi))
    return jnp.concatenate([hit, once])


class Conditional(NamedTuple):
    """Where v matters given ξ_h: ``v = offset + slope ξ_h + root z``, z standard normal."""

    offset: Float[Array, " k_g"]
    slope: Float[Array, "k_g k_h"]
    root: Float[Array, "k_g k_g"]


def hermite_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    rule: Any,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    correlation: Array,
    conditional: Conditional,
) -> Pair:
    """:func:`scattered_pair` on head h's polar grid times a Gauss–Hermite grid in v.

    For nearly aligned heads, whose joint density a product grid cannot resolve. The Gauss–Hermite
    grid moves with ξ_h to where both the conditional density and K_g are large.
    """
    polar, (points, weights) = rule
    xi, log_w = nodes_of(heads[0], polar)
    v = conditional.offset + (xi @ conditional.slope.T)[:, None] + points @ conditional.root.T
    log_jacobian = jnp.sum(jnp.log(jnp.abs(jnp.diag(conditional.root))))
    log_weight = (
        (log_w + log_density(xi))[:, None]
        + (jnp.log(weights) + 0.5 * jnp.sum(points**2, axis=1))
        - 0.5 * jnp.sum(v**2, axis=2)
        + log_jacobian
    )
    return scattered_pair(
        kernel,
        count,
        step,
        n,
        target,
        heads,
        singles,
        correlation,
        jnp.broadcast_to(xi[:, None], (*log_weight.shape, xi.shape[1])),
        v,
        log_weight,
    )


def sobol_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    rule: Array,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
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
            target,
            heads,
            curves,
            correlation,
            points[:, :k].reshape(*blocks, k),
            points[:, k:].reshape(*blocks, points.shape[1] - k),
            log_weight.reshape(blocks),
        )

    return jax.lax.map(replicate, (rule, singles))
