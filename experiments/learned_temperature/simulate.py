"""Held-out errors at several context lengths, at learned temperatures and about the best ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.montecarlo import Draw, HostBatches
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .learning import Course, Stream, attention, held_out_task, keys_of, learned

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
    seed = int(draw.draws.seed)
    log_s = learned(course, seed, draw.batch)
    for_tasks = keys_of(seed, range(draw.batch, draw.batch + 1))[0, 1]
    rows = [
        held_out(
            course.stream(), np.append(log_s, places).astype(np.float32), for_tasks,
            course.noise_sd, course.query_scale,
            rule=course.rule, k=course.k, n=n, designs=replicates, **dict(sizes),
        )
        for n, places in zip(lengths, around, strict=True)
    ]  # fmt: skip
    errors = np.stack([np.asarray(row, float) for row in rows])
    return {"kept": errors[:, 0], "tuned": errors[:, 1:], "log_temperature": np.asarray(log_s)}


@partial(jax.jit, static_argnames=("rule", "k", "n", "tasks", "queries", "designs"))
def held_out(
    stream: Stream, log_s: Float[Array, " t"], key: Array, noise_sd: float, query_scale: float, *,
    rule: str, k: int, n: int, tasks: int, queries: int, designs: int,
) -> Float[Array, " t"]:  # fmt: skip
    """Mean of ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` over tasks, queries and keys.

    Targets and queries are those of :func:`~.learning.held_out_task`; the keys are drawn here.
    """

    def one(index: Array) -> Array:
        target, at = held_out_task(stream, key, index // designs, queries, query_scale)
        x = jax.random.normal(jax.random.fold_in(key, ~index), (n,), jnp.float32)
        values, truth = (target(p[:, None].astype(jnp.float64)) for p in (x, at))
        values = values.astype(jnp.float32)

        def error(one: Array) -> Array:
            w = attention(rule, k, one, at.astype(jnp.float32), x)
            return jnp.mean((w @ values - truth) ** 2) + noise_sd**2 * jnp.mean(jnp.sum(w**2, 1))

        return jax.lax.map(error, log_s)

    return jax.lax.map(one, jnp.arange(tasks * designs)).mean(0)
