"""Layers along their training: the heads' covariances and products of errors on held-out tasks."""

from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.learning import STREAMS, Stream
from sims.montecarlo import Replicates
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .layer import Layer, attention, mixing, random_layer, responses, train

MATRIX = ("step", "head", "head2")


class Course(NamedTuple):
    """What is traced of one point.

    Attributes:
        stream: of tasks.
        free: whether W_V and W_O are trained, or heads are pooled.
        identical: whether all heads start as the first, and so stay equal, or each by itself.
        noise_sd: σ of the labels.
    """

    stream: Stream
    free: Array
    identical: Array
    noise_sd: Array


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A stream, value path, size (H, d_k) and start each; a replicate is a seed of training.

    All share their draws: contrasts of points are paired.
    """
    settings = experiment.settings
    points = {}
    for heads, width in settings["sizes"]:
        replicate = partial(
            of_seed, heads=heads, width=width, dimension=settings["dimension"],
            outputs=settings["outputs"], n=settings["n"],
            training=tuple(settings["training"].items()),
            held_out=tuple(settings["held_out"].items()),
            steps=tuple(settings["path"]),
        )  # fmt: skip
        for stream, values, start in product(
            settings["streams"], settings["values"], settings["starts"]
        ):
            course = Course(
                STREAMS[stream](settings["dimension"]),
                jnp.asarray(values == "free"),
                jnp.asarray(start == "identical"),
                jnp.asarray(settings["noise_sd"]),
            )
            sampler = Replicates(
                replicate,
                constants=course,
                reduce="stack",
                dims=dict.fromkeys(("errors", "covariance", "subspaces"), MATRIX)
                | {"temperature": MATRIX[:2]},
                coords={"step": settings["path"]},
            )
            points[f"{stream}, {values}, {heads} of {width}, {start}"] = SampledUnit(
                sampler,
                {"stream": stream, "values": values, "heads": heads, "width": width,
                 "start": start},
            )  # fmt: skip
    return points


def of_seed(
    key: Array, course: Course, _: None, *, heads: int, width: int, dimension: int, outputs: int,
    n: int, training: tuple[tuple[str, Any], ...], held_out: tuple[tuple[str, int], ...],
    steps: tuple[int, ...],
) -> dict[str, Array]:  # fmt: skip
    """Train one layer from a random start, and look at its heads at some steps.

    Returns:
        For each of the steps ``errors`` and ``covariance``, see :func:`moments`; ``subspaces``, the
        Gram matrix of the column spaces of W_K; and the ``temperature`` of each head.
    """
    for_rotation, for_start, for_training, for_tasks = jax.random.split(key, 4)
    rotation = jax.random.orthogonal(for_rotation, dimension, dtype=jnp.float64)
    start = jax.tree.map(
        lambda leaf: jnp.where(course.identical, leaf[:1], leaf),
        random_layer(for_start, heads, width, dimension, outputs),
    )
    path = train(
        course.stream, rotation, course.free, start, for_training,
        n=n, noise_sd=course.noise_sd, **dict(training),
    )  # fmt: skip

    def at_step(step: Array) -> dict[str, Array]:
        layer = Layer(*(leaf[step].astype(jnp.float64) for leaf in path))
        errors, covariance = moments(
            layer, course, rotation, for_tasks, n=n, outputs=outputs, **dict(held_out)
        )
        frames, _ = jnp.linalg.qr(layer.key)
        return {
            "errors": errors,
            "covariance": covariance,
            "subspaces": jnp.sum(jnp.einsum("hdi,gdj->hgij", frames, frames) ** 2, (2, 3)) / width,
            "temperature": jnp.exp(layer.log_temperature),
        }

    return jax.lax.map(at_step, jnp.asarray(steps))


def moments(
    layer: Layer, course: Course, rotation: Array, key: Array, *,
    n: int, outputs: int, tasks: int, queries: int, designs: int,
) -> tuple[Float[Array, "H H"], Float[Array, "H H"]]:  # fmt: skip
    """``M_hg = E⟨ê_h, ê_g⟩/p`` and ``S_hg = E⟨f̂_h − E f̂_h, f̂_g − E f̂_g⟩/p``.

    With ``f̂_h = H A_h g_h`` the layer is the pool of these, ``f̂ = Σ_h f̂_h/H``, and with
    ``ê_h = f̂_h − m`` its error is the mean of M. Expectations are over held-out tasks and queries,
    for S given them, and over keys and labels; the labels' noise is integrated out. Unbiased.
    """
    scaled = len(layer.query) * mixing(layer, course.free)
    per_noise = jnp.einsum("hop,gop->hg", scaled, scaled) / outputs

    def one_task(index: Array) -> tuple[Array, Array]:
        for_target, for_queries, for_keys = jax.random.split(jax.random.fold_in(key, index), 3)
        at = jax.random.normal(for_queries, (queries, rotation.shape[0]), jnp.float64)
        truth = responses(course.stream, rotation, for_target, outputs, at)

        def one_design(number: Array) -> tuple[Array, Array]:
            own = jax.random.fold_in(for_keys, number)
            x = jax.random.normal(own, (n, rotation.shape[0]), jnp.float64)
            weights = attention(layer, at, x)
            signal = weights @ responses(course.stream, rotation, for_target, outputs, x)
            shared = jnp.einsum("hqn,gqn->hg", weights, weights) / queries
            return jnp.einsum("hop,hqp->hqo", scaled, signal), course.noise_sd**2 * shared

        signal, shared = jax.lax.map(one_design, jnp.arange(designs))
        noise = per_noise * shared.mean(0)
        gaps, centred = signal - truth, signal - signal.mean(0)
        size = queries * outputs
        errors = jnp.einsum("rhqo,rgqo->hg", gaps, gaps) / (designs * size)
        covariance = jnp.einsum("rhqo,rgqo->hg", centred, centred) / ((designs - 1) * size)
        return errors + noise, covariance + noise

    errors, covariance = jax.lax.map(one_task, jnp.arange(tasks))
    return errors.mean(0), covariance.mean(0)
