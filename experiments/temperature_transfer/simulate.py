"""Errors of attention rules at many temperatures and numbers of keys; attended keys."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sims.montecarlo import Draw, Replicates
from sims.normals import normal
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit
from sims.weights.entmax import Entmax
from sims.weights.rules import distance, dot_product
from sims.weights.sparse import ReluGap

from .problems import ENTMAX, SMOOTHNESS, WEIGHED, Settings, drawn, parameters

PLANE = 2
"""The largest dimension of a problem; narrower ones are padded by zeros: one compiled shape."""


class Population(NamedTuple):
    """P problems, and parameters of the rules.

    Attributes:
        amplitude: of the waves at every smoothness, (3, P, J); 0 for waves of another family.
        frequency: (P, J, 2).
        phase: (P, J).
        queries: (P, 2).
        seen: 1 for a coordinate that exists, else 0, (2,).
        temperatures: of each rule but top-k, (rule, G).
        counts: k of top-k, (K,).
        noise_sd: σ.
    """

    amplitude: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    queries: np.ndarray
    seen: np.ndarray
    temperatures: np.ndarray
    counts: np.ndarray
    noise_sd: float


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A point a head width, keys of unequal norms, and a point a sphere."""
    settings, sizes = experiment.settings, tuple(experiment.settings["sizes"])
    each = settings["problems_per_batch"]
    made = {}
    for width in settings["widths"]:
        for scores in ("distance", "dot") if width == settings["unequal"] else ("distance",):
            name = f"d_k={width}" if scores == "distance" else "unequal norms"
            shared = population(settings, width, experiment.simulation.batches, scores)
            sampler = Replicates(
                partial(errors, sizes=sizes, scores=scores),
                per_batch=partial(turns, problems=each),
                rows=True,
                constants=shared,
                dims={
                    "mse": ("smoothness", "weighed", "step", "size"),
                    "mse_top_k": ("smoothness", "count", "size"),
                    "attended": ("weighed", "step", "size"),
                },
                coords={
                    "smoothness": list(SMOOTHNESS),
                    "weighed": list(WEIGHED),
                    "size": list(sizes),
                },
            )
            made[name] = SampledUnit(sampler, {"width": width, "scores": scores})
    for width, temperatures in settings["sphere"].items():
        sampler = Replicates(
            partial(on_sphere, width=width, temperatures=tuple(temperatures), sizes=sizes),
            dims={"attended_on_sphere": ("entmax", "size")},
            coords={"entmax": list(ENTMAX), "size": list(sizes)},
        )
        made[f"sphere d_k={width}"] = SampledUnit(sampler, {"width": width, "scores": "dot"})
    return made


def population(settings: Settings, width: int, batches: int, scores: str) -> Population:
    """The problems of all batches, padded to the plane."""
    families = drawn(settings, width, batches * settings["problems_per_batch"])
    waves = [family.phase.shape[1] for family in families]
    amplitude = np.concatenate(
        [
            np.pad(family.amplitude, ((0, 0), (0, 0), around))
            for family, around in zip(families, ((0, waves[1]), (waves[0], 0)), strict=True)
        ]
    )
    grids = parameters(settings, "simulation" if scores == "distance" else scores, width)
    missing = PLANE - width
    return Population(
        amplitude,
        np.pad(np.concatenate([f.frequency for f in families], 1), ((0, 0), (0, 0), (0, missing))),
        np.concatenate([family.phase for family in families], 1),
        np.pad(families[0].queries, ((0, 0), (0, missing))),
        (np.arange(PLANE) < width).astype(float),
        np.stack([grids[rule] for rule in WEIGHED]),
        grids["top-k"].astype(int),
        settings["noise_sd"],
    )


def turns(draw: Draw, problems: int) -> Int[np.ndarray, " R"]:
    """The problem of every replicate: those of the batch, each in its turn."""
    return draw.batch * problems + np.arange(draw.replicates) % problems


def errors(
    key: Array, shared: Population, turn: Array, *, sizes: Sequence[int], scores: str
) -> dict[str, Array]:
    """Squared errors of one replicate; the first keys of the largest size are a smaller one's.

    Label noise is integrated out: ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` given the keys.
    """
    single = jnp.float32
    amplitude, frequency, phase, query = (
        jnp.asarray(leaf).astype(single)
        for leaf in (
            shared.amplitude[:, turn],
            shared.frequency[turn],
            shared.phase[turn],
            shared.queries[turn],
        )
    )
    keys = normal(key, (max(sizes), PLANE), single) * shared.seen.astype(single)

    def target(points: Array) -> Array:
        return amplitude @ jnp.cos(frequency @ points.T + phase[:, None])

    gaps = target(keys) - target(query[None])
    score = {"distance": distance, "dot": dot_product}[scores](query[:, None], keys.T, 1.0)
    temperatures, counts = jnp.asarray(shared.temperatures, single), jnp.asarray(shared.counts)
    weighed = [weights_of(score[:n], gaps[:, :n], temperatures) for n in sizes]
    gap, squares, attended = (jnp.stack(part, axis=-1) for part in zip(*weighed, strict=True))
    nearest = [means_of_best(score[:n], gaps[:, :n], counts) for n in sizes]
    return {
        "mse": gap**2 + shared.noise_sd**2 * squares,
        "mse_top_k": jnp.stack(nearest, axis=-1) ** 2 + shared.noise_sd**2 / counts[:, None],
        "attended": attended,
    }


def weights_of(
    score: Float[Array, " n"], values: Float[Array, "B n"], temperatures: Float[Array, "rule G"]
) -> tuple[Array, Array, Array]:
    """``Σ w m`` (B, rule, G), ``Σ w²`` (rule, G) and attended keys (rule, G)."""
    rules: dict[str, Callable[[Array], Array]] = {
        "softmax": jax.nn.softmax,
        "relu gap": ReluGap(1.0),
        **{name: Entmax(nu) for name, nu in ENTMAX.items()},
    }
    means, squares, attended = [], [], []
    for name, own in zip(WEIGHED, temperatures, strict=True):
        weights = jax.vmap(rules[name])(score / own[:, None])
        means.append(values @ weights.T)
        squares.append(jnp.sum(weights**2, axis=1))
        attended.append(jnp.sum(weights > 0, axis=1).astype(score.dtype))
    return jnp.stack(means, axis=1), jnp.stack(squares), jnp.stack(attended)


def means_of_best(
    score: Float[Array, " n"], values: Float[Array, "B n"], counts: Int[Array, " K"]
) -> Float[Array, "B K"]:
    """Means over the k best keys, by one cumulative sum of sorted keys; NaN where k > n."""
    sums = jnp.cumsum(values[:, jnp.argsort(-score)], axis=1)
    n = len(score)
    return jnp.where(counts <= n, sums[:, jnp.minimum(counts, n) - 1] / counts, jnp.nan)


def on_sphere(
    key: Array,
    _: None,
    __: None,
    *,
    width: int,
    temperatures: Sequence[float],
    sizes: Sequence[int],
) -> dict[str, Array]:
    """Attended keys of a query on the unit sphere of R^width, keys uniform, dot products."""
    points = normal(key, (max(sizes) + 1, width), jnp.float32)
    points = points / jnp.linalg.norm(points, axis=1, keepdims=True)
    score = points[1:] @ points[0]
    counts = [
        [jnp.sum(Entmax(nu)(score[:n] / s) > 0) for n in sizes]
        for nu, s in zip(ENTMAX.values(), temperatures, strict=True)
    ]
    return {"attended_on_sphere": jnp.array(counts).astype(jnp.float32)}
