"""The algebra of a pair of heads: its integrals from what happens where both kernels reach.

Formulas and notation: :mod:`sims.theory.exact.laplace`. A pair adds to its heads' own curves only
expectations over one key, matrix products over the nodes for all (s, t) at once;
:mod:`sims.theory.exact.pair_rules` takes them.
"""

from typing import NamedTuple, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.theory.arrays import Numbers
from sims.theory.exact.laplace import Head, Regression, Setting, Single, TargetValues, relative


class Pair(NamedTuple):
    """A pair's integrals: signal and noise covariance (σ² = 1), and the defect."""

    signal: Float[Numbers, "*R"] | float
    noise: Float[Numbers, "*R"] | float
    defect: Float[Numbers, "*R"] | float


Terms = TypeVar("Terms", Single, Pair)
"""Result of a rule for a head or a pair."""


class Couple(NamedTuple):
    """Two heads at a query, as every rule for pairs needs them.

    Attributes:
        heads: both, in canonical coordinates.
        singles: their own integrals and curves, on one grid in log s each.
        regression: the target given a joint node.
    """

    heads: tuple[Head, Head]
    singles: tuple[Single, Single]
    regression: Regression | TargetValues


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
    # φ(s, t) = 1 − a_h − a_g + D. One key in both heads: n ∬ ⟨K_hK_g⟩ φ^{n−1} ds dt, the noise.
    # (docs/theory.md, "Exact at every n")
    log_phi = jnp.log1p(-jnp.clip(first.hit[:, None] + second.hit - hit_hit, 0.0, 1 - 1e-16))
    area = du[:, None] * du
    outer = n * area * jnp.exp((n - 1) * log_phi)
    noise = jnp.sum(outer * once_once)

    # One key a head: n(n−1) ∬ ⟨K_h (m − c_h)⟩⟨K_g (m − c_g)⟩ φ^{n−2} ds dt, with each bracket the
    # head's own curve less what the other head's response takes off it.
    shift = first.centre - second.centre
    in_h = first.weight[:, None] - once_hit
    in_g = second.weight - hit_once
    m_h = (first.weighted - first.centre * first.weight)[:, None] - once_hit_m
    m_g = (second.weighted - second.centre * second.weight) - hit_once_m - shift * hit_once
    cross = n * (n - 1) * area * jnp.exp((n - 2) * log_phi)
    signal = shift * jnp.sum(outer * once_once_m) + jnp.sum(cross * m_h * m_g)
    joint_reach: Numbers = jnp.ones(())
    if setting.compact:
        # f̂ = G + c·1{S > 0} with G = Σ w (m − c): what the empty neighbourhoods add. E G = 0, so
        # E[G_h 1{S_g > 0}] is −E[G_h 1{S_g = 0}]; u = ∞ is the last point of the grids.
        # (docs/theory.md, "Exact at every n", empty neighbourhoods)
        remainder_h = n * du @ (m_h[:, -1] * jnp.exp((n - 1) * log_phi[:, -1]))
        remainder_g = n * du @ (m_g[-1] * jnp.exp((n - 1) * log_phi[-1]))
        joint_reach = first.reach + second.reach + jnp.expm1(n * log_phi[-1, -1])
        signal += first.centre * second.centre * (joint_reach - first.reach * second.reach)
        signal -= second.centre * remainder_h + first.centre * remainder_g
    gap = jnp.abs(noise + jnp.sum(cross * in_h * in_g) - joint_reach)
    return Pair(signal, noise, relative(gap, jnp.maximum(joint_reach, 1e-3))), outer
