"""α-entmax: weights ``(z_i/ν − τ)₊^ν`` with the threshold τ at which they sum to 1, α = 1 + 1/ν.

ν = 1 is sparsemax, the projection on the probability simplex; ν → ∞ is softmax. Sources: Martins &
Astudillo (2016), arXiv 1602.02068; Peters, Niculae & Martins (2019), arXiv 1905.05702, who write
``((α − 1) z − τ)₊^{1/(α − 1)}``.

With the largest score at 0 and ``u = −τ``, which lies in [n^{−1/ν}, 1], the weights are
``u^ν (1 + z_i/νu)₊^ν``: a power of a ratio, which keeps its digits for every ν, and a first factor
that division by the sum replaces.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.base.checks import check_within

POWERS = (1e-20, 1e20)
"""Allowed powers ν: reciprocals stay finite in single precision too."""
ROUNDS = 200
"""Maximum number of steps: bisection needs 150 in double precision from the widest bracket."""
COARSE, ROUGH = 64, 0.05
"""Keys of the first, rough search, and the relative length of its last step."""
SLACK = 0.999
"""Factor of the bracket's lower end, which is the root if all scores are equal."""


State = tuple[Array, Array, Array, Array, Array]
"""State of the search for a root: place, ends of the bracket, length of last step, steps."""


@dataclass(frozen=True)
class Entmax:
    """α-entmax weights of the scores of all keys: non-negative, of sum 1, exactly 0 for low scores.

    Differentiable in the scores, to any order, where no score equals the threshold (at ν = 1 the
    derivative there is one-sided). All weights are 0 only where all scores are −∞.

    Attributes:
        nu: the power ν, within :data:`POWERS`.
    """

    nu: float

    def __post_init__(self) -> None:
        check_within("heads.kernel.nu", self.nu, *POWERS)

    def __call__(self, scores: Float[Array, " n"]) -> Float[Array, " n"]:
        top = lax.stop_gradient(jnp.max(scores))
        # A weight needs z > −ν: lower scores, −∞ among them, may all count as −2ν.
        shifted = jnp.maximum(scores - jnp.where(jnp.isfinite(top), top, 0.0), -2 * self.nu)
        parts = power(shifted / (self.nu * level(self.nu, shifted)), self.nu)
        return jnp.where(jnp.isfinite(top), parts / jnp.sum(parts), 0.0)


def power(ratio: Array, exponent: float) -> Array:
    """``(1 + r)₊^p``, and 0 for r ≤ −1 whatever p ≥ −1; by products where p is a small integer."""
    inside = ratio > -1
    if exponent in (0, 1, 2, 3):
        return jnp.where(inside, (1 + ratio) ** int(exponent), 0.0)
    # Two steps, because the derivative of log at 0 would reach through jnp.where as NaN.
    return jnp.where(inside, jnp.exp(exponent * jnp.log1p(jnp.where(inside, ratio, 0.0))), 0.0)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def level(nu: float, shifted: Float[Array, " n"]) -> Float[Array, ""]:
    """The root u of ``u^ν Σ_i (1 + z_i/νu)₊^ν = 1``, for scores z whose largest is 0.

    By Newton's method on ``‖(u + z/ν)₊‖_ν − 1``, which is convex in u for ν ≥ 1 and then falls to
    the root from u = 1; a bracket is kept and halved where a step leaves it or shrinks too slowly.
    """
    n = shifted.shape[0]
    upper = jnp.ones((), shifted.dtype)
    y = shifted / nu
    if n >= 8 * COARSE:
        # Keys left out make the root larger: the maxima of the columns are few, and begin near it.
        rows = jnp.pad(y, (0, -n % COARSE), constant_values=-2).reshape(-1, COARSE)
        upper = _search(nu, rows.max(0), upper, ROUGH)[1]
    return _search(nu, y, upper, 2 * float(jnp.finfo(shifted.dtype).eps))[0]


def _search(
    nu: float, y: Float[Array, " n"], start: Float[Array, ""], tolerance: float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Root, from a point that is not below it, and the upper end of its bracket."""
    low = jnp.maximum(SLACK * y.shape[0] ** (-1 / nu), jnp.finfo(y.dtype).tiny).astype(y.dtype)

    def step(state: State) -> State:
        u, low, high, moved, count = state
        ratio = y * (1 / u)
        total = jnp.sum(power(ratio, nu))
        logarithm = jnp.log(u) + jnp.log(total) / nu
        low, high = jnp.where(logarithm < 0, u, low), jnp.where(logarithm < 0, high, u)
        newton = u + jnp.expm1(-logarithm) * u * total / jnp.sum(power(ratio, nu - 1))
        fast = (newton >= low) & (newton <= high) & (jnp.abs(newton - u) <= 0.5 * moved)
        new = jnp.where(fast, newton, 0.5 * (low + high))
        return new, low, high, jnp.abs(new - u), count + 1

    def goes_on(state: State) -> Array:
        u, _, _, moved, count = state
        return (moved > tolerance * u) & (count < ROUNDS)

    begin = (start, jnp.minimum(low, start), start, 2 * jnp.ones_like(start), jnp.zeros((), int))
    u, _, high, _, _ = lax.while_loop(goes_on, step, begin)
    return u, high


@level.defjvp
def _level_derivative(
    nu: float, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    """``du = −Σ s_i dz_i/(ν Σ s_i)`` with ``s_i = (1 + z_i/νu)₊^{ν−1}``, from the defining sum."""
    (shifted,), (direction,) = primals, tangents
    u = level(nu, shifted)
    slopes = power(shifted / (nu * u), nu - 1)
    return u, -jnp.sum(slopes * direction) / (nu * jnp.sum(slopes))
