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

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.problem.kernels import Kernel


class Head(NamedTuple):
    """A :class:`~sims.theory.exact_law.Projection` with its ranges, as arrays.

    Nodes are ``centre + shape y`` for y in the unit ball; ``log_scale`` is log |det shape| and the
    constant of the density of N(0, I_k).
    """

    map: Float[Array, "d_k k"]
    query: Float[Array, " d_k"]
    centre: Float[Array, " k"]
    shape: Float[Array, "k k"]
    bandwidth: Float[Array, ""]
    low: Float[Array, ""]
    log_scale: Float[Array, ""]


class Regression(NamedTuple):
    """The target given a node: angles θ_j, and the two quadratic forms of its variance.

    ``θ = phase + first x`` (plus ``second y`` for a pair's second coordinates), ``E[m | node]`` is
    ``Σ_j mean_j cos θ_j`` and ``Var[m | node]`` is ``cosᵀ cosine cos + sinᵀ sine sin``; see
    :class:`~sims.theory.exact_law.GaussianLaw`.
    """

    first: Float[Array, "J k"]
    second: Float[Array, "J k_g"]
    mean: Float[Array, " J"]
    cosine: Float[Array, "J J"]
    sine: Float[Array, "J J"]


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


def log_weights(kernel: Kernel, count: int, step: Array) -> Array:
    """Weights of the grid in u; the first carries the left tail, which is ∝ e^u there.

    A compact kernel's last point stands for u = ∞, with weight 0: its responses, 1 where K > 0 and
    0 elsewhere, give P(K > 0).
    """
    weights = jnp.full(count, step).at[0].set(step / -jnp.expm1(-step))
    return weights if kernel.support is None else weights.at[-1].set(0.0)


BLOCK = 16
"""Grids in log s are multiples of this: within a block X grows by known factors."""
TILE = 128
"""Nodes taken at once."""
LEAST_RANK = 2
"""Coordinates of a node on a grid. Heads of lower rank get some that are always 0: they change no
number, and spare a program for each rank."""


def tile(array: Array, index: Array, size: int = TILE) -> Array:
    """Rows ``index·size`` to ``(index + 1)·size``."""
    return jax.lax.dynamic_slice_in_dim(array, index * size, size)


def tiles(used: Array, size: int = TILE) -> Array:
    """Number of tiles that hold the first ``used`` nodes."""
    return (used + size - 1) // size


def nodes_of(head: Head, points: Array, log_weight: Array) -> tuple[Array, Array]:
    """Whitened nodes (…, k) from points of the unit ball, and log weights with the density."""
    xi = head.centre + points @ head.shape.T
    return xi, log_weight + head.log_scale - 0.5 * jnp.sum(xi**2, axis=-1)


def log_kernel(kernel: Kernel, head: Head, xi: Array) -> Array:
    """log K at whitened nodes (N, k)."""
    return kernel.log_value(head.query[:, None], head.map @ xi.T, head.bandwidth)


def responses(
    kernel: Kernel, head: Head, log_k: Array, step: Array, count: int
) -> tuple[Array, Array, Array]:
    """``1 − e^{−X}``, ``X e^{−X}`` and X for X = e^u K on the grid in u; each (…, M, N).

    One exponential each: X from the block's first point, and the first response by its series
    where X is small.
    """
    start = head.low + step * jnp.arange(0, count, BLOCK)
    # Above e^40 both responses are at their limits, 1 and 0, to rounding.
    x = jnp.exp(jnp.minimum(start[:, None] + log_k[..., None, :], 40.0))
    x = x[..., :, None, :] * jnp.exp(step * jnp.arange(BLOCK))[:, None]
    x = x.reshape(*log_k.shape[:-1], count, log_k.shape[-1])
    if kernel.support is not None:
        x = x.at[..., -1, :].set(jnp.where(log_k > -jnp.inf, jnp.exp(40.0), 0.0))
    rest = jnp.exp(-x)
    series = 1 - x / 7
    for order in range(6, 1, -1):
        series = 1 - x / order * series
    return jnp.where(x < 1 / 32, x * series, 1 - rest), x * rest, x


def stacked_responses(kernel: Kernel, head: Head, xi: Array, step: Array, count: int) -> Array:
    """``[1 − e^{−X}; X e^{−X}]`` on the grid in log s: (2M, N)."""
    hit, once, _ = responses(kernel, head, log_kernel(kernel, head, xi), step, count)
    return jnp.concatenate([hit, once])


def moments(
    regression: Regression, cosine: Array, sine: Array, about: Array
) -> tuple[Array, Array]:
    """``E[m | node] − about`` and ``E[(m − about)² | node]``, from cos θ and sin θ (…, J)."""
    mean = cosine @ regression.mean - about
    variance = jnp.sum(
        (cosine @ regression.cosine) * cosine + (sine @ regression.sine) * sine, axis=-1
    )
    return mean, mean**2 + variance


def relative(gap: Array, size: Array) -> Array:
    """gap/size, where the size is not negligible."""
    return gap / jnp.maximum(size, 1e-12)


def single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    head: Head,
    regression: Regression,
    nodes: Callable[[Array], tuple[Array, Array]],
    used: Array | int,
) -> Single:
    """All integrals of one head at one query.

    ``nodes`` gives a tile's nodes (TILE, k) and their log weights, the density included; the first
    ``used`` nodes count.
    """
    # Squares are taken about the target at the kernel's centre, near E f̂: about 0 they would
    # cancel.
    origin = jnp.cos(phase + regression.first @ head.centre) @ regression.mean

    def add(index: Array, total: Array) -> Array:
        xi, log_weight = nodes(index)
        angle = phase + xi @ regression.first.T
        mean, square = moments(regression, jnp.cos(angle), jnp.sin(angle), origin)
        hit, once, x = responses(kernel, head, log_kernel(kernel, head, xi), step, count)
        measures = jnp.exp(log_weight)[:, None] * jnp.stack(
            [jnp.ones_like(mean), mean, square], axis=1
        )
        return total + jnp.concatenate([hit, once, once * x]) @ measures

    total = jax.lax.fori_loop(0, tiles(jnp.asarray(used)), add, jnp.zeros((3 * count, 3)))
    a, weight_curve = total[:count, 0], total[count : 2 * count, 0]
    weighted = total[count : 2 * count, 1] + origin * weight_curve
    du = log_weights(kernel, count, step)
    log_phi = jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16))
    power = n * jnp.exp((n - 1) * log_phi)
    first = du * power
    estimate, mass = first @ weighted, first @ weight_curve
    compact = kernel.support is not None
    reach = -jnp.expm1(n * log_phi[-1]) if compact else jnp.ones(())
    centre = jnp.where(mass > 0, estimate / jnp.where(mass > 0, mass, 1.0), 0.0)
    # ∫ s E[K² (m − origin)^j e^{−sK}] φ^{n−1} ds for j = 0, 1, 2.
    noise, tilt, square = step * power @ total[2 * count :]
    shift = centre - origin
    cross = n * (n - 1) * step * jnp.exp((n - 2) * log_phi)
    return Single(
        reach=reach,
        signal=square
        - shift * (2 * tilt - shift * noise)
        + cross @ (weighted - centre * weight_curve) ** 2
        + centre**2 * reach * (1 - reach),
        noise=noise,
        defect=relative(
            jnp.maximum(
                jnp.abs(mass - reach),
                jnp.abs(noise + cross @ weight_curve**2 - reach),
            ),
            reach,
        ),
        centre=centre,
        hit=a,
        weight=weight_curve,
        weighted=weighted,
    )


def grid_single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Any,
    head: Head,
    regression: Regression,
) -> Single:
    """:func:`single` on the polar grid around the head's centre."""
    points, log_weight, used = rule

    def nodes(index: Array) -> tuple[Array, Array]:
        return nodes_of(head, tile(points, index), tile(log_weight, index))

    return single(kernel, count, step, n, phase, head, regression, nodes, used)


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
    phase: Array,
    rule: Array,
    head: Head,
    regression: Regression,
    proposal: Proposal,
) -> Single:
    """:func:`single` by randomised quasi-Monte Carlo; a leading axis of randomisations."""

    def replicate(normal: Array) -> Single:
        points, log_weight = draw(proposal, normal)
        rule = points, log_weight, len(points)
        return point_single(kernel, count, step, n, phase, rule, head, regression)

    return jax.lax.map(replicate, rule)


def point_single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: tuple[Array, Array, Array | int],
    head: Head,
    regression: Regression,
) -> Single:
    """:func:`single` on points (N, k) with log weights (N,), of which the first ``used`` count."""
    points, log_weight, used = rule
    return single(
        kernel,
        count,
        step,
        n,
        phase,
        head,
        regression,
        lambda index: (tile(points, index), tile(log_weight, index)),
        used,
    )
