"""One replicate under merged keys: a kernel over slots, of which there are s times fewer."""

import jax.numpy as jnp
from jaxtyping import Array

from sims.problem import Heads, Kernel
from sims.problem.kernels import GAUSSIAN, SOFTMAX
from sims.simulation.draws import draw_all, target_values
from sims.simulation.heads import left_bandwidth, scaled_projection
from sims.simulation.native import native_sums, with_native_bits
from sims.simulation.replicate import Replicate, Settings, Shared
from sims.weights import SCORES
from sims.weights.merged import SlotScores, SlotWeights

KERNEL_OF = {SCORES["dot"]: SOFTMAX, SCORES["distance"]: GAUSSIAN}
"""The kernel that softmax of a score is."""


def over_slots(heads: Heads, n: int) -> tuple[Heads, tuple[float, ...]] | None:
    """Heads by a kernel over the slots of merged keys, and the gates that make slots.

    None for another rule, and where the last chunk of the n keys is a part of one: its gates' sum
    is not that of the others.
    """
    rule = heads.rule
    if isinstance(rule, Kernel) or not isinstance(rule.scores, SlotScores):
        return None
    gates = rule.scores.gates
    kernel = KERNEL_OF.get(rule.scores.score)
    if kernel is None or rule.weights != SlotWeights(gates) or n % len(gates):
        return None
    return Heads(heads.frames, kernel, heads.bandwidth, heads.key_frames), gates


def slotted(
    gates: tuple[float, ...], settings: Settings, key: Array, shared: Shared, batch: None = None
) -> Replicate:
    """Draw one design, merge its keys and labels, and return the moments of every head.

    With p_hj the kernel's weight of slot j, token i of it has ``w_hi = g_i p_hj``: the estimate is
    the kernel's of slots with the values ``Σ_i g_i m(X_i)``, and ``Σ_i w_hi w_gi`` is Σg² times the
    slots' sum. ``shared`` has the heads of :func:`over_slots`; other arguments as in
    :func:`~.replicate.replicate`.
    """
    task, heads, queries, _, constant = shared
    dtype, own = jnp.dtype(settings.dtype), jnp.asarray(gates)
    native = settings.kernel_sums is native_sums
    x, unit = draw_all(task, with_native_bits(key) if native else key, settings.n, dtype)
    keys = scaled_projection(heads, heads.of_keys, x, dtype)
    labels = jnp.stack([target_values(task.target, x), *([unit] if settings.raw_labels else [])])
    slots, values = (
        array.reshape(*array.shape[:-1], -1, len(gates)) @ own.astype(dtype)
        for array in (keys, labels)
    )
    columns = jnp.concatenate([values, jnp.ones_like(values[:1])])
    at = scaled_projection(heads, heads.frames, queries, jnp.float64).astype(dtype)
    sums = settings.kernel_sums(
        heads.kernel, at.transpose(2, 0, 1), slots, columns, left_bandwidth(heads, dtype),
        settings.blocks.queries,
    )  # fmt: skip
    inverse = 1 / sums.linear[..., -1]
    linear = sums.linear * inverse[..., None]
    gram = sums.gram * (own @ own) * inverse[..., None] * inverse[..., None, :]
    deviation = linear[..., 0] - task.target(queries)[:, None]
    if constant is not None:  # gates may have any sum
        deviation = deviation + constant * (own.sum() - 1)
    raw = deviation + task.noise_sd * linear[..., 1] if settings.raw_labels else None
    return Replicate(deviation, task.noise_sd**2 * gram, raw, jnp.zeros_like(deviation))
