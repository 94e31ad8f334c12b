"""Weight rules: from the scores of all keys to the weights of a head's estimate ``Σ_i w_i Y_i``.

A kernel, ``w = K/ΣK``, is the rule whose weights can be summed key by key: it is a
:class:`~sims.problem.Kernel`, and its sums stream. A :class:`WeightRule` is any other: it sees all
keys at once.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from sims.errors import InputError

Scores = Callable[[Array, Array, ArrayLike], Array]
"""``(query (p, …), keys (p, …), bandwidth) -> (…)``: coordinates first, like a log-kernel."""
Weights = Callable[[Float[Array, " n"]], Float[Array, " n"]]
"""Scores of all n keys to their weights."""


@dataclass(frozen=True)
class WeightRule:
    """Weights ``w(x) = weights(scores of all keys)`` of one head at one query.

    Attributes:
        name: the name under which results and errors speak of it.
        scores: ``(query (p, …), keys (p, …), bandwidth) -> (…)`` of projected points; any
            ``log_value`` of a kernel will do. Finite, or −inf for a key that is out of reach.
        weights: ``(n,) -> (n,)``, traced by JAX. They need be neither positive nor of sum 1; a
            query whose weights are all 0 has an empty neighbourhood: its estimate counts as 0.
    """

    name: str
    scores: Scores
    weights: Weights

    def __call__(
        self, query: Float[Array, " p"], keys: Float[Array, "p n"], bandwidth: ArrayLike
    ) -> Float[Array, " n"]:
        """The weights of n keys at one query, in the keys' precision."""
        return self.weights(self.scores(query[:, None], keys, bandwidth)).astype(keys.dtype)


def dot_product(query: Array, keys: Array, bandwidth: ArrayLike) -> Array:
    """``⟨q, k⟩/s`` with temperature s = b², the scores of scaled dot-product attention."""
    return jnp.sum((query / bandwidth) * (keys / bandwidth), axis=0)


def simplex_projection(scores: Float[Array, " n"]) -> Float[Array, " n"]:
    """The point of the probability simplex nearest the scores: exactly 0 for the lowest of them.

    Source: Martins & Astudillo (2016), arXiv 1602.02068.
    """
    from optax.projections import projection_simplex  # slow to import

    return projection_simplex(scores)


RULES: dict[str, WeightRule] = {
    "sparsemax": WeightRule("sparsemax", dot_product, simplex_projection),
}
"""Every weight rule that is no kernel, by its name."""


@functools.lru_cache(maxsize=256)
def check_rule(rule: WeightRule, width: int) -> None:
    """Evaluate a rule at a few points, as the engine will: compiled.

    Args:
        rule: as given by the user.
        width: p, the coordinates of a projected point.

    Raises:
        InputError: a function fails, has another shape, or gives no finite numbers.
    """
    field, rng = f"heads.kernel {rule.name!r}", np.random.default_rng(0)
    query, keys = rng.normal(size=(width, 1)), rng.normal(size=(width, 7))
    with jax.ensure_compile_time_eval():
        for part, function, *points in (
            ("scores", rule.scores, query, keys, 0.8),
            ("weights", rule.weights, np.linspace(-1.5, 2.0, 7)),
        ):
            try:
                values = np.asarray(jax.jit(function)(*map(jnp.asarray, points)))
            except Exception as error:
                allowed = f"{part} in jax.numpy (see WeightRule)"
                raise InputError(f"{field}, {part}", type(error).__name__, allowed) from error
            if values.shape != (7,):
                raise InputError(f"{field}, {part}", f"shape {values.shape}", "(n,), here (7,)")
            if np.isnan(values).any() or np.isposinf(values).any():
                raise InputError(f"{field}, {part}", "NaN or infinity", "finite numbers")
