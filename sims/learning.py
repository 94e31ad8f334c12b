"""Heads that learn: frames by gradient descent on the leave-one-out error of a stream of tasks.

A stream deals one task after another, keys ``X ~ N(0, I)`` and labels of a new target each; what
its targets have in common is all that frames can learn. Frames stay orthonormal by a QR retraction.
The learned frames are a problem like any other, for either road: this module belongs to neither.
Deterministic in its key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from sims.problem import FRAMES, Heads, TrigonometricSeries

Objective = Literal["joint", "separate"]
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
    amplitude: float | Float[Array, ""]

    def target(self, rotation: Float[Array, "d d"], key: Array) -> TrigonometricSeries:
        """One target of the stream, in coordinates turned by R."""
        count = len(self.scales)
        waves = self.scales * jax.random.normal(key, self.scales.shape, jnp.float64)
        size = self.amplitude * jnp.sqrt(2.0 / count)
        phase = jnp.full(count, -jnp.pi / 2)
        return TrigonometricSeries(jnp.full(count, size), waves @ rotation.T, phase)


STREAMS: dict[str, Callable[[int], Stream]] = {
    # m = 0: the labels are noise, only variance can be learned.
    "noise": lambda d: Stream(jnp.ones((FEATURES, d)), 0.0),
    # All targets live along one and the same direction.
    "single": lambda d: Stream(jnp.zeros((FEATURES, d)).at[:, 0].set(1.0), 1.0),
    # Sums of functions of one coordinate each, the same coordinates throughout.
    "additive": lambda d: Stream(jnp.eye(d)[jnp.arange(FEATURES) % d], 1.0),
    # No direction matters more than another: g_j/√d.
    "isotropic": lambda d: Stream(jnp.full((FEATURES, d), d**-0.5, jnp.float64), 1.0),
}
"""Every stream: name to ``d -> Stream``."""


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

    In the precision of x, of heads without key frames of their own.
    """
    points = jnp.einsum("hdp,nd->phn", heads.frames.astype(x.dtype), x)
    bandwidth = heads.bandwidth.astype(x.dtype)[:, None, None]
    log_k = heads.kernel.log_value(points[..., :, None], points[..., None, :], bandwidth)
    itself = jnp.eye(len(x), dtype=bool)
    return jax.nn.softmax(jnp.where(itself, -jnp.inf, log_k), axis=-1) @ y


def squared_error(
    objective: Objective,
    weights: Float[Array, " H"],
    estimates: Float[Array, "H n"],
    y: Float[Array, " n"],
) -> Float[Array, ""]:
    """The error that heads descend, of their leave-one-out estimates.

    ``joint``, the weighted heads together, ``mean_i (Y_i − Σ_h α_h f̂_h(X_i))²``: its gradient with
    respect to one head has the residual of all, so heads are rewarded for errors that cancel.
    ``separate``, the heads one by one, ``mean_h mean_i (Y_i − f̂_h(X_i))²``: its gradient with
    respect to one head knows no other head, and the weights stay as they are. At α_h = 1/H joint is
    separate less ``mean_h mean_i (f̂_h − f̄)²``, the ambiguity (Krogh & Vedelsby 1995, NeurIPS 7).
    """
    return jnp.mean((y - (weights @ estimates if objective == "joint" else estimates)) ** 2)


def retract(frames: Float[Array, "H d d_k"]) -> Float[Array, "H d d_k"]:
    """The orthonormal frames near given ones: Q of the QR factorisation with positive diagonal."""
    q, r = jnp.linalg.qr(frames)
    return q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None, :]


@dataclass(frozen=True)
class Course:
    """What heads learn from, where they start and how they learn; known by its values.

    Attributes:
        stream: a key of :data:`STREAMS`.
        dimension: d.
        count: H.
        width: d_k.
        angle: degrees between heads at the start; None starts them at random, each by itself.
        bandwidth: b of the Gaussian kernel.
        n: keys of a task.
        noise_sd: σ of the labels.
        steps: gradient steps; the learning rate falls to 0 along a cosine.
        tasks: tasks a step.
        rate: first learning rate.
        penalty: λ ≥ 0, of the overlap.
        learn_weights: whether output weights α are learned too, freely; else they are 1/H.
        objective: of :func:`squared_error`.
    """

    stream: str
    dimension: int
    count: int
    width: int
    angle: float | None
    bandwidth: float
    n: int
    noise_sd: float
    steps: int
    tasks: int
    rate: float
    penalty: float
    learn_weights: bool
    objective: Objective = "joint"

    @classmethod
    def of(cls, settings: Mapping[str, Any], stream: str, variant: str) -> "Course":
        """One stream and variant of an experiment's settings.

        Args:
            settings: ``variants`` (penalty, learn_weights and, where they are others, objective
                and what ``heads`` has), ``dimension``, ``heads`` (count, width, angle, bandwidth),
                ``n``, ``noise_sd``, ``learning`` (steps, tasks, rate).
            stream: a key of :data:`STREAMS`.
            variant: a key of ``variants``.
        """
        common = {key: settings[key] for key in ("dimension", "n", "noise_sd")}
        own = {**settings["heads"], **settings["variants"][variant]}
        return cls(stream=stream, **common, **settings["learning"], **own)


def even(heads: Heads) -> Float[Array, " H"]:
    """Output weights 1/H."""
    return jnp.full(heads.count, 1.0 / heads.count, jnp.float64)


class Run(NamedTuple):
    """Heads before and after learning from one seed.

    Attributes:
        stream: of targets.
        rotation: of its coordinates, (d, d).
        before: heads at the start, of uniform output weights.
        after: heads after learning.
        weights: α after learning, (H,); uniform unless learned, and then of any sum.
        overlap: :func:`overlap` before each step, (steps,).
        held_out: random keys (3,) of held-out targets, queries and data, apart from learning's.
    """

    stream: Stream
    rotation: Float[Array, "d d"]
    before: Heads
    after: Heads
    weights: Float[Array, " H"]
    overlap: Float[Array, " steps"]
    held_out: Array

    @property
    def states(self) -> dict[str, tuple[Heads, Float[Array, " H"]]]:
        """Heads and output weights ``before`` and ``after``."""
        return {"before": (self.before, even(self.before)), "after": (self.after, self.weights)}


@cache
def learned(course: Course, seed: int, batch: int) -> Run:
    """Learn from one batch of a seed, once in a process: both roads take the same heads.

    Start, rotation and tasks are those of the batch: courses are paired. Its random key is the
    Monte Carlo driver's, ``fold_in(root, batch)``.
    """
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), batch)
    for_rotation, for_learning = jax.random.split(key)
    stream = STREAMS[course.stream](course.dimension)
    rotation = jax.random.orthogonal(for_rotation, course.dimension, dtype=jnp.float64)
    sizes = course.dimension, course.count, course.width
    if course.angle is None:
        frames = FRAMES["haar"](*sizes, seed=seed + batch)
    else:
        frames = FRAMES["equiangular"](*sizes, seed=seed + batch, angle=course.angle)
    start = Heads(frames, "gaussian", course.bandwidth)
    # Courses that differ in what is traced share a program.
    shared = replace(course, stream="", angle=None, penalty=0.0, learn_weights=False)
    traced = course.penalty, course.learn_weights
    end, weights, path = learn(shared, stream, rotation, start, for_learning, *traced)
    after = eqx.tree_at(lambda heads: heads.frames, start, end)
    held_out = jax.random.split(jax.random.fold_in(key, 2**31 - 1), 3)
    return Run(stream, rotation, start, after, weights, path, held_out)


@partial(jax.jit, static_argnums=0)
def learn(
    course: Course,
    stream: Stream,
    rotation: Float[Array, "d d"],
    start: Heads,
    key: Array,
    penalty: float | Array,
    learn_weights: bool | Array,
) -> tuple[Array, Array, Array]:
    """Adam on ``error + penalty · overlap``.

    Its first term is the course's :func:`squared_error`. New tasks at every step, and the same ones
    under both objectives.

    Args:
        course: sizes, steps and objective.
        stream: of targets.
        rotation: R, orthonormal, of the stream's coordinates.
        start: heads to begin with; bandwidth and kernel stay.
        key: of all draws.
        penalty: λ.
        learn_weights: whether α is learned.

    Returns:
        Frames (H, d, d_k) of orthonormal columns, weights (H,), and the overlap before each step.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(course.rate, course.steps))

    def task(key: Array) -> tuple[Array, Array]:
        for_target, for_keys, for_labels = jax.random.split(key, 3)
        x = jax.random.normal(for_keys, (course.n, start.dimension), jnp.float32)
        y = stream.target(rotation, for_target)(x)
        noise = jax.random.normal(for_labels, (course.n,), jnp.float32)
        return x, y + jnp.asarray(course.noise_sd, jnp.float32) * noise

    def loss(parameters: tuple[Array, Array], x: Array, y: Array) -> Array:
        frames, weights = parameters
        heads = eqx.tree_at(lambda h: h.frames, start, frames)
        errors = [
            squared_error(
                course.objective, weights.astype(own.dtype), leave_one_out(heads, at, own), own
            )
            for at, own in zip(x, y, strict=True)
        ]
        return jnp.mean(jnp.stack(errors)).astype(jnp.float64) + penalty * overlap(frames)

    def step(carry: Any, key: Array) -> tuple[Any, Array]:
        (frames, weights), state = carry
        # Drawn in a loop of their own: else XLA draws a label anew wherever the gradient uses it.
        x, y = jax.lax.map(task, jax.random.split(key, course.tasks))
        slope, for_weights = jax.grad(loss)((frames, weights), x, y)
        # The part along the manifold of orthonormal frames.
        inner = jnp.einsum("hdp,hdq->hpq", frames, slope)
        slope = slope - jnp.einsum("hdp,hpq->hdq", frames, (inner + inner.mT) / 2)
        for_weights = jnp.where(learn_weights, for_weights, 0.0)
        change, state = optimiser.update((slope, for_weights), state)
        moved = retract(frames + change[0])
        return ((moved, weights + change[1]), state), overlap(frames)

    first = start.frames, even(start)
    keys = jax.random.split(key, course.steps)
    ((frames, weights), _), path = jax.lax.scan(step, (first, optimiser.init(first)), keys)
    return frames, weights, path
