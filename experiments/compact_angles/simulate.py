"""Shared noise of heads at many angles, for one rule of weights at a time."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.montecarlo import Replicates
from sims.problem import Heads
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .rules import points, rule_of


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A rule, width and number of keys each. Points of one width and n share their draws."""
    settings = experiment.settings
    angles, sampled = settings["angles"], {}
    for point in points(settings):
        frames = frames_at(angles, point.width, point.width)
        if point.width == 2:
            frames = np.concatenate([frames, frames_at(angles, 2, 1)])
        parts = ("pair", "mixed")[: point.width]
        sampler = Replicates(
            partial(shared_noise, parts=parts, n=point.n, queries=settings["queries"]),
            constants=(
                Heads(frames, rule_of(point.rule), point.bandwidth),
                jnp.asarray(settings["query_scale"]),
            ),
            dims=dict.fromkeys(parts, ("angle",)),
            coords={"angle": angles},
        )
        sampled[point.name] = SampledUnit(
            sampler,
            {"group": point.group, "rule": point.rule, "width": point.width, "n": point.n},
            settings["few_replicates" if point.group == "few" else "flat_replicates"]
            if point.group != "many"
            else None,
            stream=(point.width, point.n),
        )
    return sampled


def frames_at(angles: list[float], width: int, turned: int) -> Float[np.ndarray, "A d d_k"]:
    """Heads in R^{2d_k} at these angles (degrees) to the first one, in that many directions.

    In the other directions they are at a right angle to it.
    """
    turns = np.deg2rad(angles)[:, None] * np.ones(width)
    turns[:, turned:] = np.pi / 2
    frames = np.zeros((len(angles), 2 * width, width))
    for i in range(width):
        frames[:, i, i], frames[:, width + i, i] = np.cos(turns[:, i]), np.sin(turns[:, i])
    return frames


def shared_noise(
    key: Array,
    shared: tuple[Heads, Array],
    _: None,
    *,
    parts: tuple[str, ...],
    n: int,
    queries: int,
) -> dict[str, Array]:
    """``Σ_i w_hi w_gi``, over σ² the covariance of two heads' label noise, g being the first head.

    Returns:
        ``pair`` and, in d_k = 2, ``mixed`` (angle,): heads at that angle in all directions, or in
        one and at a right angle in the other; ``own``, the mean of ``Σ_i w_hi²`` over heads, which
        all have one law.
    """
    heads, scale = shared
    for_keys, for_queries = jax.random.split(key)
    keys = jax.random.normal(for_keys, (n, heads.dimension), jnp.float64)
    at = scale * jax.random.normal(for_queries, (queries, heads.dimension), jnp.float64)

    def one(query: Array) -> tuple[Array, Array]:
        weights = nw_weights(heads, query, keys)
        return weights @ weights[0], jnp.mean(jnp.sum(weights**2, axis=1))

    pairs, own = jax.lax.map(one, at)
    of_parts = jnp.split(pairs.mean(0), len(parts))
    return dict(zip(parts, of_parts, strict=True)) | {"own": own.mean()}
