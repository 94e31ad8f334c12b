"""The Laplace integrals of one head on given nodes, and the arrays that all integrals are made of.

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
drown in (E f̂)². Derivation: docs/theory.md, "Exact at every n". Source: Laplace transform of the
denominator as in Cressie et al. (1981), doi:10.1080/00031305.1981.10479334.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sims.problem.kernels import Kernel
from sims.theory.arrays import Number, Numbers

BLOCK = 16
"""Points of the grid in log s whose X follow from the first by known factors; sizes of grids are
multiples of it. Longer blocks save exponentials but let rounding grow."""
TILE = 128
"""Nodes taken at once: their responses then stay in a core's cache."""
LEAST_RANK = 2
"""Coordinates of a node on a grid. Heads of lower rank get some that are always 0: they change no
number, and spare a program for each rank."""
SATURATED = 40.0
"""log X above which both responses are at their limits, 1 and 0, to rounding."""


class Nodes(NamedTuple):
    """Quadrature nodes, padded to a size that few programs share.

    Attributes:
        points: y in the unit ball of a head's ``shape``, or coordinates of their own, (N, k).
        log_weight: log of each node's weight, (N,).
        used: number of nodes that count; those behind carry no weight.
    """

    points: Float[Numbers, "*R N k"]
    log_weight: Float[Numbers, "*R N"]
    used: Int[Numbers, ""] | int

    def tile(self, index: Int[Array, ""], size: int = TILE) -> tuple[Array, Array]:
        """Points and log weights ``index·size`` to ``(index + 1)·size``."""
        return tile(self.points, index, size), tile(self.log_weight, index, size)


class Head(NamedTuple):
    """A :class:`~sims.theory.exact.conditioning.Projection` with its extent, as arrays.

    Nodes are ``centre + shape y`` for y in the unit ball; ``log_scale`` is log |det shape| and the
    constant of the density of N(0, I_k). The grid in log s starts at ``low``.
    """

    map: Float[Numbers, "d_k k"]
    query: Float[Numbers, " d_k"]
    centre: Float[Numbers, " k"]
    shape: Float[Numbers, "k k"]
    bandwidth: Number
    low: Number
    log_scale: Number

    def placed(self, nodes: Nodes) -> Nodes:
        """Whitened nodes ξ from points of the unit ball, and log weights with the density."""
        xi = jnp.asarray(self.centre) + nodes.points @ self.shape.T
        density = self.log_scale - 0.5 * jnp.sum(xi**2, axis=-1)
        return Nodes(xi, nodes.log_weight + density, nodes.used)


class Regression(NamedTuple):
    """The target given a node: angles θ_j, and the two quadratic forms of its variance.

    ``θ = phase + first x`` (plus ``second y`` for a pair's second coordinates), ``E[m | node]`` is
    ``Σ_j mean_j cos θ_j`` and ``Var[m | node]`` is ``cosᵀ cosine cos + sinᵀ sine sin``; see
    :class:`~sims.theory.exact.conditioning.GaussianLaw`.
    """

    first: Float[Numbers, "J k"]
    second: Float[Numbers, "J k_g"]
    phase: Float[Numbers, " J"]
    mean: Float[Numbers, " J"]
    cosine: Float[Numbers, "J J"]
    sine: Float[Numbers, "J J"]

    def centre_value(self, centre: Float[Numbers, " k"]) -> Array:
        """``Σ_j mean_j cos θ_j`` at the centre of the nodes, of which squares are taken about."""
        return jnp.cos(self.phase + self.first @ centre) @ self.mean

    def conditional_moments(
        self, about: Numbers, x: Float[Array, "*N k"], y: Float[Array, "*N k_g"] | None = None
    ) -> tuple[Float[Array, "*N"], Float[Array, "*N"]]:
        """:meth:`moments` at nodes x, or (x, y) of a pair."""
        angle = x @ self.first.T
        if y is not None:
            angle = angle + y @ self.second.T
        angle = angle + self.phase
        return self.moments(jnp.cos(angle), jnp.sin(angle), about)

    def moments(
        self, cosine: Float[Array, "*N J"], sine: Float[Array, "*N J"], about: Numbers
    ) -> tuple[Float[Array, "*N"], Float[Array, "*N"]]:
        """``E[m | node] − about`` and ``E[(m − about)² | node]``, from cos θ and sin θ."""
        mean = cosine @ self.mean - about
        variance = (cosine @ self.cosine) * cosine + (sine @ self.sine) * sine
        return mean, mean**2 + jnp.sum(variance, axis=-1)


class TargetValues(NamedTuple):
    """The target where a node's last coordinate is its value: any function, known at X itself.

    Heads have 0 in their ``map`` for that coordinate.
    """

    def centre_value(self, centre: Float[Numbers, " k"]) -> Array:
        """The last coordinate of the centre, of which squares are taken about."""
        return jnp.asarray(centre)[-1]

    def conditional_moments(
        self, about: Numbers, x: Float[Array, "*N k"], y: Float[Array, "*N k_g"] | None = None
    ) -> tuple[Float[Array, "*N"], Float[Array, "*N"]]:
        """``m − about`` and its square at nodes x; y, that of a pair, has the same value."""
        del y
        mean = x[..., -1] - about
        return mean, mean**2


class Single(NamedTuple):
    """Integrals of a head (scalars), and the curves that its pairs need (M,).

    Attributes:
        reach: P(S > 0).
        signal: variance of Σ_i w_i m(X_i).
        noise: E Σ_i w_i².
        defect: relative distance of Σ_i w_i and (Σ_i w_i)² from what they must be on average.
        centre: c = E[f̂ | S > 0].
        hit: a(u), see :mod:`sims.theory.exact.laplace`.
        weight: A(u).
        weighted: E[X e^{−X} m].
    """

    reach: Float[Numbers, "*R"]
    signal: Float[Numbers, "*R"]
    noise: Float[Numbers, "*R"]
    defect: Float[Numbers, "*R"]
    centre: Float[Numbers, "*R"]
    hit: Float[Numbers, "*R M"]
    weight: Float[Numbers, "*R M"]
    weighted: Float[Numbers, "*R M"]


class Setting(eqx.Module):
    """Settings shared by the integrals of a program: kernel, number of keys, grid in log s.

    Attributes:
        kernel: K, of all heads.
        size: M, number of points of the grid in u = log s.
        step: distance of neighbouring points.
        n: number of keys, as a float.
    """

    kernel: Kernel = eqx.field(static=True)
    size: int = eqx.field(static=True)
    step: Float[Numbers, ""]
    n: Float[Numbers, ""]

    @property
    def compact(self) -> bool:
        """True if the kernel vanishes outside a ball, so that no key may be in reach."""
        return self.kernel.support is not None

    def weights(self) -> Float[Array, " M"]:
        """Weights of the grid in u; the first carries the left tail, which is ∝ e^u there.

        A compact kernel's last point stands for u = ∞, with weight 0: its responses, 1 where K > 0
        and 0 elsewhere, give P(K > 0).
        """
        weights = jnp.full(self.size, self.step).at[0].set(self.step / -jnp.expm1(-self.step))
        return weights.at[-1].set(0.0) if self.compact else weights

    def log_kernel(self, head: Head, xi: Float[Array, "N k"]) -> Float[Array, " N"]:
        """``log K`` at whitened nodes."""
        query = jnp.asarray(head.query)[:, None]
        keys = jnp.asarray(head.map @ xi.T)
        return self.kernel.log_value(query, keys, jnp.asarray(head.bandwidth))

    def responses(
        self, head: Head, log_k: Float[Array, "*B N"]
    ) -> tuple[Float[Array, "*B M N"], Float[Array, "*B M N"], Float[Array, "*B M N"]]:
        """``1 − e^{−X}``, ``X e^{−X}`` and X for X = e^u K on the grid in u.

        One exponential each: X from the block's first point, and the first response by its series
        where X is small.
        """
        start = head.low + self.step * jnp.arange(0, self.size, BLOCK)
        x = jnp.exp(jnp.minimum(start[:, None] + log_k[..., None, :], SATURATED))
        x = x[..., :, None, :] * jnp.exp(self.step * jnp.arange(BLOCK))[:, None]
        x = x.reshape(*log_k.shape[:-1], self.size, log_k.shape[-1])
        if self.compact:
            x = x.at[..., -1, :].set(jnp.where(log_k > -jnp.inf, jnp.exp(SATURATED), 0.0))
        rest = jnp.exp(-x)
        # 1 − e^{−X} = X (1 − X/2 (1 − X/3 (…))): no digits are lost where X is small.
        series = 1 - x / 7
        for order in range(6, 1, -1):
            series = 1 - x / order * series
        return jnp.where(x < 1 / 32, x * series, 1 - rest), x * rest, x

    def stacked_responses(self, head: Head, xi: Float[Array, "N k"]) -> Float[Array, "rows N"]:
        """``[1 − e^{−X}; X e^{−X}]`` on the grid in u."""
        hit, once, _ = self.responses(head, self.log_kernel(head, xi))
        return jnp.concatenate([hit, once])


def tile(array: Numbers, index: Int[Array, ""], size: int = TILE) -> Array:
    """Rows ``index·size`` to ``(index + 1)·size``."""
    return jax.lax.dynamic_slice_in_dim(array, index * size, size)


def tiles(used: Int[Numbers, ""] | int, size: int = TILE) -> Int[Array, ""]:
    """Number of tiles that hold the first ``used`` nodes."""
    return (jnp.asarray(used) + size - 1) // size


def relative(gap: Numbers, size: Numbers) -> Array:
    """gap/size, where the size is not negligible."""
    return jnp.asarray(gap) / jnp.maximum(size, 1e-12)


def single(
    setting: Setting, nodes: Nodes, head: Head, regression: Regression | TargetValues
) -> Single:
    """Integrals of a head at a query.

    Args:
        setting: kernel, keys and grid.
        nodes: in the head's own coordinates, and log weights with the density.
        head: the head with its extent.
        regression: the target given a node.
    """
    size = setting.size
    n = setting.n
    # Squares are taken about the target at the kernel's centre, near E f̂: about 0 they would
    # cancel.
    origin = regression.centre_value(head.centre)

    def add(index: Array, total: Array) -> Array:
        xi, log_weight = nodes.tile(index)
        mean, square = regression.conditional_moments(origin, xi)
        hit, once, x = setting.responses(head, setting.log_kernel(head, xi))
        measures = jnp.exp(log_weight)[:, None] * jnp.stack(
            [jnp.ones_like(mean), mean, square], axis=1
        )
        return total + jnp.concatenate([hit, once, once * x]) @ measures

    total = jax.lax.fori_loop(0, tiles(nodes.used), add, jnp.zeros((3 * size, 3)))

    # Expectations over one key as curves in u: a, A and E[X e^{−X} m]; and log φ from a.
    # (docs/theory.md, "Exact at every n")
    a = total[:size, 0]
    weight = total[size : 2 * size, 0]
    weighted = total[size : 2 * size, 1] + origin * weight
    log_phi = jnp.log1p(-jnp.clip(a, 0.0, 1 - 1e-16))

    # E f̂ = n ∫ E[K m e^{−sK}] φ^{n−1} ds, and the same with m ≡ 1, which is P(S > 0).
    power = n * jnp.exp((n - 1) * log_phi)
    first = setting.weights() * power
    estimate = first @ weighted
    mass = first @ weight
    reach = -jnp.expm1(n * log_phi[-1]) if setting.compact else jnp.ones(())
    centre = jnp.where(mass > 0, estimate / jnp.where(mass > 0, mass, 1.0), 0.0)

    # One key twice: n ∫ s E[K² (m − origin)^j e^{−sK}] φ^{n−1} ds for j = 0, 1, 2. Two keys:
    # n(n−1) ∫ s E[K (m − c) e^{−sK}]² φ^{n−2} ds. Both moved from the origin to the centre c.
    noise, tilt, square = setting.step * power @ total[2 * size :]
    shift = centre - origin
    cross = n * (n - 1) * setting.step * jnp.exp((n - 2) * log_phi)
    return Single(
        reach=reach,
        signal=square
        - shift * (2 * tilt - shift * noise)
        + cross @ (weighted - centre * weight) ** 2
        + centre**2 * reach * (1 - reach),
        noise=noise,
        defect=relative(
            jnp.maximum(jnp.abs(mass - reach), jnp.abs(noise + cross @ weight**2 - reach)), reach
        ),
        centre=centre,
        hit=a,
        weight=weight,
        weighted=weighted,
    )


def grid_single(setting: Setting, nodes: Nodes, head: Head, regression: Regression) -> Single:
    """:func:`single` on the polar grid around the head's centre."""
    return single(setting, head.placed(nodes), head, regression)


class Proposal(NamedTuple):
    """N(mean, L Lᵀ), to draw standard normal coordinates from with importance weights."""

    mean: Float[Numbers, " p"]
    root: Float[Numbers, "p p"]

    def draw(self, normal: Float[Array, "N p"]) -> Nodes:
        """Points and their log weights: the standard normal density over the proposal's, / N."""
        points = self.mean + normal @ self.root.T
        log_root = jnp.sum(jnp.log(jnp.abs(jnp.diag(self.root))))
        log_weight = 0.5 * (jnp.sum(normal**2, axis=1) - jnp.sum(points**2, axis=1)) + log_root
        return Nodes(points, log_weight - jnp.log(len(normal)), len(normal))


def sobol_single(
    setting: Setting,
    normals: Float[Array, "R N k"],
    head: Head,
    regression: Regression,
    proposal: Proposal,
) -> Single:
    """:func:`single` by randomised quasi-Monte Carlo; a leading axis of R randomisations."""
    return jax.lax.map(
        lambda normal: single(setting, proposal.draw(normal), head, regression), normals
    )
