"""Held-out errors at several context lengths, at learned temperatures and about the best ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.montecarlo import Draw, HostBatches
from sims.normals import normal
from sims.simulation.native import native_rule_sums, usable
from sims.simulation.whole import rule_sums
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit
from sims.weights.sparse import TopK

from .learning import Course, Stream, held_out_task, keys_of, learned, rule_of

LENGTH, PLACE = "length", "place"


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A stream and a rule each; a batch is a seed of learning. Points of a stream share tasks."""
    settings = experiment.settings
    sizes = tuple(settings["held_out"].items())
    lengths = tuple(factor * settings["n"] for factor in settings["lengths"])
    sampled = {}
    for stream, best in settings["best"].items():
        for rule, places in best.items():
            around = np.add.outer(places, settings["around"])
            sampled[f"{stream}, {rule}"] = SampledUnit(
                HostBatches(
                    of_seed,
                    constants=(Course.of(settings, stream, rule), lengths, around, sizes),
                    dims={"kept": (LENGTH,), "tuned": (LENGTH, PLACE)},
                    coords={LENGTH: list(settings["lengths"])},
                ),
                {"stream": stream, "rule": rule},
            )
    return sampled


def of_seed(
    draw: Draw, replicates: int, shared: tuple[Course, tuple[int, ...], np.ndarray, tuple]
) -> dict[str, np.ndarray]:
    """The error at the temperature learned from one seed, and at given ones.

    Returns:
        ``kept`` (length,) and ``tuned`` (length, place), mean squared errors on held-out tasks;
        ``log_temperature``, the learned one.
    """
    course, lengths, around, sizes = shared
    seed = int(draw.seed)
    log_s = learned(course, seed, draw.batch)
    for_tasks = keys_of(seed, range(draw.batch, draw.batch + 1))[0, 1]
    errors = np.stack(
        [
            held_out(
                course.stream(),
                np.append(log_s, places),
                for_tasks,
                course.noise_sd,
                course.query_scale,
                rule=course.rule,
                k=course.k,
                n=n,
                designs=replicates,
                **dict(sizes),
            )
            for n, places in zip(lengths, around, strict=True)
        ]
    )
    return {"kept": errors[:, 0], "tuned": errors[:, 1:], "log_temperature": np.asarray(log_s)}


def held_out(
    stream: Stream,
    log_s: Float[np.ndarray, " t"],
    key: Array,
    noise_sd: float,
    query_scale: float,
    *,
    rule: str,
    k: int,
    n: int,
    tasks: int,
    queries: int,
    designs: int,
) -> Float[np.ndarray, " t"]:
    """Mean of ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` over tasks, queries and keys.

    In float64. Targets and queries are those of :func:`~.learning.held_out_task`; the keys are
    drawn here, the same for every rule.
    """
    x, values, at, truth = _tasks(
        stream, key, query_scale, n=n, tasks=tasks, queries=queries, designs=designs
    )
    mean, square = _weighed(at, x, values, np.exp(np.asarray(log_s, float) / 2), rule=rule, k=k)
    errors = (np.asarray(mean) - np.asarray(truth)[:, :, None]) ** 2
    return (errors + noise_sd**2 * np.asarray(square)).mean((0, 1))


@partial(jax.jit, static_argnames=("n", "tasks", "queries", "designs"))
def _tasks(
    stream: Stream,
    key: Array,
    query_scale: float,
    *,
    n: int,
    tasks: int,
    queries: int,
    designs: int,
) -> tuple[Array, Array, Array, Array]:
    """Keys (r, n), m of them, queries (r, q), m of them; r runs over tasks and their designs."""

    def one(index: Array) -> tuple[Array, Array, Array, Array]:
        target, at = held_out_task(stream, key, index // designs, queries, query_scale)
        x = normal(jax.random.fold_in(key, ~index), (n,), jnp.float32)
        x = x.astype(jnp.float64)
        return x, target(x[:, None]), at, target(at[:, None])

    return jax.lax.map(one, jnp.arange(tasks * designs))


@partial(jax.jit, static_argnames=("rule", "k"))
def _weighed(
    at: Float[Array, "r q"],
    x: Float[Array, "r n"],
    values: Float[Array, "r n"],
    bandwidth: Float[Array, " t"],
    *,
    rule: str,
    k: int,
) -> tuple[Float[Array, "r q t"], Float[Array, "r q t"]]:
    """``Σ_i w_i m(X_i)`` and ``Σ_i w_i²``; a temperature is a head of its own to the engine."""
    weigh, count = rule_of(rule, k), len(bandwidth)
    native = usable(weigh, jax.default_backend(), np.inf)
    sums = native_rule_sums if native else rule_sums

    def together(
        query: Float[Array, " q"], keys: Float[Array, " n"], column: Float[Array, " n"]
    ) -> tuple[Array, Array]:
        queries = jnp.tile(query[:, None, None], (1, 1, count))
        heads = jnp.tile(keys, (1, count, 1))
        linear, gram = sums(weigh, queries, heads, column[None], bandwidth)
        return linear[..., 0], jnp.diagonal(gram, axis1=1, axis2=2)

    def nearest(query: Array, keys: Array, column: Array) -> tuple[Array, ...]:
        # The k best are the same at every temperature; XLA sorts all keys to find them in float64.
        places = jax.lax.top_k(-jnp.abs(query - keys).astype(jnp.float32), k)[1]
        return tuple(part[0] for part in together(query[None], keys[places], column[places]))

    def one(row: tuple[Array, Array, Array]) -> tuple[Array, ...]:
        if isinstance(weigh.weights, TopK):
            return jax.vmap(nearest, in_axes=(0, None, None))(*row)
        return together(*row)

    return jax.lax.map(one, (at, x, values))
