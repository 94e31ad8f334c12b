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
drown in (E f̂)². Derivation: docs/theory/exact.md. Source: Laplace transform of the
denominator as in Cressie et al. (1981), doi:10.1080/00031305.1981.10479334.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sims.problem.kernels import Kernel
from sims.theory.arrays import Number, Numbers
from sims.theory.exact.gram import compiled, head_sums, log_phi

TILE = 128
"""Nodes taken at once: their responses then stay in a core's cache."""
SATURATED = 40.0
"""log X above which both responses are at their limits, 1 and 0, to rounding."""


class Nodes(NamedTuple):
    """Quadrature nodes, padded to a size that few programs share.

    Attributes:
        points: y in the unit ball of a head's ``shape``, then ξ, (N, k).
        log_weight: log of each node's weight, (N,).
        used: number of nodes that count; those behind carry no weight.
    """

    points: Float[Numbers, "N k"]
    log_weight: Float[Numbers, " N"]
    used: Int[Numbers, ""] | int

    def tile(self, index: Int[Array, ""], size: int = TILE) -> tuple[Array, Array]:
        """Points and log weights ``index·size`` to ``(index + 1)·size``."""
        points, log_weight = (
            jax.lax.dynamic_slice_in_dim(array, index * size, size)
            for array in (self.points, self.log_weight)
        )
        return points, log_weight


class Head(NamedTuple):
    """A head at a query, in whitened coordinates ξ ~ N(0, I_k).

    Attributes:
        functional: T (d, k) with ``ξ = TᵀX``, ``TᵀΣT = I``.
        map: A (d_k, k), ``VᵀX = A ξ``.
        query: q = Uᵀx, shape (d_k,).
        centre: ξ that the quadrature is arranged around, shape (k,).
        shape: B (k, k); nodes are ``centre + B y`` for y in the unit ball.
        loading: ΩJ = Cov(ω_j·X, ξ), shape (J, k).
        bandwidth: b.
        low: where the grid in log s starts.
    """

    functional: Float[Numbers, "d k"]
    map: Float[Numbers, "d_k k"]
    query: Float[Numbers, " d_k"]
    centre: Float[Numbers, " k"]
    shape: Float[Numbers, "k k"]
    loading: Float[Numbers, "J k"]
    bandwidth: Number
    low: Number = 0.0

    @property
    def rank(self) -> int:
        """k, the number of directions in which keys differ for this head."""
        return self.map.shape[1]

    def rotated(self, rotation: Float[Numbers, "k k"]) -> "Head":
        """The same head in coordinates rotationᵀ ξ."""
        return self._replace(
            functional=self.functional @ rotation,
            map=self.map @ rotation,
            centre=rotation.T @ self.centre,
            shape=rotation.T @ self.shape,
            loading=self.loading @ rotation,
        )

    def placed(self, nodes: Nodes) -> Nodes:
        """Whitened nodes ξ from points of the unit ball, and log weights with the density."""
        xi = self.centre + nodes.points @ self.shape.T
        log_scale = jnp.linalg.slogdet(self.shape)[1] - 0.5 * self.rank * np.log(2 * np.pi)
        density = log_scale - 0.5 * jnp.sum(xi**2, axis=-1)
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

    def moments(
        self, about: Numbers, x: Float[Array, "*N k"]
    ) -> tuple[Float[Array, "*N"], Float[Array, "*N"]]:
        """``E[m | node] − about`` and ``E[(m − about)² | node]`` at nodes of one head."""
        angle = x @ self.first.T + self.phase
        cosine = jnp.cos(angle)
        sine = jnp.sin(angle)
        mean = cosine @ self.mean - about
        variance = (cosine @ self.cosine) * cosine + (sine @ self.sine) * sine
        return mean, mean**2 + jnp.sum(variance, axis=-1)


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

    reach: Float[Numbers, ""]
    signal: Float[Numbers, ""]
    noise: Float[Numbers, ""]
    defect: Float[Numbers, ""]
    centre: Float[Numbers, ""]
    hit: Float[Numbers, " M"]
    weight: Float[Numbers, " M"]
    weighted: Float[Numbers, " M"]


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

    def responses(
        self, head: Head, xi: Float[Array, "N k"]
    ) -> tuple[Float[Array, "M N"], Float[Array, "M N"], Float[Array, "M N"]]:
        """``1 − e^{−X}``, ``X e^{−X}`` and X for X = e^u K on the grid in u, at whitened nodes."""
        query = jnp.asarray(head.query)[:, None]
        log_k = self.kernel.log_value(
            query, jnp.asarray(head.map @ xi.T), jnp.asarray(head.bandwidth)
        )
        u = head.low + self.step * jnp.arange(self.size)
        x = jnp.exp(jnp.minimum(u[:, None] + log_k, SATURATED))
        if self.compact:
            x = x.at[-1].set(jnp.where(log_k > -jnp.inf, jnp.exp(SATURATED), 0.0))
        return -jnp.expm1(-x), x * jnp.exp(-x), x


def tiles(used: Int[Numbers, ""] | int, size: int = TILE) -> Int[Array, ""]:
    """Number of tiles that hold the first ``used`` nodes."""
    return (jnp.asarray(used) + size - 1) // size


def relative(gap: Numbers, size: Numbers) -> Array:
    """gap/size, where the size is not negligible."""
    return jnp.asarray(gap) / jnp.maximum(size, 1e-12)


@compiled
def single(setting: Setting, grids: tuple[Nodes], head: Head, regression: Regression) -> Single:
    """Integrals of a head at a query.

    Args:
        setting: kernel, keys and grid.
        grids: nodes of the unit ball.
        head: the head with its extent.
        regression: the target given a node.
    """
    nodes = head.placed(*grids)
    size = setting.size
    n = setting.n
    # Squares are taken about the target at the kernel's centre, near E f̂: about 0 they would
    # cancel.
    origin = jnp.cos(regression.phase + regression.first @ head.centre) @ regression.mean

    def add(index: Array, total: Array) -> Array:
        xi, log_weight = nodes.tile(index)
        mean, square = regression.moments(origin, xi)
        hit, once, x = setting.responses(head, xi)
        measures = jnp.exp(log_weight)[:, None] * jnp.stack(
            [jnp.ones_like(mean), mean, square], axis=1
        )
        return total + jnp.concatenate([hit, once, once * x]) @ measures

    total = jax.lax.fori_loop(0, tiles(nodes.used), add, jnp.zeros((3 * size, 3)))

    # Expectations over one key as curves in u: a, A and E[X e^{−X} m]; the mean with m ≡ 1 is
    # P(S > 0). (docs/theory/exact.md)
    hit, once, twice = total.reshape(3, size, 3)
    a = hit[:, 0]
    weights = setting.weights(), setting.step
    mass, shift, (noise, total_square, signal) = head_sums(n, weights, a, once, twice)
    reach = -jnp.expm1(n * log_phi(a[-1])) if setting.compact else jnp.ones(())
    centre = jnp.where(mass > 0, shift + origin, 0.0)
    return Single(
        reach=reach,
        signal=signal + centre**2 * reach * (1 - reach),
        noise=noise,
        defect=relative(jnp.maximum(jnp.abs(mass - reach), jnp.abs(total_square - reach)), reach),
        centre=centre,
        hit=a,
        weight=once[:, 0],
        weighted=once[:, 1] + origin * once[:, 0],
    )
