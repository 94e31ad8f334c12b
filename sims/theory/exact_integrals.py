"""The Laplace integrals of one head and of a pair, on given nodes.

With ``S_h = Σ_i K_h(x, X_i)`` and ``1/S = ∫₀^∞ e^{−sS} ds`` independence over i gives every moment
of the ratio Σ K Y / Σ K as an integral over s (and t) of expectations over *one* key. Put
``u = log s`` and ``X_h = s K_h``. All of them are then sums over the u-grid of

::

    a_h(u)    = E[1 − e^{−X_h}]                    A_h(u)  = E[X_h e^{−X_h}]
    D(u, v)   = E[(1 − e^{−X_h})(1 − e^{−X_g})]     B(u, v) = E[X_h e^{−X_h} X_g e^{−X_g}]
    φ_h = 1 − a_h,   φ = 1 − a_h − a_g + D,   E[X_h e^{−X_h−X_g}] = A_h − E[X_h e^{−X_h}(1 − e^{−X_g})]

so a pair needs quadrature only where *both* kernels reach, and single-head terms can be finer. The
trapezoid rule in u converges like |Γ(1 + 2πi/step)|: 2e-8 at step 0.5, 1e-15 at 0.25. Targets are
centred at c_h = E f̂_h before products are taken, or the signal covariance, of order 1/n, would
drown in (E f̂)². Source: theory notes §3b; Laplace transform of the denominator as in
Cressie et al. (1981), doi:10.1080/00031305.1981.10479334.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel


class Head(NamedTuple):
    """A :class:`~sims.theory.exact_law.Projection` with its ranges, as arrays."""

    map: Float[Array, "d_k k"]
    query: Float[Array, " d_k"]
    centre: Float[Array, " k"]
    shape: Float[Array, "k k"]
    radius: Float[Array, ""]
    bandwidth: Float[Array, ""]
    low: Float[Array, ""]
    loading: Float[Array, "J k"]


class Target(NamedTuple):
    """Amplitude a (J,), phase c (J,) and total covariance ωΣωᵀ (J, J)."""

    amplitude: Float[Array, " J"]
    phase: Float[Array, " J"]
    total: Float[Array, "J J"]


class Single(NamedTuple):
    """One head's integrals (scalars), and the curves that its pairs need (M,)."""

    mean: Array
    signal: Array
    noise: Array
    defect: Array
    centre: Array
    hit: Array
    weight: Array
    weighted: Array


class Pair(NamedTuple):
    """A pair's integrals: signal and noise covariance (σ² = 1), defect."""

    signal: Array
    noise: Array
    defect: Array


def log_steps(low: Array, count: int, step: Array) -> tuple[Array, Array]:
    """The grid in u and its weights; the first carries the left tail, which is ∝ e^u there."""
    weights = jnp.full(count, step).at[0].set(step / -jnp.expm1(-step))
    return low + step * jnp.arange(count), weights


def nodes_of(head: Head, rule: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Whitened nodes (N, k) and the logarithms of their weights without the density (N,)."""
    radius, direction, weight = rule
    xi = head.centre + head.radius * radius[:, None] * (direction @ head.shape.T)
    k = head.centre.shape[0]
    scale = k * jnp.log(head.radius) + jnp.log(jnp.abs(jnp.linalg.det(head.shape)))
    return xi, jnp.log(weight) + scale


def log_density(xi: Array) -> Array:
    """Of N(0, I_k), along the last axis."""
    return -0.5 * jnp.sum(xi**2, axis=-1) - 0.5 * xi.shape[-1] * jnp.log(2 * jnp.pi)


def log_kernel(kernel: Kernel, head: Head, xi: Array) -> Array:
    """log K at whitened nodes (N, k)."""
    return kernel.log_value(head.query[:, None], head.map @ xi.T, head.bandwidth)


def responses(u: Array, log_k: Array) -> tuple[Array, Array, Array]:
    """``1 − e^{−X}``, ``X e^{−X}`` and X for X = e^u K; each (M, N)."""
    # Above e^40 both responses are at their limits, 1 and 0, to rounding.
    x = jnp.exp(jnp.minimum(u[:, None] + log_k, 40.0))
    return -jnp.expm1(-x), x * jnp.exp(-x), x


def conditional_forms(target: Target, residual: Array) -> tuple[Array, Array, Array]:
    """b (J,) and the two (J, J) matrices of Var[m | ξ], weights included; see GaussianLaw."""
    half = 0.5 * jnp.diag(residual)
    a = target.amplitude
    outer = a[:, None] * a
    up = jnp.exp(residual - half[:, None] - half)
    down = jnp.exp(-residual - half[:, None] - half)
    flat = jnp.exp(-half[:, None] - half)
    return a * jnp.exp(-half), outer * (0.5 * (up + down) - flat), outer * 0.5 * (up - down)


def quadratic(form: Array, rows: Array) -> Array:
    """``rowᵀ F row`` for each row (N, J) -> (N,)."""
    return jnp.sum((rows @ form) * rows, axis=1)


def single(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, head: Head,
    xi: Array, log_weight: Array,
) -> Single:
    """All integrals of one head at one query, on nodes (N, k) with log weights, density included."""
    weight = jnp.exp(log_weight)
    theta = xi @ head.loading.T + target.phase
    b, cosine_form, sine_form = conditional_forms(target, target.total - head.loading @ head.loading.T)
    mean = jnp.cos(theta) @ b
    variance = quadratic(cosine_form, jnp.cos(theta)) + quadratic(sine_form, jnp.sin(theta))
    u, du = log_steps(head.low, count, step)
    hit, once, x = responses(u, log_kernel(kernel, head, xi))
    a, weight_curve, weighted = hit @ weight, once @ weight, once @ (weight * mean)
    log_phi = jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16))
    first = n * du * jnp.exp((n - 1) * log_phi)
    estimate, mass = first @ weighted, first @ weight_curve
    centre = estimate / mass
    square = (once * x).T @ (n * step * jnp.exp((n - 1) * log_phi)) * weight
    cross = n * (n - 1) * step * jnp.exp((n - 2) * log_phi)
    return Single(
        mean=estimate,
        signal=square @ ((mean - centre) ** 2 + variance) + cross @ (weighted - centre * weight_curve) ** 2,
        noise=square.sum(),
        defect=jnp.maximum(
            jnp.abs(mass - 1), jnp.abs(square.sum() + cross @ weight_curve**2 - 1)
        ),
        centre=centre,
        hit=a,
        weight=weight_curve,
        weighted=weighted,
    )


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
        zero[:m, :k], zero[:m, k:], zero[m:, :k], zero[m:, k:], one[:m, k:], one[m:, :k], one[m:, k:]
    )


def pair_terms(
    step: Array, n: Array, heads: tuple[Head, Head], singles: tuple[Single, Single], c: Contractions
) -> tuple[Pair, Array]:
    """A pair's integrals, but for ``n ∬ ⟨K_h K_g (m − c_h)²⟩ φ^{n−1} ds dt``, missing in ``signal``.

    Returns:
        The terms; and the weights Q (M_h, M_g) with which the missing part is
        ``Σ_uv Q(u, v) E[X_h e^{−X_h} X_g e^{−X_g} (m − c_h)²]``.
    """
    first, second = singles
    count = first.hit.shape[0]
    (_, du), (_, dv) = (log_steps(h.low, count, step) for h in heads)
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
    return (
        Pair(
            signal=shift * jnp.sum(outer * c.once_once_m) + jnp.sum(cross * m_h * m_g),
            noise=noise,
            defect=jnp.abs(noise + jnp.sum(cross * in_h * in_g) - 1),
        ),
        outer,
    )


def product_pair(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Any,
    heads: tuple[Head, Head], singles: tuple[Single, Single], correlation: Array,
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
        step, n, heads, singles,
        contractions(left, right, weight @ right.T, (weight * mean) @ right.T),
    )
    # The share of each node in the integral over (s, t), so that m² is needed once a node.
    psi = weight * (left[count:].T @ (outer @ right[count:]))

    def row(carry: Array, item: tuple[Array, Array, Array]) -> tuple[Array, None]:
        cosine, sine, share = item
        values = quadratic(cosine_form, cosine * cb - sine * sb) + quadratic(
            sine_form, sine * cb + cosine * sb
        )
        return carry + share @ values, None

    square, _ = jax.lax.scan(row, jnp.sum(psi * mean**2), (ca, sa, psi))
    return terms._replace(signal=terms.signal + square)


def scattered_pair(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, heads: tuple[Head, Head],
    singles: tuple[Single, Single], correlation: Array, xi: Array, rest: Array, log_weight: Array,
) -> Pair:
    """A pair on scattered nodes, for any canonical correlations up to and including 1.

    Nodes are (ξ_h, v), independent standard normal coordinates with ``ξ_g = ρ ξ_h + √(1−ρ²) v``:
    where ρ = 1 the joint law is singular and v has no part.

    Args:
        xi: ξ_h, in blocks (blocks, N, k_h), so that the responses stay in cache.
        rest: v (blocks, N, k_g).
        log_weight: (blocks, N), density included.
    """
    c = correlation.shape[0]
    gap = jnp.sqrt(1 - correlation**2)
    first, second = (h.loading for h in heads)
    new = second.at[:, :c].set(
        jnp.where(gap > 0, (second[:, :c] - correlation * first[:, :c]) / jnp.where(gap > 0, gap, 1), 0)
    )
    b, cosine_form, sine_form = conditional_forms(target, target.total - first @ first.T - new @ new.T)

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
    terms, outer = pair_terms(step, n, heads, singles, zero_one)
    return terms._replace(signal=terms.signal + jnp.sum(outer * two))


def stacked_responses(kernel: Kernel, head: Head, xi: Array, step: Array, count: int) -> Array:
    """``[1 − e^{−X}; X e^{−X}]`` on the grid in log s: (2M, N)."""
    u, _ = log_steps(head.low, count, step)
    hit, once, _ = responses(u, log_kernel(kernel, head, xi))
    return jnp.concatenate([hit, once])


def grid_single(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Any, head: Head
) -> Single:
    """:func:`single` on the polar grid around the head's centre."""
    xi, log_weight = nodes_of(head, rule)
    return single(kernel, count, step, n, target, head, xi, log_weight + log_density(xi))


class Conditional(NamedTuple):
    """Where v matters given ξ_h: ``v = offset + slope ξ_h + root z``, z standard normal."""

    offset: Float[Array, " k_g"]
    slope: Float[Array, "k_g k_h"]
    root: Float[Array, "k_g k_g"]


def hermite_pair(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Any,
    heads: tuple[Head, Head], singles: tuple[Single, Single], correlation: Array,
    conditional: Conditional,
) -> Pair:
    """:func:`scattered_pair` on head h's polar grid times a Gauss–Hermite grid in v.

    For nearly aligned heads, whose joint density a product grid cannot resolve. The Gauss–Hermite
    grid moves with ξ_h to where both the conditional density and K_g are large.
    """
    polar, (points, weights) = rule
    xi, log_w = nodes_of(heads[0], polar)
    v = (
        conditional.offset
        + (xi @ conditional.slope.T)[:, None]
        + points @ conditional.root.T
    )
    log_jacobian = jnp.sum(jnp.log(jnp.abs(jnp.diag(conditional.root))))
    log_weight = (
        (log_w + log_density(xi))[:, None]
        + (jnp.log(weights) + 0.5 * jnp.sum(points**2, axis=1))
        - 0.5 * jnp.sum(v**2, axis=2)
        + log_jacobian
    )
    return scattered_pair(
        kernel, count, step, n, target, heads, singles, correlation,
        jnp.broadcast_to(xi[:, None], (*log_weight.shape, xi.shape[1])), v, log_weight,
    )


class Proposal(NamedTuple):
    """A Gaussian N(mean, L Lᵀ) to draw standard normal coordinates from, with importance weights."""

    mean: Float[Array, " p"]
    root: Float[Array, "p p"]


def draw(proposal: Proposal, normal: Array) -> tuple[Array, Array]:
    """Points (N, p) and their log weights: the standard normal density over the proposal's, / N."""
    points = proposal.mean + normal @ proposal.root.T
    log_root = jnp.sum(jnp.log(jnp.abs(jnp.diag(proposal.root))))
    log_weight = 0.5 * (jnp.sum(normal**2, axis=1) - jnp.sum(points**2, axis=1)) + log_root
    return points, log_weight - jnp.log(len(normal))


def sobol_single(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Array,
    head: Head, proposal: Proposal,
) -> Single:
    """:func:`single` by randomised quasi-Monte Carlo; a leading axis of randomisations."""

    def replicate(normal: Array) -> Single:
        return single(kernel, count, step, n, target, head, *draw(proposal, normal))

    return jax.lax.map(replicate, rule)


def sobol_pair(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Array,
    heads: tuple[Head, Head], singles: tuple[Single, Single], correlation: Array, proposal: Proposal,
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
            kernel, count, step, n, target, heads, curves, correlation,
            points[:, :k].reshape(*blocks, k), points[:, k:].reshape(*blocks, points.shape[1] - k),
            log_weight.reshape(blocks),
        )

    return jax.lax.map(replicate, (rule, singles))
