"""Heads that learn: frames by gradient descent on the leave-one-out error of a stream of tasks.

A stream deals one task after another, keys ``X ~ N(0, I)`` and labels of a new target each; what
its targets have in common is all that frames can learn. Frames stay orthonormal by a QR retraction.
The learned frames are a problem like any other, for either road: this module belongs to neither.
Deterministic in its key.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.checks import as_floats, check_count, check_non_negative, check_positive
from sims.problem import FRAMES, Heads, TrigonometricSeries

FEATURES = 8
"""Waves of a target."""


class Stream(eqx.Module):
    """A law of targets ``m(x) = a √(2/J) Σ_j sin((s_j ∘ g_j)ᵀRᵀx)``, g_j ~ N(0, I).

    Odd functions, so of mean 0 under the keys: a constant would be learned without any direction.

    Args:
        scales: s, (J, d): which coordinates, turned by the rotation R, wave j looks along.
        amplitude: a; the variance of a target, averaged over targets, is below a².
    """

    scales: Float[Array, "J d"]
    amplitude: Float[Array, ""]

    def __init__(self, scales: ArrayLike, amplitude: ArrayLike) -> None:
        self.scales = as_floats("stream.scales", scales)
        self.amplitude = as_floats("stream.amplitude", amplitude)

    def target(self, rotation: Float[Array, "d d"], key: Array) -> TrigonometricSeries:
        """One target of the stream, in coordinates turned by R."""
        count = len(self.scales)
        waves = self.scales * jax.random.normal(key, self.scales.shape, jnp.float64)
        size = self.amplitude * jnp.sqrt(2.0 / count)
        phase = jnp.full(count, -jnp.pi / 2)
        return TrigonometricSeries(jnp.full(count, size), waves @ rotation.T, phase)


def noise(dimension: int) -> Stream:
    """m = 0: the labels are noise, only variance can be learned."""
    return Stream(jnp.ones((FEATURES, dimension)), 0.0)


def single(dimension: int) -> Stream:
    """All targets live along one and the same direction."""
    return Stream(jnp.zeros((FEATURES, dimension)).at[:, 0].set(1.0), 1.0)


def additive(dimension: int) -> Stream:
    """Targets are sums of functions of one coordinate each, the same coordinates throughout."""
    return Stream(jnp.eye(dimension)[jnp.arange(FEATURES) % dimension], 1.0)


def isotropic(dimension: int) -> Stream:
    """No direction matters more than another: ``g_j/√d``."""
    return Stream(jnp.full((FEATURES, dimension), dimension**-0.5, jnp.float64), 1.0)


STREAMS: dict[str, Callable[[int], Stream]] = {
    "noise": noise,
    "single": single,
    "additive": additive,
    "isotropic": isotropic,
}
"""Every stream: name to ``d -> Stream``."""


class Learned(NamedTuple):
    """What learning came to.

    Attributes:
        frames: (H, d, d_k), orthonormal columns.
        weights: α, (H,); uniform unless learned, and then of any sum.
        overlap: :func:`overlap` before each step, (steps,).
    """

    frames: Float[Array, "H d d_k"]
    weights: Float[Array, " H"]
    overlap: Float[Array, " steps"]


def overlap(frames: Float[Array, "H d d_k"]) -> Float[Array, ""]:
    """Mean over pairs h ≠ g of ``‖U_hᵀU_g‖²_F/d_k``, in [0, 1] for orthonormal frames.

    1 less it is the geometric Head Diversity Index (mean definition, a reconstruction): 0 for
    aligned heads, 1 for orthogonal ones.
    """
    heads, _, width = frames.shape
    gram = jnp.sum(jnp.einsum("hdp,gdq->hgpq", frames, frames) ** 2, axis=(2, 3)) / width
    return (jnp.sum(gram) - jnp.trace(gram)) / (heads * (heads - 1))


def leave_one_out(heads: Heads, x: Float[Array, "n d"], y: Float[Array, " n"]) -> Array:
    """``f̂_h^{−i}(X_i) = Σ_{j≠i} K_h(X_i, X_j) Y_j / Σ_{j≠i} K_h(X_i, X_j)``, (H, n).

    In the precision of x.
    """
    q, k = (
        jnp.einsum("hdp,nd->phn", frames.astype(x.dtype), x)
        for frames in (heads.frames, heads.of_keys)
    )
    bandwidth = heads.bandwidth.astype(x.dtype)[:, None, None]
    log_k = heads.kernel.log_value(q[..., :, None], k[..., None, :], bandwidth)
    itself = jnp.eye(len(x), dtype=bool)
    return jax.nn.softmax(jnp.where(itself, -jnp.inf, log_k), axis=-1) @ y


def retract(frames: Float[Array, "H d d_k"]) -> Float[Array, "H d d_k"]:
    """The orthonormal frames near given ones: Q of the QR factorisation with positive diagonal."""
    q, r = jnp.linalg.qr(frames)
    return q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None, :]


def learn(
    stream: Stream,
    rotation: Float[Array, "d d"],
    start: Heads,
    key: Array,
    *,
    n: int,
    noise_sd: float | Array,
    steps: int,
    tasks: int = 1,
    rate: float = 0.05,
    penalty: float | Array = 0.0,
    learn_weights: bool | Array = False,
) -> Learned:
    """Adam on ``mean_i (Y_i − Σ_h α_h f̂_h^{−i}(X_i))² + penalty · overlap``.

    New tasks at every step.

    Args:
        stream: of targets.
        rotation: R, orthonormal, of the stream's coordinates.
        start: heads to begin with; bandwidth and kernel stay.
        key: of all draws.
        n: keys of a task.
        noise_sd: σ of the labels.
        steps: gradient steps; the learning rate falls to 0 along a cosine.
        tasks: tasks a step.
        rate: first learning rate.
        penalty: λ ≥ 0, of the overlap. Traced.
        learn_weights: whether α is learned too, freely; else 1/H. Traced.

    Returns:
        The learned frames and weights, and the overlap along the way.
    """
    for field, count in (("n", n), ("steps", steps), ("tasks", tasks)):
        check_count(f"learning.{field}", count)
    check_positive("learning.rate", rate)
    check_non_negative("learning.penalty", penalty)
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))
    even = jnp.full(start.count, 1.0 / start.count, jnp.float64)

    def loss(parameters: tuple[Array, Array], key: Array) -> Array:
        frames, weights = parameters
        heads = eqx.tree_at(lambda h: h.frames, start, frames)

        def one(key: Array) -> Array:
            for_target, for_keys, for_labels = jax.random.split(key, 3)
            x = jax.random.normal(for_keys, (n, start.dimension), jnp.float32)
            y = stream.target(rotation, for_target)(x)
            y = y + jnp.asarray(noise_sd, jnp.float32) * jax.random.normal(
                for_labels, (n,), jnp.float32
            )
            return jnp.mean((y - weights.astype(y.dtype) @ leave_one_out(heads, x, y)) ** 2)

        error = jnp.mean(jnp.stack([one(k) for k in jax.random.split(key, tasks)]))
        return error.astype(jnp.float64) + penalty * overlap(frames)

    def step(carry: Any, key: Array) -> tuple[Any, Array]:
        (frames, weights), state = carry
        slope, for_weights = jax.grad(loss)((frames, weights), key)
        # The part along the manifold of orthonormal frames.
        inner = jnp.einsum("hdp,hdq->hpq", frames, slope)
        slope = slope - jnp.einsum("hdp,hpq->hdq", frames, (inner + inner.mT) / 2)
        for_weights = jnp.where(learn_weights, for_weights, 0.0)
        change, state = optimiser.update((slope, for_weights), state)
        moved = retract(frames + change[0])
        return ((moved, weights + change[1]), state), overlap(frames)

    first = (start.frames, even)
    ((frames, weights), _), path = jax.lax.scan(
        step, (first, optimiser.init(first)), jax.random.split(key, steps)
    )
    return Learned(frames, weights, path)


def runs(settings: dict[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Every stream and variant of an experiment's settings, learned from every seed.

    Starts, rotations and tasks are those of the seed: variants are paired.

    Args:
        settings: ``streams``, ``variants`` (penalty, learn_weights), ``dimension``, ``heads``
            (count, width, angle of the start, bandwidth), ``n``, ``noise_sd``, ``learning`` (steps,
            tasks, rate), ``seeds`` (first, count).

    Yields:
        ``"stream, variant"``; heads and weights before; heads and :class:`Learned` (with a leading
        axis of seeds) after; rotations (seeds, d, d).
    """
    dimension, shape = settings["dimension"], settings["heads"]
    seed, seeds = settings["seeds"]["first"], settings["seeds"]["count"]
    root = jax.random.key(seed, impl="threefry2x32")
    keys = jax.vmap(lambda s: jax.random.split(jax.random.fold_in(root, s)))(jnp.arange(seeds))
    rotation = jax.vmap(lambda k: jax.random.orthogonal(k, dimension, dtype=jnp.float64))(
        keys[:, 0]
    )
    starts = [
        Heads(
            FRAMES["equiangular"](
                dimension, shape["count"], shape["width"], seed=seed + s, angle=shape["angle"]
            ),
            "gaussian",
            shape["bandwidth"],
        )
        for s in range(seeds)
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    options = {"n": settings["n"], "noise_sd": settings["noise_sd"]} | settings["learning"]

    @jax.jit
    def every(stream: Stream, penalty: Array, learn_weights: Array) -> Learned:
        def one(arguments: tuple[Array, Heads, Array]) -> Learned:
            turned, heads, key = arguments
            return learn(
                stream, turned, heads, key, penalty=penalty, learn_weights=learn_weights, **options
            )

        return jax.lax.map(one, (rotation, stacked, keys[:, 1]))

    even = jnp.full((seeds, shape["count"]), 1.0 / shape["count"], jnp.float64)
    for name in settings["streams"]:
        for variant, chosen in settings["variants"].items():
            learned = every(STREAMS[name](dimension), chosen["penalty"], chosen["learn_weights"])
            after = [
                eqx.tree_at(lambda h: h.frames, heads, frames)
                for heads, frames in zip(starts, learned.frames, strict=True)
            ]
            yield f"{name}, {variant}", (starts, even), (after, learned), rotation


def held_out_key(settings: dict[str, Any], index: int) -> Array:
    """Keys of held-out targets, queries and data of one seed, apart from those of learning."""
    root = jax.random.key(settings["seeds"]["first"], impl="threefry2x32")
    root = jax.random.fold_in(root, index)
    return jax.random.split(jax.random.fold_in(root, 2**31 - 1), 3)
