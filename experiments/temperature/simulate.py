"""Errors at kept, best and learned temperatures, simulated."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from sims.base.arrays import fill_up
from sims.montecarlo import Replicates
from sims.problem.normals import normal
from sims.weights.entmax import Entmax
from sims.weights.rules import distance
from sims.weights.sparse import ReluGap

from .problems import NAMES, PLANE, Problem, tuned
from .rules import LOG, POWERS, SIMULATED

FAR = -1e9
"""Score of a key out of reach, finite for the gradient."""
WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "softmax": jax.nn.softmax,
    **{name: Entmax(nu) for name, nu in POWERS.items()},
    "relu gap": ReluGap(1.0),
}
"""Weights by rule; all but ReLU of the gap learn a temperature, too."""
LEARNERS = ("softmax", *POWERS)
TEMPERATURES = ["kept", "best", "learned"]


class Population(NamedTuple):
    """Arrays of N problems, padded by zeros to the plane: one compiled shape.

    Attributes:
        amplitude: (N, P, J).
        frequency: (N, P, J, 2).
        phase: (N, P, J).
        queries: (N, P, 2).
        seen: 1 for a coordinate that exists, else 0, (N, 2).
        parameters: of every rule, (N, rule, temperature): tuned by theory at the context, the best
            by theory at n, and learned.
        noise_sd: (N,).
        context: keys of tuning, (N,).
    """

    amplitude: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    queries: np.ndarray
    seen: np.ndarray
    parameters: np.ndarray
    noise_sd: np.ndarray
    context: np.ndarray

    def at_keys(
        self, key: Array, factor: int, most: int
    ) -> tuple[Float[Array, "P n"], Float[Array, "P n"]]:
        """Of one problem: scores of drawn keys, and by how much targets differ from the queries'.

        Of ``most`` keys, which the tasks share, only ``factor`` times the context are within reach.
        """
        keys = normal(key, (most, PLANE), jnp.float32) * self.seen
        score = distance(jnp.asarray(self.queries).T[..., None], keys.T[:, None], 1.0)
        score = jnp.where(jnp.arange(most) < factor * self.context, score, FAR)

        def values(points: Array) -> Array:
            waves = jnp.cos(jnp.matmul(self.frequency, points) + self.phase[..., None])
            return jnp.einsum("pj,pjn->pn", self.amplitude, waves)

        return score, values(keys.T) - values(jnp.asarray(self.queries)[..., None])


def tasks_sampler(problems: list[Problem], seed: int, learning: Mapping[str, Any]) -> Replicates:
    """The tasks of all problems."""
    return Replicates(
        partial(errors, most=SIMULATED * max(problem["context"] for problem in problems)),
        constants=population(problems, seed, learning),
        dims={"error": ("problem", "rule", "temperature")},
        coords={"rule": NAMES, "temperature": TEMPERATURES},
    )


def population(problems: list[Problem], seed: int, learning: Mapping[str, Any]) -> Population:
    """The problems in arrays, with parameters that theory finds and those that heads learn."""
    tuning = tuned(problems).sel(ratio=SIMULATED)
    held = tuning["held"].values
    parameters = np.stack([held, tuning["tuned"].values, np.full(held.shape, np.nan)], axis=-1)
    members = []
    for problem, found in zip(problems, parameters, strict=True):
        tasks = problem.tasks
        members.append(
            Population(
                tasks.amplitude[0],
                fill_up(tasks.frequency, PLANE),
                tasks.phase,
                fill_up(tasks.queries, PLANE),
                fill_up(np.ones(problem["width"]), PLANE),
                found,
                problem["noise_sd"],
                problem["context"],
            )
        )
    arrays = jax.tree.map(lambda *leaves: np.stack(leaves).astype(np.float32), *members)
    learn = partial(learned, most=int(arrays.context.max()), **learning)
    keys = jax.random.split(jax.random.key(seed), len(problems))
    places = [NAMES.index(name) for name in LEARNERS]
    arrays.parameters[:, places, 2] = jax.jit(partial(jax.lax.map, learn))((keys, arrays))
    return arrays


def errors(key: Array, shared: Population, _: None, *, most: int) -> dict[str, Array]:
    """Mean squared errors of one replicate at :data:`~.rules.SIMULATED` times the context."""
    keys = jax.random.split(key, len(shared.seen))
    return {"error": jax.lax.map(partial(held_out, most=most), (keys, shared))}


def held_out(pair: tuple[Array, Population], most: int) -> Float[Array, "rule temperature"]:
    """Errors of one problem, NaN at a parameter that is NaN.

    Label noise is integrated out: ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` given the keys.
    """
    key, problem = pair
    score, gaps = problem.at_keys(key, SIMULATED, most)
    parts = []
    for name, parameters in zip(NAMES, problem.parameters, strict=True):
        safe = jnp.nan_to_num(parameters, nan=1.0)
        mse = jax.lax.map(partial(error, problem, name, score, gaps), safe)
        parts.append(jnp.where(jnp.isnan(parameters), jnp.nan, mse))
    return jnp.stack(parts)


def error(
    problem: Population, name: str, score: Array, gaps: Array, parameter: Float[Array, ""]
) -> Float[Array, ""]:
    """The error of one rule at one temperature, or k of top-k, a mean over tasks."""
    if name == "top-k":
        k = parameter.astype(int)
        w = (score >= jnp.sort(score)[:, -k, None]) / k
    else:
        w = jax.vmap(WEIGHTS[name.removesuffix(LOG)])(score / parameter)
    return jnp.mean(jnp.sum(w * gaps, 1) ** 2 + problem.noise_sd**2 * jnp.sum(w**2, 1))


def learned(
    pair: tuple[Array, Population], most: int, steps: int, rate: float
) -> Float[Array, " L"]:
    """Temperatures of :data:`LEARNERS` by Adam on the error at fresh keys, from N(0, 1) in logs."""
    key, problem = pair
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def loss(logs: Array, key: Array) -> Array:
        score, gaps = problem.at_keys(key, 1, most)
        parts = zip(LEARNERS, jnp.exp(logs), strict=True)
        return jnp.sum(jnp.stack([error(problem, name, score, gaps, s) for name, s in parts]))

    def step(carry: tuple[Array, optax.OptState], key: Array) -> tuple[tuple, None]:
        change, state = optimiser.update(jax.grad(loss)(carry[0], key), carry[1])
        return (carry[0] + change, state), None

    for_start, for_steps = jax.random.split(key)
    start = normal(for_start, (len(LEARNERS),), jnp.float32)
    begin = (start, optimiser.init(start))
    return jnp.exp(jax.lax.scan(step, begin, jax.random.split(for_steps, steps))[0][0])
