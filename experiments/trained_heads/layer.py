"""A layer of softmax heads as a Transformer has it, and its training by gradient descent.

Each head attends by ``w_hi(x) ∝ exp(⟨W_Qᵀx, W_KᵀX_i⟩/s_h)`` with free W_Q, W_K (d, d_k) and a
learned temperature s_h, and averages responses in R^p. The layer's estimate is ``Σ_h A_h g_h`` with
``g_h = Σ_i w_hi Y_i``: either ``A_h = W_O W_V``, learned with the rest, or the pool, ``A_h = I/H``.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from sims.learning import Stream
from sims.simulation import target_values


class Layer(NamedTuple):
    """What is trained.

    Attributes:
        query: W_Q, (H, d, d_k).
        key: W_K, (H, d, d_k).
        log_temperature: log s_h, (H,).
        value: W_V, (H, p, p).
        output: W_O, (H, p, p).
    """

    query: Float[Array, "H d d_k"]
    key: Float[Array, "H d d_k"]
    log_temperature: Float[Array, " H"]
    value: Float[Array, "H p p"]
    output: Float[Array, "H p p"]


def random_layer(key: Array, heads: int, width: int, dimension: int, outputs: int) -> Layer:
    """A random start: entries N(0, 1/d) and N(0, 1/p), temperature √d_k.

    Heads are drawn one by one: the first ones are the same whatever their number.
    """

    def head(index: Array) -> Layer:
        own = jax.random.split(jax.random.fold_in(key, index), 4)
        query, of_keys = (
            jax.random.normal(k, (dimension, width)) * dimension**-0.5 for k in own[:2]
        )
        value, output = (jax.random.normal(k, (outputs, outputs)) * outputs**-0.5 for k in own[2:])
        return Layer(query, of_keys, 0.5 * jnp.log(width), value, output)

    return jax.vmap(head)(jnp.arange(heads))


def attention(
    layer: Layer, queries: Float[Array, "q d"], keys: Float[Array, "n d"]
) -> Float[Array, "H q n"]:
    """Attention weights ``softmax_i(⟨W_Qᵀx, W_KᵀX_i⟩/s_h)`` of every head and query."""
    projected = jnp.einsum("qd,hdk->hqk", queries, layer.query)
    projected = projected / jnp.exp(layer.log_temperature)[:, None, None]
    return jax.nn.softmax(jnp.einsum("hqk,nd,hdk->hqn", projected, keys, layer.key), axis=-1)


def mixing(layer: Layer, free: Array | bool) -> Float[Array, "H p p"]:
    """``A_h``: ``W_O W_V`` if free, else ``I/H``. ``free`` is traced."""
    heads, outputs, _ = layer.value.shape
    pool = jnp.broadcast_to(jnp.eye(outputs) / heads, layer.value.shape)
    return jnp.where(free, layer.output @ layer.value, pool)


def responses(
    stream: Stream, rotation: Array, key: Array, outputs: int, at: Float[Array, "n d"]
) -> Float[Array, "n p"]:
    """One task of the stream, ``m: R^d → R^p`` of independent components, at some points."""
    components = jax.random.split(key, outputs)
    return jax.vmap(lambda one: target_values(stream.target(rotation, one), at), out_axes=1)(
        components
    )


def loss(
    layer: Layer,
    free: Array | bool,
    queries: Array,
    labels: Array,
    keys: Array,
    values: Array,
    *,
    objective: str = "joint",
) -> Float[Array, ""]:
    """Mean over queries and outputs of ``(label − Σ_h A_h Σ_i w_hi Y_i)²``.

    That is the ``joint`` objective. Under the ``separate`` one it is the mean over heads, too, of
    ``(label − H A_h Σ_i w_hi Y_i)²``, the errors of the rescaled heads one by one; the layer is
    their average, but no product of two heads' errors is in it.
    """
    averages = attention(layer, queries, keys) @ values
    if objective == "separate":
        parts = jnp.einsum("hop,hqp->hqo", mixing(layer, free), averages)
        return jnp.mean((len(parts) * parts - labels) ** 2)
    return jnp.mean((jnp.einsum("hop,hqp->qo", mixing(layer, free), averages) - labels) ** 2)


def train(
    stream: Stream,
    rotation: Array,
    free: Array | bool,
    start: Layer,
    key: Array,
    *,
    n: int,
    queries: int,
    tasks: int,
    steps: int,
    rate: float,
    noise_sd: Array | float,
    objective: str = "joint",
) -> Layer:
    """Adam with a cosine decay on the :func:`loss` of fresh tasks at every step.

    Args:
        stream: of targets.
        rotation: R, orthonormal, of the stream's coordinates.
        free: whether W_V and W_O are trained, or heads are pooled.
        start: where to begin; single precision.
        key: of all draws.
        n: keys of a task.
        queries: of a task, with noisy labels too.
        tasks: a step.
        steps: gradient steps.
        rate: first learning rate.
        noise_sd: σ of the labels.
        objective: ``joint`` or ``separate``, of the :func:`loss`.

    Returns:
        The layer before each step and after the last: leaves (steps + 1, …).
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))
    outputs, dimension = start.value.shape[-1], start.query.shape[1]

    def task(key: Array) -> tuple[Array, Array]:
        for_target, for_points, for_noise = jax.random.split(key, 3)
        x = jax.random.normal(for_points, (n + queries, dimension), jnp.float32)
        y = responses(stream, rotation, for_target, outputs, x).astype(jnp.float32)
        noise = jax.random.normal(for_noise, y.shape, jnp.float32)
        return x, y + jnp.asarray(noise_sd, jnp.float32) * noise

    def batch_loss(layer: Layer, x: Array, y: Array) -> Array:
        def one(x: Array, y: Array) -> Array:
            return loss(layer, free, x[n:], y[n:], x[:n], y[:n], objective=objective)

        return jnp.mean(jax.vmap(one)(x, y))

    def step(carry: tuple[Layer, optax.OptState], key: Array) -> tuple[tuple, Layer]:
        layer, state = carry
        # Drawn in a loop of their own: else XLA draws a label anew wherever the gradient uses it.
        x, y = jax.lax.map(task, jax.random.split(key, tasks))
        change, state = optimiser.update(jax.grad(batch_loss)(layer, x, y), state)
        moved = Layer(*optax.apply_updates(layer, change))
        return (moved, state), layer

    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), start)
    (end, _), path = jax.lax.scan(
        step, (single, optimiser.init(single)), jax.random.split(key, steps)
    )
    return Layer(*jax.tree.map(lambda p, e: jnp.concatenate([p, e[None]]), path, end))
