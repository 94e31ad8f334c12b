"""The Laplace integrals of one head and of a pair, on given nodes.

With ``S_h = Σ_i K_h(x, X_i)`` and ``1/S = ∫₀^∞ e^{−sS} ds`` independence over i gives every moment
of the ratio Σ K Y / Σ K as an integral over s (and t) of expectations over *one* key. Put
``u = log s`` and ``X_h = s K_h``. All of them are then sums over the u-grid of

::

    a_h(u)    = E[1 − e^{−X_h}]                    A_h(u)  = E[X_h e^{−X_h}]
    D(u, v)   = E[(1 − e^{−X_h})(1 − e^{−X_g})]     B(u, v) = E[X_h e^{−X_h} X_g e^{−X_g}]
    φ_h = 1 − a_h,   φ = 1 − a_h − a_g + D
    E[X_h e^{−X_h−X_g}] = A_h − E[X_h e^{−X_h}(1 − e^{−X_g})]

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
    """One head's integrals (scalars), and the curves that its pairs need (M,).

    ``reach`` is P(S > 0), and ``centre`` E[f̂ | S > 0].
    """

    reach: Array
    signal: Array
    noise: Array
    defect: Array
    centre: Array
    hit: Array
    weight: Array
    weighted: Array


LIMIT = 1e6
"""Stands for u = ∞: there 1 − e^{−X} is 1 where K > 0, and 0 elsewhere."""


def log_steps(kernel: Kernel, low: Array, count: int, step: Array) -> tuple[Array, Array]:
    """The grid in u and its weights; the first carries the left tail, which is ∝ e^u there.

    A compact kernel's last point is u = ∞, with weight 0: its responses give P(K > 0).
    """
    u = low + step * jnp.arange(count)
    weights = jnp.full(count, step).at[0].set(step / -jnp.expm1(-step))
    if kernel.support is not None:
        u, weights = u.at[-1].set(LIMIT), weights.at[-1].set(0.0)
    return u, weights


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


def relative(gap: Array, size: Array) -> Array:
    """gap/size, where the size is not negligible."""
    return gap / jnp.maximum(size, 1e-12)


def quadratic(form: Array, rows: Array) -> Array:
    """``rowᵀ F row`` for each row (N, J) -> (N,)."""
    return jnp.sum((rows @ form) * rows, axis=1)


def single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    head: Head,
    xi: Array,
    log_weight: Array,
) -> Single:
    """All integrals of one head at one query, on nodes (N, k); log weights hold the density."""
    weight = jnp.exp(log_weight)
    theta = xi @ head.loading.T + target.phase
    b, cosine_form, sine_form = conditional_forms(
        target, target.total - head.loading @ head.loading.T
    )
    mean = jnp.cos(theta) @ b
    variance = quadratic(cosine_form, jnp.cos(theta)) + quadratic(sine_form, jnp.sin(theta))
    u, du = log_steps(kernel, head.low, count, step)
    hit, once, x = responses(u, log_kernel(kernel, head, xi))
    a, weight_curve, weighted = hit @ weight, once @ weight, once @ (weight * mean)
    log_phi = jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16))
    first = n * du * jnp.exp((n - 1) * log_phi)
    estimate, mass = first @ weighted, first @ weight_curve
    compact = kernel.support is not None
    reach = -jnp.expm1(n * log_phi[-1]) if compact else jnp.ones(())
    centre = jnp.where(mass > 0, estimate / jnp.where(mass > 0, mass, 1.0), 0.0)
    square = (once * x).T @ (n * step * jnp.exp((n - 1) * log_phi)) * weight
    cross = n * (n - 1) * step * jnp.exp((n - 2) * log_phi)
    return Single(
        reach=reach,
        signal=square @ ((mean - centre) ** 2 + variance)
        + cross @ (weighted - centre * weight_curve) ** 2
        + centre**2 * reach * (1 - reach),
        noise=square.sum(),
        defect=relative(
            jnp.maximum(
                jnp.abs(mass - reach),
                jnp.abs(square.sum() + cross @ weight_curve**2 - reach),
            ),
            reach,
        ),
        centre=centre,
        hit=a,
        weight=weight_curve,
        weighted=weighted,
    )


def grid_single(
    kernel: Kernel, count: int, step: Array, n: Array, target: Target, rule: Any, head: Head
) -> Single:
    """:func:`single` on the polar grid around the head's centre."""
    xi, log_weight = nodes_of(head, rule)
    return single(kernel, count, step, n, target, head, xi, log_weight + log_density(xi))


class Proposal(NamedTuple):
    """N(mean, L Lᵀ), to draw standard normal coordinates from with importance weights."""

    mean: Float[Array, " p"]
    root: Float[Array, "p p"]


def draw(proposal: Proposal, normal: Array) -> tuple[Array, Array]:
    """Points (N, p) and their log weights: the standard normal density over the proposal's, / N."""
    points = proposal.mean + normal @ proposal.root.T
    log_root = jnp.sum(jnp.log(jnp.abs(jnp.diag(proposal.root))))
    log_weight = 0.5 * (jnp.sum(normal**2, axis=1) - jnp.sum(points**2, axis=1)) + log_root
    return points, log_weight - jnp.log(len(normal))


def sobol_single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    target: Target,
    rule: Array,
    head: Head,
    proposal: Proposal,
) -> Single:
    """:func:`single` by randomised quasi-Monte Carlo; a leading axis of randomisations."""

    def replicate(normal: Array) -> Single:
        return single(kernel, count, step, n, target, head, *draw(proposal, normal))

    return jax.lax.map(replicate, rule)
