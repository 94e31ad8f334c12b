"""A layer of softmax heads as a Transformer has it, its training, and its errors on new tasks.

Each head attends by ``w_hi(x) ∝ exp(⟨W_Qᵀx, W_KᵀX_i⟩/s_h)`` with free W_Q, W_K (d, d_k) and a
learned temperature s_h, and averages responses in R^p. The layer is the mean of the rescaled heads
``f̂_h = H A_h Σ_i w_hi Y_i``: either ``A_h = W_O W_V``, learned with the rest, or the paper's
average, ``A_h = I/H``.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from sims.problem import TrigonometricSeries
from sims.simulation import target_values

WAVES = 8
"""Waves of either part of a target: along single coordinates, and along no preferred direction."""


class Task(NamedTuple):
    """What heads learn from, and how fast; scalars that are traced.

    Attributes:
        additive: share of the target that is a sum of functions of one coordinate each.
        noise_sd: σ of the labels.
        drawn: whether labels are drawn in training, or its loss is expected over their noise.
        rate: first learning rate; it falls to 0 along a cosine.
        private_share: of a head's maps at the start; the rest all heads have in common.
        free: whether W_V and W_O are trained, or heads are averaged.
    """

    additive: Array
    noise_sd: Array
    drawn: Array
    rate: Array
    private_share: Array
    free: Array


class Layer(NamedTuple):
    """What is trained.

    Attributes:
        query: W_Q, (H, d, d_k).
        key: W_K, (H, d, d_k).
        value: W_V, (H, p, p).
        output: W_O, (H, p, p).
        log_temperature: log s_h, (H,).
    """

    query: Array
    key: Array
    value: Array
    output: Array
    log_temperature: Array


def start(
    key: Array,
    private_share: Array,
    heads: int,
    width: int,
    dimension: int,
    outputs: int,
) -> Layer:
    """Random heads: entries N(0, 1/d) and N(0, 1/p), temperature √d_k.

    With a private share a every matrix is ``√(1 − a)`` times one that all heads share and ``√a``
    times one of the head's.
    """
    shapes = 2 * [(dimension, width)] + 2 * [(outputs, outputs)]
    maps = []
    for shape, subkey in zip(shapes, jax.random.split(key, 4), strict=True):
        drawn = jax.random.normal(subkey, (heads + 1, *shape), jnp.float32) * shape[0] ** -0.5
        maps.append(jnp.sqrt(1 - private_share) * drawn[:1] + jnp.sqrt(private_share) * drawn[1:])
    return Layer._make([*maps, jnp.full(heads, 0.5 * jnp.log(width), jnp.float32)])


def heads_at(
    layer: Layer,
    free: Array | bool,
    queries: Float[Array, "q d"],
    keys: Float[Array, "n d"],
    values: Float[Array, "n p"],
) -> tuple[Float[Array, "H q p"], Float[Array, "H H"], Float[Array, "H q n"]]:
    """The rescaled heads f̂_h of some values, and what label noise does to them.

    That is the mean over queries and outputs of products of two heads' responses to label noise of
    variance 1. Also the weights ``softmax_i(⟨W_Qᵀx, W_KᵀX_i⟩/s_h)``.

    Args:
        layer: the heads.
        free: whether ``H A_h`` is ``H W_O W_V``, else I.
        queries: x.
        keys: X.
        values: what is averaged.
    """
    projected = jnp.einsum("qd,hdk->hqk", queries, layer.query)
    projected = projected / jnp.exp(layer.log_temperature)[:, None, None]
    scores = jnp.einsum("hqk,nd,hdk->hqn", projected, keys, layer.key)
    weights = jax.nn.softmax(scores, axis=-1)
    heads, outputs, _ = layer.value.shape
    identity = jnp.eye(outputs, dtype=layer.value.dtype)
    scaled = jnp.where(free, heads * layer.output @ layer.value, identity)
    parts = jnp.einsum("hop,hqp->hqo", scaled, weights @ values)
    shared = jnp.einsum("hqn,gqn->hg", weights, weights) / parts[0].size
    return parts, jnp.einsum("hop,gop->hg", scaled, scaled) * shared, weights


def responses(
    additive: Array | float, key: Array, outputs: int, points: Float[Array, "n d"]
) -> Float[Array, "n p"]:
    """A target ``m: R^d → R^p`` of independent odd components, at some points.

    A component is ``√(2a/J) Σ_j sin(g_j x_j) + √(2(1 − a)/J) Σ_j sin(⟨g_j, x⟩/√d)`` with a the
    additive share and normal g: functions of J coordinates, and of no preferred direction.
    """
    dimension = points.shape[1]
    scales = jnp.concatenate(
        [jnp.eye(WAVES, dimension), jnp.full((WAVES, dimension), dimension**-0.5)]
    )
    size = jnp.repeat(jnp.sqrt(jnp.stack([additive, 1 - additive]) * 2 / WAVES), WAVES)
    phase = jnp.full(2 * WAVES, -jnp.pi / 2)

    def component(key: Array) -> Array:
        waves = scales * jax.random.normal(key, scales.shape, points.dtype)
        return target_values(TrigonometricSeries(size, waves, phase), points)

    return jax.vmap(component, out_axes=1)(jax.random.split(key, outputs))


def train(
    layer: Layer,
    task: Task,
    apart: Array | float,
    key: Array,
    *,
    n: int,
    queries: int,
    tasks: int,
    steps: int,
) -> Layer:
    """The layer after Adam with a cosine decay on the loss of fresh tasks at every step.

    That is the mean over queries and outputs of ``(label − f̂)² + apart · mean_h (f̂_h − f̂)²``: the
    error of the layer (0), or the mean of the heads' own errors (1), which has no product of two
    heads' errors. The two differ by the ambiguity (Krogh & Vedelsby 1995, NeurIPS 7). If labels are
    not drawn they are m, and what noise adds is there in expectation.

    Args:
        layer: where to begin; single precision.
        task: what to learn.
        apart: of the loss.
        key: of all draws.
        n: keys of a task.
        queries: of a task.
        tasks: a step.
        steps: gradient steps.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(task.rate, steps))
    outputs, dimension = layer.value.shape[-1], layer.query.shape[1]

    def draw_task(key: Array) -> tuple[Array, Array]:
        for_target, for_points, for_noise = jax.random.split(key, 3)
        x = jax.random.normal(for_points, (n + queries, dimension), jnp.float32)
        y = responses(task.additive, for_target, outputs, x)
        noise = jax.random.normal(for_noise, y.shape, jnp.float32)
        return x, y + jnp.where(task.drawn, task.noise_sd, 0.0) * noise

    def loss(layer: Layer, x: Array, y: Array) -> Array:
        parts, noise, _ = heads_at(layer, task.free, x[n:], x[:n], y[:n])
        average = parts.mean(0)
        error = jnp.mean((average - y[n:]) ** 2) + apart * jnp.mean((parts - average) ** 2)
        variance = (1 - apart) * noise.mean() + apart * jnp.trace(noise) / len(noise)
        return error + jnp.where(task.drawn, 0.0, task.noise_sd**2) * variance

    def batch_loss(layer: Layer, x: Array, y: Array) -> Array:
        return jnp.mean(jax.vmap(partial(loss, layer))(x, y))

    def step(
        carry: tuple[Layer, optax.OptState], key: Array
    ) -> tuple[tuple[Layer, optax.OptState], None]:
        layer, state = carry
        # Drawn in a loop of their own: else XLA draws a target anew wherever the gradient uses it.
        x, y = jax.lax.map(draw_task, jax.random.split(key, tasks))
        change, state = optimiser.update(jax.grad(batch_loss)(layer, x, y), state)
        return (Layer(*optax.apply_updates(layer, change)), state), None

    first = layer, optimiser.init(layer)
    return jax.lax.scan(step, first, jax.random.split(key, steps))[0][0]


def at_shares(
    layer: Layer, shares: Float[Array, "H"], shares_of: Callable[[Layer], Float[Array, "H"]]
) -> Layer:
    """The layer at the temperatures at which its heads attend to given shares n_eff/n of the keys.

    That is a bisection on log s_h, up to a factor of 150 from the layer's. n_eff rises with the
    temperature: with ``β = 1/s`` and E_β the mean of scores under the weights,
    ``d log Σ w²/dβ = 2 (E_{2β} − E_β) ≥ 0``.

    Args:
        layer: the heads.
        shares: n_eff/n that each head is to have, (H,).
        shares_of: a layer's n_eff/n, (H,), on draws that do not change.
    """

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        soft = shares_of(layer._replace(log_temperature=middle)) > shares
        return jnp.where(soft, ends[0], middle), jnp.where(soft, middle, ends[1])

    ends = layer.log_temperature - 5, layer.log_temperature + 5
    return layer._replace(log_temperature=jax.lax.fori_loop(0, 14, halve, ends)[0])


class Moments(NamedTuple):
    """Moments of the heads' estimates f̂_h on new tasks; with the errors ``ê_h = f̂_h − m``.

    Attributes:
        errors: ``M_hg = E⟨ê_h, ê_g⟩/p``, (H, H), whose mean is the layer's error.
        covariance: ``S_hg = E⟨f̂_h − E f̂_h, f̂_g − E f̂_g⟩/p``, (H, H), whose mean is its variance.
        selectivity: ``E 1/(n Σ_i w_hi²)``, the effective share n_eff/n of the keys, (H,).
        zero: ``E‖m‖²/p``, the error of 0, the best constant since targets are odd.
    """

    errors: Array
    covariance: Array
    selectivity: Array
    zero: Array


def moments(
    layer: Layer, task: Task, key: Array, *, n: int, tasks: int, queries: int, designs: int
) -> Moments:
    """Unbiased estimates of the :class:`Moments` of a layer, in double precision.

    Expectations are over new tasks and queries, for S given them, and over keys and labels; the
    labels' noise is integrated out.
    """
    layer = Layer(*(leaf.astype(jnp.float64) for leaf in layer))
    dimension, outputs = layer.query.shape[1], layer.value.shape[-1]

    def one_task(index: Array) -> Moments:
        for_target, for_queries, for_keys = jax.random.split(jax.random.fold_in(key, index), 3)
        points = jax.random.normal(for_queries, (queries, dimension), jnp.float64)
        truth = responses(task.additive, for_target, outputs, points)

        def one_design(number: Array) -> tuple[Array, Array, Array]:
            x = jax.random.normal(jax.random.fold_in(for_keys, number), (n, dimension), jnp.float64)
            y = responses(task.additive, for_target, outputs, x)
            signal, noise, weights = heads_at(layer, task.free, points, x, y)
            effective = 1 / (weights**2).sum(-1)
            return signal, noise, effective.mean(-1) / n

        signal, noise, selectivity = jax.lax.map(one_design, jnp.arange(designs))
        noise = task.noise_sd**2 * noise.mean(0)
        gaps = signal - truth
        centred = signal - signal.mean(0)
        size = queries * outputs
        errors = jnp.einsum("rhqo,rgqo->hg", gaps, gaps) / (designs * size)
        covariance = jnp.einsum("rhqo,rgqo->hg", centred, centred) / ((designs - 1) * size)
        zero = jnp.mean(truth**2)
        return Moments(errors + noise, covariance + noise, selectivity.mean(0), zero)

    found = jax.lax.map(one_task, jnp.arange(tasks))
    return Moments(*(values.mean(0) for values in found))
