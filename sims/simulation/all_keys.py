"""One replicate under a weight rule, whose n keys are in memory together.

A rule sees all keys at once. Softmax over merged keys is a kernel over slots, of which there are s
times fewer.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sims.problem import Heads, Kernel
from sims.problem.kernels import kernel_of
from sims.simulation.draws import draw, target_values
from sims.simulation.heads import (
    Columns,
    ProjectedKeys,
    ProjectedQueries,
    left_bandwidth,
    projected_queries,
    scaled_projection,
)
from sims.simulation.native import native_rule_sums, with_native_bits
from sims.simulation.replicate import KERNEL_SUMS, Replicate, Settings, Shared, weighted
from sims.weights import WeightRule
from sims.weights.merged import SlotScores, SlotWeights

Gates = tuple[float, ...]
RuleSums = tuple[Float[Array, "Q H C"], Float[Array, "Q H H"]]


def over_slots(heads: Heads, n: int) -> tuple[Heads, Gates] | None:
    """Heads by a kernel over the slots of merged keys, and the gates that make slots.

    None for another rule, and where the last chunk of the n keys is a part of one: its gates' sum
    is not that of the others.
    """
    rule = heads.rule
    if isinstance(rule, Kernel) or not isinstance(rule.scores, SlotScores):
        return None
    gates = rule.scores.gates
    kernel = kernel_of(rule.scores.score)
    if kernel is None or rule.weights != SlotWeights(gates) or n % len(gates):
        return None
    return Heads(heads.frames, kernel, heads.bandwidth, heads.key_frames), gates


def weigh_all_keys(
    settings: Settings, key: Array, shared: Shared, batch: None = None, *, gates: Gates = ()
) -> Replicate:
    """Draw one design and return the conditional moments of every head at every query.

    Arguments as in :func:`~.replicate.replicate`; with ``gates``, heads are those of
    :func:`over_slots`.
    """
    key = with_native_bits(key) if settings.sums == "C++" else key
    x, _ = draw(shared.task, key, settings.n, settings.dtype)
    return over_keys(settings, shared, x, gates)


def over_keys(
    settings: Settings,
    shared: Shared,
    x: Float[Array, "n d"],
    gates: Gates = (),
) -> Replicate:
    """The moments given keys x.

    With weights w_hi(x) given the design, the deviation is ``Σ_i w_hi m(X_i) − m(x)`` and the noise
    covariance ``σ² Σ_i w_hi w_gi``, as for kernels; a query whose weights are all 0 counts as
    empty, and its estimate as 0.
    """
    heads = shared.heads
    keys = scaled_projection(heads, heads.of_keys, x, x.dtype)
    projected = projected_queries(heads, shared.queries, x.dtype)
    columns = target_values(shared.task.target, x)[None]
    if gates:
        linear, gram = slot_sums(settings, heads, projected, keys, columns, jnp.asarray(gates))
    else:
        assert isinstance(heads.rule, WeightRule)  # for the type checker
        bandwidth = heads.bandwidth.astype(x.dtype)
        block = settings.query_block
        if settings.sums == "C++":
            linear, gram = native_rule_sums(heads.rule, projected, keys, columns, bandwidth)
        else:
            linear, gram = rule_sums(heads.rule, projected, keys, columns, bandwidth, block)
    empty = jnp.diagonal(gram, axis1=-2, axis2=-1) == 0
    return weighted(shared, linear[..., 0], linear[..., -1], gram, empty)


def slot_sums(
    settings: Settings,
    heads: Heads,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    gates: Float[Array, " s"],
) -> RuleSums:
    """:func:`rule_sums` of merged keys.

    With p_hj the kernel's weight of slot j, token i of it has ``w_hi = g_i p_hj``: the estimate is
    the kernel's of slots with the values ``Σ_i g_i m(X_i)``, and ``Σ_i w_hi w_gi`` is Σg² times the
    slots' sum.
    """

    def merge(tokens: Float[Array, "*lead n"]) -> Float[Array, "*lead m"]:
        chunks = tokens.reshape(*tokens.shape[:-1], -1, len(gates))
        return chunks @ gates.astype(keys.dtype)

    slots = merge(keys)
    values = merge(columns)
    sums = KERNEL_SUMS[settings.sums](
        heads.kernel,
        queries,
        slots,
        jnp.concatenate([values, jnp.ones_like(values[:1])]),
        left_bandwidth(heads, keys.dtype),
        settings.query_block,
    )
    inverse = 1 / sums.linear[..., -1]
    mass = jnp.broadcast_to(gates.sum(), inverse.shape)[..., None]
    linear = jnp.concatenate([sums.linear[..., :-1] * inverse[..., None], mass], axis=-1)
    return linear, sums.gram * (gates @ gates) * inverse[..., None] * inverse[..., None, :]


def rule_sums(
    rule: WeightRule,
    queries: ProjectedQueries,
    keys: ProjectedKeys,
    columns: Columns,
    bandwidth: Float[Array, " H"],
    query_block: int = 1,
) -> RuleSums:
    """:func:`~.native.native_rule_sums` of any rule, in plain JAX, for so many queries at once."""
    by_head = jax.vmap(rule, in_axes=(1, 1, 0))
    labels = [*columns.astype(jnp.float64), jnp.ones(columns.shape[1])]

    def sums(part: Float[Array, "q p H"]) -> tuple[Array, Array]:
        w = jax.vmap(lambda query: by_head(query, keys, bandwidth))(part).astype(jnp.float64)
        linear = jnp.stack([w @ column for column in labels], axis=-1)
        return linear, jnp.einsum("qhn,qgn->qhg", w, w)

    linear, gram = lax.map(sums, queries.reshape(-1, query_block, *queries.shape[1:]))
    return linear.reshape(-1, *linear.shape[2:]), gram.reshape(-1, *gram.shape[2:])
