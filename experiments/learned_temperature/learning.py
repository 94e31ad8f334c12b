"""One head that learns its temperature by gradient descent, on a stream of regression tasks.

The temperatures are what both roads start from, like learned frames elsewhere: this module belongs
to neither. Deterministic in seed and batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from sims.problem import TrigonometricSeries
from sims.weights.entmax import Entmax
from sims.weights.rules import distance
from sims.weights.sparse import ReluGap, TopK

POWERS = {"sparsemax": 1.0, "1.5-entmax": 2.0, "4/3-entmax": 3.0}
"""α-entmax, by ν."""
BLOCK = 16
"""Seeds that learn together, in one program; alone each would take ten times as long."""
RULES = ("softmax", *POWERS, "relu gap", "top-k softmax")
"""Every rule; all weigh distances."""


COMMON = ("waves", "frequency", "k", "n", "noise_sd", "query_scale")
"""Settings that all courses share."""


class Stream(NamedTuple):
    """A law of targets ``Σ_j a_j cos(ω_j x + φ_j)`` on the line, ``ω_j = base_j + spread_j g_j``.

    g_j is standard normal, φ_j uniform.
    """

    amplitude: Float[Array, " J"]
    base: Float[Array, " J"]
    spread: Float[Array, " J"]

    def target(self, key: Array) -> TrigonometricSeries:
        """One target."""
        for_waves, for_phases = jax.random.split(key)
        waves = self.base + self.spread * jax.random.normal(for_waves, self.base.shape, jnp.float64)
        phases = jax.random.uniform(for_phases, self.base.shape, jnp.float64, 0, 2 * jnp.pi)
        return TrigonometricSeries(self.amplitude, waves[:, None], phases)


def stream_of(name: str, waves: int, frequency: float) -> Stream:
    """``smooth``: waves of random frequency, which counts as β = 2; ``rough``: lacunary, β = 1.

    Kernels of order 2 use no more than β = 2. Both have as many waves: a program serves both.
    """
    if name == "smooth":
        level = jnp.full(waves, (2.0 / waves) ** 0.5)
        return Stream(level, jnp.zeros(waves), jnp.full(waves, frequency))
    octaves = 2.0 ** jnp.arange(waves)
    return Stream(1 / octaves, octaves, jnp.zeros(waves))


def weights_of(rule: str, k: int) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
    """The rule's map from scores to weights; k keys for top-k."""
    if rule == "softmax":
        return jax.nn.softmax
    if rule in POWERS:
        return Entmax(POWERS[rule])
    return ReluGap(1.0) if rule == "relu gap" else TopK(k, "softmax")


def attention(
    rule: str, k: int, log_s: Array, queries: Float[Array, " q"], keys: Float[Array, " n"]
) -> Float[Array, "q n"]:
    """Weights of the keys at every query, on the line, at temperature s."""
    weigh = weights_of(rule, k)
    return jax.vmap(lambda x: weigh(distance(x[None], keys[None], jnp.exp(log_s / 2))))(queries)


@dataclass(frozen=True)
class Course:
    """What a head learns from and how; known by its values.

    Attributes:
        tasks_of: ``smooth`` or ``rough``, see :func:`stream_of`.
        waves: of a target.
        frequency: its waves' standard deviation, if smooth.
        rule: one of :data:`RULES`.
        k: keys of top-k.
        n: keys of a task.
        noise_sd: σ of the labels.
        query_scale: κ.
        steps: gradient steps.
        tasks: tasks a step.
        queries: a task.
        rate: first learning rate; falls to 0 along a cosine.
        spread: of log s at the start, a normal one about 0.
    """

    tasks_of: str
    waves: int
    frequency: float
    rule: str
    k: int
    n: int
    noise_sd: float
    query_scale: float
    steps: int
    tasks: int
    queries: int
    rate: float
    spread: float

    @classmethod
    def of(cls, settings: Mapping[str, Any], tasks_of: str, rule: str) -> "Course":
        """One stream and rule of the experiment's settings."""
        common = {name: settings[name] for name in COMMON}
        return cls(tasks_of=tasks_of, rule=rule, **common, **settings["learning"])

    def stream(self) -> Stream:
        """The law of its targets."""
        return stream_of(self.tasks_of, self.waves, self.frequency)


def learn(stream: Stream, key: Array, course: Course) -> Float[Array, ""]:
    """log s by Adam on ``(label − Σ_i w_i Y_i)²`` at queries with noisy labels.

    Fresh tasks at every step, starts are drawn, too.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(course.rate, course.steps))
    for_start, for_steps = jax.random.split(key)

    def loss(log_s: Array, key: Array) -> Array:
        def one(key: Array) -> Array:
            for_target, for_points, for_noise = jax.random.split(key, 3)
            count = course.n + course.queries
            x = jax.random.normal(for_points, (count,), jnp.float32)
            x = x.at[course.n :].multiply(course.query_scale)
            y = stream.target(for_target)(x[:, None]).astype(jnp.float32)
            y = y + course.noise_sd * jax.random.normal(for_noise, (count,), jnp.float32)
            w = attention(course.rule, course.k, log_s, x[course.n :], x[: course.n])
            return jnp.mean((y[course.n :] - w @ y[: course.n]) ** 2)

        return jnp.mean(jax.vmap(one)(jax.random.split(key, course.tasks)))

    def step(carry: tuple[Array, optax.OptState], key: Array) -> tuple[tuple, None]:
        log_s, state = carry
        change, state = optimiser.update(jax.grad(loss)(log_s, key), state)
        return (log_s + change, state), None

    start = course.spread * jax.random.normal(for_start, (), jnp.float32)
    steps = jax.random.split(for_steps, course.steps)
    return jax.lax.scan(step, (start, optimiser.init(start)), steps)[0][0]


_learn = jax.jit(jax.vmap(learn, in_axes=(None, 0, None)), static_argnames="course")


def keys_of(seed: int, batches: range) -> Array:
    """Random keys (batch, 2) of learning and of held-out tasks, those of the Monte Carlo driver."""
    root = jax.random.key(seed, impl="threefry2x32")
    return jnp.stack([jax.random.split(jax.random.fold_in(root, batch)) for batch in batches])


@cache
def _block(course: Course, seed: int, block: int) -> np.ndarray:
    batches = range(block * BLOCK, (block + 1) * BLOCK)
    # The stream is data: one program serves both.
    program = replace(course, tasks_of="")
    return np.asarray(_learn(course.stream(), keys_of(seed, batches)[:, 0], program))


def learned(course: Course, seed: int, batch: int) -> float:
    """log s learned from one batch of a seed, once in a process: both roads take the same one."""
    return float(_block(course, seed, batch // BLOCK)[batch % BLOCK])


def held_out_task(
    stream: Stream, key: Array, index: Array | int, queries: int, query_scale: float
) -> tuple[TrigonometricSeries, Float[Array, " q"]]:
    """A target that nobody learned from, and queries of its own."""
    for_target, for_queries = jax.random.split(jax.random.fold_in(key, index))
    at = query_scale * jax.random.normal(for_queries, (queries,), jnp.float64)
    return stream.target(for_target), at
