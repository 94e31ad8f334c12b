"""Layers along their training: the heads' covariances and products of errors on held-out tasks."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sims.learning import STREAMS, Stream
from sims.montecarlo import Replicates
from sims.simulation import with_quick_bits
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .layer import Layer, attention, mixing, random_layer, responses, train


class Course(NamedTuple):
    """What is traced of one point; all value paths and starts of a seed see the same tasks.

    Attributes:
        stream: of tasks.
        free: whether W_V and W_O are trained, or heads are pooled; (V,).
        noise_sd: σ of the labels.
    """

    stream: Stream
    free: Array
    noise_sd: Array


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A stream and size (H, d_k) each; a replicate is a seed of training.

    All share their draws: contrasts of points, value paths, starts and objectives are paired.
    Pooled layers of the sizes in ``separate`` are trained on their heads' own errors once more.
    """
    settings = experiment.settings
    steps = settings["path"]
    joint = of_sizes(
        settings,
        settings["sizes"],
        settings["values"],
        settings["starts"],
        steps,
        objective="joint",
    )
    apart = of_sizes(
        settings, settings["separate"], ["pool"], ["random"], steps, objective="separate"
    )
    return joint | {f"{name}, separate": unit for name, unit in apart.items()}


def of_sizes(
    settings: dict[str, Any],
    sizes: Sequence[Sequence[int]],
    values: Sequence[str],
    starts: Sequence[str],
    steps: Sequence[int],
    *,
    objective: str,
) -> dict[str, SampledUnit]:
    """Every stream and size (H, d_k) under an objective, with these value paths, starts and looks.

    A replicate's draws are named by batch and replicate alone, whatever the layers.
    """
    along = ("values", "start", "step", "head", "head2")
    points = {}
    for heads, width in sizes:
        replicate = partial(
            of_seed,
            heads=heads,
            width=width,
            dimension=settings["dimension"],
            outputs=settings["outputs"],
            n=settings["n"],
            training=(*settings["training"].items(), ("objective", objective)),
            held_out=tuple(settings["held_out"].items()),
            starts=tuple(starts),
            steps=tuple(steps),
        )
        for stream in settings["streams"]:
            course = Course(
                STREAMS[stream](settings["dimension"]),
                jnp.asarray([path == "free" for path in values]),
                jnp.asarray(settings["noise_sd"]),
            )
            sampler = Replicates(
                replicate,
                constants=course,
                reduce="stack",
                dims=dict.fromkeys(("errors", "covariance", "subspaces", "maps"), along)
                | {"temperature": along[:-1]},
                coords={"values": list(values), "start": list(starts), "step": list(steps)},
            )
            points[f"{stream}, {heads} of {width}"] = SampledUnit(
                sampler, {"stream": stream, "heads": heads, "width": width}
            )
    return points


def of_seed(
    key: Array,
    course: Course,
    _: None,
    *,
    heads: int,
    width: int,
    dimension: int,
    outputs: int,
    n: int,
    training: tuple[tuple[str, Any], ...],
    held_out: tuple[tuple[str, int], ...],
    starts: tuple[str, ...],
    steps: tuple[int, ...],
) -> dict[str, Array]:
    """Train a layer of each value path and start, and look at its heads at some steps.

    From the start ``identical`` all heads are the first, and stay equal: one of them is looked at
    for all. From ``random`` each is by itself.

    Returns:
        For each of the steps ``errors`` and ``covariance``, see :func:`moments`; ``subspaces``, the
        Gram matrix of the column spaces of W_K; ``maps``, see :func:`correlation_of_maps`; and the
        ``temperature`` of each head; (V, S, C, …).
    """
    keys = jax.random.split(with_quick_bits(key), 4)
    for_rotation, for_start, for_training, for_tasks = keys
    rotation = jax.random.orthogonal(for_rotation, dimension, dtype=jnp.float64)
    drawn = random_layer(for_start, heads, width, dimension, outputs)

    def path(free: Array, identical: Array) -> Layer:
        start = jax.tree.map(lambda leaf: jnp.where(identical, leaf[:1], leaf), drawn)
        return train(
            course.stream,
            rotation,
            free,
            start,
            for_training,
            n=n,
            noise_sd=course.noise_sd,
            **dict(training),
        )

    def of_layer(free: Array, at_step: Layer) -> dict[str, Array]:
        layer = Layer(*(leaf.astype(jnp.float64) for leaf in at_step))
        errors, covariance = moments(
            layer,
            free,
            course,
            rotation,
            for_tasks,
            n=n,
            outputs=outputs,
            alike=heads // len(layer.query),
            **dict(held_out),
        )
        frames, _ = jnp.linalg.qr(layer.key)
        return {
            "errors": errors,
            "covariance": covariance,
            "subspaces": jnp.sum(jnp.einsum("hdi,gdj->hgij", frames, frames) ** 2, (2, 3)) / width,
            "maps": correlation_of_maps(layer),
            "temperature": jnp.exp(layer.log_temperature),
        }

    identical = [start == "identical" for start in starts]
    paths = jax.vmap(jax.vmap(path, (None, 0)), (0, None))(course.free, jnp.asarray(identical))
    looked_at = jax.tree.map(lambda leaf: leaf[:, :, jnp.asarray(steps)], paths)
    shape = (len(course.free), len(steps))

    def of_start(place: int) -> dict[str, Array]:
        distinct = 1 if identical[place] else heads
        # Mapped over layers alone, draws of tasks are made once for all of them; and over one axis
        # of layers, as XLA's simplifier fails at products that are batched along two and swapped.
        layers = jax.tree.map(
            lambda leaf: leaf[:, place, :, :distinct].reshape(-1, distinct, *leaf.shape[4:]),
            looked_at,
        )
        found = jax.vmap(of_layer)(jnp.repeat(course.free, len(steps)), layers)
        return jax.tree.map(
            lambda a: jnp.broadcast_to(a, (len(a), *[heads] * (a.ndim - 1))).reshape(
                *shape, *[heads] * (a.ndim - 1)
            ),
            found,
        )

    each = [of_start(place) for place in range(len(starts))]
    return jax.tree.map(lambda *of: jnp.stack(of, axis=1), *each)


def correlation_of_maps(layer: Layer) -> Float[Array, "H H"]:
    """``det[I + (C_h − C_g)ᵀ(C_h − C_g)]^{−1/2}`` with ``C_h = W_K W_Qᵀ/s_h``, in (0, 1].

    Of many keys N(0, I) head h takes the weights of the tilt ``C_h x``; the noise of two heads has
    the correlation ``exp(−‖(C_h − C_g)x‖²/2)``, and this is its mean over queries x ~ N(0, I).
    """
    scaled = layer.key / jnp.exp(layer.log_temperature)[:, None, None]
    products = jnp.einsum("hdk,hek->hde", scaled, layer.query)
    apart = products[:, None] - products[None]
    left = jnp.eye(apart.shape[-1]) + jnp.einsum("hgde,hgdf->hgef", apart, apart)
    determinant = jnp.ones(left.shape[:2])
    # By elimination: LAPACK's decompositions of many matrices on several devices wait for ever.
    for _ in range(left.shape[-1]):
        pivot, row = left[..., 0, 0], left[..., 0, 1:]
        determinant = determinant * pivot
        left = left[..., 1:, 1:] - row[..., :, None] * row[..., None, :] / pivot[..., None, None]
    return determinant**-0.5


def moments(
    layer: Layer,
    free: Array,
    course: Course,
    rotation: Array,
    key: Array,
    *,
    n: int,
    outputs: int,
    tasks: int,
    queries: int,
    designs: int,
    alike: int = 1,
) -> tuple[Float[Array, "H H"], Float[Array, "H H"]]:
    """``M_hg = E⟨ê_h, ê_g⟩/p`` and ``S_hg = E⟨f̂_h − E f̂_h, f̂_g − E f̂_g⟩/p``.

    With ``f̂_h = H A_h g_h`` the layer is the pool of these, ``f̂ = Σ_h f̂_h/H``, and with
    ``ê_h = f̂_h − m`` its error is the mean of M. Expectations are over held-out tasks and queries,
    for S given them, and over keys and labels; the labels' noise is integrated out. Unbiased.
    Each head of ``layer`` stands for ``alike`` equal ones.
    """
    scaled = len(layer.query) * mixing(layer, free)
    scaled = scaled * jnp.where(free, alike, 1)  # a pool of equal heads is any of them
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
