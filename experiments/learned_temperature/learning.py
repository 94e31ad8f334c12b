"""One head that learns its temperature by gradient descent, on a stream of regression tasks.

The temperatures are what both roads start from, like learned frames elsewhere: this module belongs
to neither. Deterministic in seed and batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from sims.problem import TrigonometricSeries
from sims.weights import FACTORIES, WeightRule
from sims.weights.rules import distance

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


def rule_of(name: str, k: int) -> WeightRule:
    """The rule of distances by its name; k keys for top-k."""
    if name == "softmax":
        return WeightRule(name, distance, jax.nn.softmax)
    if name in POWERS:
        return FACTORIES["entmax"](nu=POWERS[name], scores="distance")
    if name == "relu gap":
        return FACTORIES["relu_gap"](scores="distance")
    return FACTORIES["top_k_softmax"](k, scores="distance")


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


class Lessons(NamedTuple):
    """What one seed learns from: log s at the start, and the points of all tasks.

    The last ones of a task are its queries, with noisy labels like the keys.
    """

    start: Float[Array, ""]
    x: Float[Array, "steps tasks points"]
    y: Float[Array, "steps tasks points"]


def lessons(stream: Stream, key: Array, course: Course) -> Lessons:
    """The same for every rule: fresh tasks at every step, starts are drawn, too."""
    for_start, for_steps = jax.random.split(key)

    def one(key: Array) -> tuple[Array, Array]:
        for_target, for_points, for_noise = jax.random.split(key, 3)
        count = course.n + course.queries
        x = jax.random.normal(for_points, (count,), jnp.float32)
        x = x.at[course.n :].multiply(course.query_scale)
        y = stream.target(for_target)(x[:, None]).astype(jnp.float32)
        return x, y + course.noise_sd * jax.random.normal(for_noise, (count,), jnp.float32)

    steps = jax.random.split(for_steps, course.steps)
    x, y = jax.lax.map(lambda key: jax.vmap(one)(jax.random.split(key, course.tasks)), steps)
    return Lessons(course.spread * jax.random.normal(for_start, (), jnp.float32), x, y)


def learn(of_seed: Lessons, course: Course) -> Float[Array, ""]:
    """log s by Adam on ``(label − Σ_i w_i Y_i)²`` at the queries of one step's tasks."""
    optimiser = optax.adam(optax.cosine_decay_schedule(course.rate, course.steps))
    rule = rule_of(course.rule, course.k)

    def loss(log_s: Array, x: Array, y: Array) -> Array:
        keys, bandwidth = x[None, : course.n], jnp.exp(log_s / 2)
        w = jax.vmap(lambda query: rule(query[None], keys, bandwidth))(x[course.n :])
        return jnp.mean((y[course.n :] - w @ y[: course.n]) ** 2)

    def step(carry: tuple[Array, optax.OptState], tasks: tuple[Array, Array]) -> tuple[tuple, None]:
        log_s, state = carry
        slope = jax.grad(lambda at: jnp.mean(jax.vmap(partial(loss, at))(*tasks)))(log_s)
        change, state = optimiser.update(slope, state)
        return (log_s + change, state), None

    begin = (of_seed.start, optimiser.init(of_seed.start))
    return jax.lax.scan(step, begin, (of_seed.x, of_seed.y))[0][0]


_lessons = jax.jit(jax.vmap(lessons, in_axes=(None, 0, None)), static_argnames="course")
_learn = jax.jit(jax.vmap(learn, in_axes=(0, None)), static_argnames="course")


def keys_of(seed: int, batches: range) -> Array:
    """Random keys (batch, 2) of learning and of held-out tasks, those of the Monte Carlo driver."""
    root = jax.random.key(seed, impl="threefry2x32")
    return jnp.stack([jax.random.split(jax.random.fold_in(root, batch)) for batch in batches])


@cache
def _lessons_of(course: Course, seed: int, block: int) -> Lessons:
    batches = range(block * BLOCK, (block + 1) * BLOCK)
    # The stream is data: one program serves both.
    program = replace(course, tasks_of="")
    return _lessons(course.stream(), keys_of(seed, batches)[:, 0], program)


@cache
def _block(course: Course, seed: int, block: int) -> np.ndarray:
    """log s of the seeds that learn together; rules share their lessons."""
    return np.asarray(
        _learn(_lessons_of(replace(course, rule=""), seed, block), replace(course, tasks_of=""))
    )


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
