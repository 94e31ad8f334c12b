"""One replicate under a weight rule that sees all keys at once, in C++ or in plain JAX.

Nothing streams: the n keys of a replicate are in memory together, and queries are weighed a few at
a time.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.simulation.draws import draw_all, target_values
from sims.simulation.heads import scaled_projection
from sims.simulation.native import native_rule_sums, with_native_bits
from sims.simulation.replicate import Replicate, Settings, Shared
from sims.weights import WeightRule


def weighed(settings: Settings, key: Array, shared: Shared, batch: None = None) -> Replicate:
    """Draw one design and return the conditional moments of every head at every query.

    With weights w_hi(x) given the design, the deviation is ``Σ_i w_hi m(X_i) − m(x)`` and the noise
    covariance ``σ² Σ_i w_hi w_gi``, as for kernels; a query whose weights are all 0 counts as
    empty, and its estimate as 0. Arguments as in :func:`~.replicate.replicate`.
    """
    task, heads, queries, _, constant = shared
    assert isinstance(heads.rule, WeightRule)  # for the type checker
    dtype = jnp.dtype(settings.dtype)
    native = settings.kernel_sums is native_rule_sums
    x, unit = draw_all(task, with_native_bits(key) if native else key, settings.n, dtype)
    keys = scaled_projection(heads, heads.of_keys, x, dtype)
    at = scaled_projection(heads, heads.frames, queries, jnp.float64).astype(dtype)
    at = at.transpose(2, 0, 1)
    columns = jnp.stack([target_values(task.target, x), *([unit] if settings.raw_labels else [])])
    arrays = (at, keys, columns, heads.bandwidth.astype(dtype))
    if native:
        linear, gram = native_rule_sums(heads.rule, *arrays)
    else:
        linear, gram = rule_sums(heads.rule, *arrays, query_block=settings.blocks.queries)
    mass = linear[..., -1]
    deviation = linear[..., 0] - task.target(queries)[:, None]
    if constant is not None:  # a rule's weights may have any sum
        deviation = deviation + constant * (mass - 1)
    raw = deviation + task.noise_sd * linear[..., 1] if settings.raw_labels else None
    empty = jnp.diagonal(gram, axis1=-2, axis2=-1) == 0
    return Replicate(deviation, task.noise_sd**2 * gram, raw, empty.astype(jnp.float64))


def rule_sums(
    rule: WeightRule,
    queries: Float[Array, "Q p H"],
    keys: Float[Array, "p H n"],
    columns: Float[Array, "c n"],
    bandwidth: Float[Array, " H"],
    query_block: int = 1,
) -> tuple[Float[Array, "Q H C"], Float[Array, "Q H H"]]:
    """:func:`~.native.native_rule_sums` of any rule, in plain JAX, for so many queries at once."""
    by_head = jax.vmap(rule, in_axes=(1, 1, 0))
    labels = [*columns.astype(jnp.float64), jnp.ones(columns.shape[1])]

    def sums(part: Float[Array, "q p H"]) -> tuple[Array, Array]:
        w = jax.vmap(lambda query: by_head(query, keys, bandwidth))(part).astype(jnp.float64)
        linear = jnp.stack([w @ column for column in labels], axis=-1)
        return linear, jnp.einsum("qhn,qgn->qhg", w, w)

    parts = lax.map(sums, queries.reshape(-1, query_block, *queries.shape[1:]))
    linear, gram = (x.reshape(-1, *x.shape[2:]) for x in parts)
    return linear, gram
