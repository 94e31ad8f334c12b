"""Weight rules: from the scores of all keys to the weights of a head's estimate ``Σ_i w_i Y_i``.

A kernel, ``w = K/ΣK``, is the rule whose weights can be summed key by key: it is a
:class:`~sims.problem.Kernel`, and its sums stream. A :class:`WeightRule` is any other rule: it
sees all keys at once.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from sims.base.checks import evaluate_calls
from sims.base.errors import InputError, one_of
from sims.weights.entmax import Entmax

Scores = Callable[[Array, Array, ArrayLike], Array]
"""``(query (p, …), keys (p, …), bandwidth) -> (…)``: coordinates first, like a log-kernel."""
Weights = Callable[[Float[Array, " n"]], Float[Array, " n"]]
"""Function from the scores of all n keys to their weights."""


@dataclass(frozen=True)
class WeightRule:
    """Weights ``w(x) = weights(scores of all keys)`` of one head at one query.

    Attributes:
        name: name in results and errors.
        scores: ``(query (p, …), keys (p, …), bandwidth) -> (…)`` of projected points; such
            as a kernel's ``log_value``. Finite, or −inf for a key that is out of reach.
        weights: ``(n,) -> (n,)``, traced by JAX. They need be neither positive nor of sum 1; a
            query whose weights are all 0 has an empty neighbourhood: its estimate counts as 0. A
            function, or a frozen dataclass of this package, which theory recognises.
        least: smallest number of keys that the rule can weigh.
    """

    name: str
    scores: Scores
    weights: Weights
    least: int = 1

    def __call__(
        self, query: Float[Array, " p"], keys: Float[Array, "p n"], bandwidth: ArrayLike
    ) -> Float[Array, " n"]:
        """The weights of n keys at one query, in the keys' precision; NaN if a score is NaN."""
        scores = self.scores(query[:, None], keys, bandwidth)
        weights = jnp.where(jnp.isnan(scores).any(), jnp.nan, self.weights(scores))
        return weights.astype(keys.dtype)


def dot_product(query: Array, keys: Array, bandwidth: ArrayLike) -> Array:
    """``⟨q, k⟩/s`` with temperature s = b², the scores of scaled dot-product attention."""
    return jnp.sum((query / bandwidth) * (keys / bandwidth), axis=0)


def distance(query: Array, keys: Array, bandwidth: ArrayLike) -> Array:
    """``−‖q − k‖²/2s`` with temperature s = b², from differences: thresholds subtract scores."""
    return -0.5 * jnp.sum(((query - keys) / bandwidth) ** 2, axis=0)


SCORES: dict[str, Scores] = {"dot": dot_product, "distance": distance}
"""Every score by its name."""
RULES: dict[str, WeightRule] = {
    "sparsemax": WeightRule("sparsemax", dot_product, Entmax(1.0)),
}
"""Weight rules without options that are not kernels, by name. With options: :mod:`.sparse`."""


def scores_of(name: str) -> Scores:
    """Scores with the given name."""
    if name not in SCORES:
        raise InputError("heads.kernel.scores", name, one_of(SCORES, name))
    return SCORES[name]


@functools.lru_cache(maxsize=256)
def check_rule(rule: WeightRule, width: int) -> None:
    """Check a weight rule at a few points, compiled as in the engine.

    Args:
        rule: the user's rule.
        width: p, the number of coordinates of a projected point.

    Raises:
        InputError: a function fails, has another shape, or gives no finite numbers.
    """
    rng = np.random.default_rng(0)
    n = max(7, rule.least)
    query = rng.normal(size=(width, 1))
    keys = rng.normal(size=(width, n))
    keys[:, :1] = query  # scores are finite at distance 0, too
    for part, function, *points in (
        ("scores", rule.scores, query, keys, 0.8),
        ("weights", rule.weights, np.linspace(-1.5, 2.0, n)),
    ):
        field = f"heads.kernel {rule.name!r}, {part}"
        form = f"{part} in jax.numpy (see WeightRule)"
        (values,) = evaluate_calls(field, function, form, ((n,), *points))
        if not (values < np.inf).all():
            raise InputError(field, "NaN or infinity", "finite numbers")
