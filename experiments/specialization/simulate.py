"""Frames before and after learning, and their held-out error by drawn keys."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.learning import Course, Stream, learned, overlap
from sims.montecarlo import Draw, HostBatches
from sims.problem import Heads
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .courses import courses

PARTS = ("mse", "own", "cross", "heads_error")


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A stream and variant each; a batch is a learning seed."""
    return {
        name: SampledUnit(
            HostBatches(
                of_seed,
                constants=(course, experiment.settings["held_out"]),
                dims={"hdi": ("step",), "weights": ("head",)},
            ),
            dict(zip(("stream", "variant"), name.split(", "), strict=True)),
        )
        for name, course in courses(experiment.settings).items()
    }


def of_seed(
    draw: Draw, replicates: int, shared: tuple[Course, dict[str, int]]
) -> dict[str, np.ndarray]:
    """Learning from one seed: its path, and the error of its heads before and after.

    Returns:
        The parts of the error, ``<part>_before`` and ``<part>_after``; the diversity index
        ``hdi`` (step,) along the way and ``hdi_after``; output ``weights`` (head,).
    """
    course, sizes = shared
    run = learned(course, int(draw.seed), draw.batch)
    parts = {
        f"{part}_{state}": value
        for state, (heads, weights) in run.states.items()
        for part, value in zip(
            PARTS,
            held_out(
                run.stream,
                run.rotation,
                heads,
                weights,
                run.held_out,
                course.n,
                course.noise_sd,
                replicates=replicates,
                **sizes,
            ),
            strict=True,
        )
    }
    return parts | {
        "hdi_after": 1 - overlap(run.after.frames),
        "hdi": 1 - run.overlap,
        "weights": run.weights,
    }


@partial(jax.jit, static_argnames=("n", "targets", "queries", "replicates"))
def held_out(
    stream: Stream,
    rotation: Array,
    heads: Heads,
    weights: Array,
    key: Array,
    n: int,
    noise_sd: float,
    *,
    targets: int,
    queries: int,
    replicates: int,
) -> Float[Array, "4"]:
    """Mean of (f̄(x) − m(x))² over held-out targets, queries and keys, and what it is made of.

    Every target has queries of its own: few neighbours of a far one make an outlier of a seed whose
    targets all share it.

    The labels' noise is integrated out: with ``N_hg = σ² Σ_i w_hi w_gi`` the error is
    ``(Σ_h α_h g_h − m)² + αᵀNα``. The heads' covariance S is the sample covariance of g over the
    ``replicates`` draws of keys at one target and query, plus the mean of N; then own is
    ``Σ_h α_h² S_hh`` and cross ``Σ_{h≠g} α_h α_g S_hg``. With ``M_hh = E (f̂_h − m)²``, the error of
    a head alone, heads' error is ``Σ_h α_h M_hh``. All unbiased.
    """
    for_target, for_query, for_data = key

    def one_target(index: Array) -> Array:
        target = stream.target(rotation, jax.random.fold_in(for_target, index))
        of_target = jax.random.fold_in(for_query, index)
        at = jax.random.normal(of_target, (queries, heads.dimension), jnp.float64)

        def one(replicate: Array) -> tuple[Array, Array]:
            x = jax.random.normal(
                jax.random.fold_in(for_data, index * replicates + replicate),
                (n, heads.dimension),
                jnp.float64,
            )
            w = jax.vmap(lambda q: nw_weights(heads, q, x))(at)
            return w @ target(x), noise_sd**2 * jnp.einsum("qhn,qgn->hg", w, w) / queries

        signal, noise = jax.lax.map(one, jnp.arange(replicates))
        truth = target(at)
        error = jnp.mean((signal @ weights - truth) ** 2) + weights @ noise.mean(0) @ weights
        alone = jnp.mean((signal - truth[:, None]) ** 2, axis=(0, 1)) + jnp.diagonal(noise.mean(0))
        centred = signal - signal.mean(0)
        sample = jnp.einsum("rqh,rqg->hg", centred, centred) / ((replicates - 1) * queries)
        covariance = sample + noise.mean(0)
        own = weights**2 @ jnp.diagonal(covariance)
        cross = weights @ covariance @ weights - own
        return jnp.stack([error, own, cross, weights @ alone])

    return jax.lax.map(one_target, jnp.arange(targets)).mean(0)
