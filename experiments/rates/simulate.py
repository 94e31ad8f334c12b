"""Mean squared error of single and of averaged heads at given bandwidths."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sims.montecarlo import Draw, Replicates
from sims.problem import DESIGNS, TARGETS, Task, TrigonometricSeries, gaussian_queries
from sims.simulation import cosine
from sims.simulation import draw as training_set
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit

Settings = Mapping[str, Any]
"""The experiment's own settings, as in its file."""


class Estimators(NamedTuple):
    """M pooled estimators of targets on the line, the plane, …; one compiled shape for all widths.

    Attributes:
        series: T targets, arrays stacked.
        amplitudes: (M, J), of the target that an estimator is for.
        frames: of H heads, (H, d, d_k).
        bandwidths: (H, size).
        pool: weights of the heads, (M, H).
        queries: (Q, d).
        noise_sd: σ.
    """

    series: TrigonometricSeries
    amplitudes: np.ndarray
    frames: np.ndarray
    bandwidths: np.ndarray
    pool: np.ndarray
    queries: np.ndarray
    noise_sd: float


def units(experiment: Experiment) -> dict[str, Unit]:
    """A point a head width (a head for every β), and ``ensemble``."""
    settings = experiment.settings
    betas, sizes = settings["betas"], settings["sizes"]

    def unit(name: str, estimators: Estimators, **rows: list[float]) -> Unit:
        sampler = Replicates(
            partial(
                errors, name=name, sizes=tuple(sizes), precision=experiment.simulation.precision
            ),
            per_batch=partial(turns, targets=len(estimators.series.phase)),
            rows=True,
            constants=estimators,
            dims={name: (*rows, "size")},
            coords={**rows, "size": sizes},
        )
        return SampledUnit(sampler)

    points = {
        f"width {width}": unit("mse", single(settings, width), beta=betas)
        for width in settings["widths"]
    }
    counts = settings["simulated"]["ensemble"]["heads"]
    return points | {"ensemble": unit("mse_of_heads", averaged(settings), heads=counts)}


def turns(draw: Draw, targets: int) -> Int[np.ndarray, " R"]:
    """The target of every replicate: each in its turn."""
    return np.arange(draw.replicates) % targets


def single(settings: Settings, width: int) -> Estimators:
    """A head for every β, each with a bandwidth of its own."""
    # Unseen coordinates and empty columns of frames: one compiled shape for all widths.
    frame = np.diag(np.arange(max(settings["widths"])) < width).astype(float)
    every, count = amplitudes(settings), len(settings["betas"])
    bandwidths = settings["simulated"]["bandwidths"][width]
    return arranged(
        settings, width, every, np.stack([frame] * count), np.array(bandwidths), np.eye(count)
    )


def averaged(settings: Settings) -> Estimators:
    """Ensembles of every number of heads, for one β.

    Their frames stand one after another; no head is in two of them.
    """
    ensemble = settings["simulated"]["ensemble"]
    counts, place = ensemble["heads"], settings["betas"].index(ensemble["beta"])
    every = nuisance_frames(ensemble["relevant"], ensemble["width"], max(counts))
    return arranged(
        settings,
        ensemble["relevant"],
        np.stack([amplitudes(settings)[place]] * len(counts)),
        np.concatenate([every[:count] for count in counts]),
        np.repeat(np.array(ensemble["bandwidths"]), counts, axis=0),
        np.repeat(np.diag(1 / np.array(counts)), counts, axis=1),
    )


def amplitudes(settings: Settings) -> np.ndarray:
    """Of the targets of every β, (beta, J)."""
    return np.stack(
        [
            TARGETS["holder"](1, beta=beta, levels=settings["levels"]).amplitude
            for beta in settings["betas"]
        ]
    )


def arranged(
    settings: Settings,
    width: int,
    of: np.ndarray,
    frames: np.ndarray,
    bandwidths: np.ndarray,
    pool: np.ndarray,
) -> Estimators:
    """Estimators of targets of the first ``width`` coordinates; the others are padding."""
    count = min(settings["simulated"]["targets"], settings["targets"])
    series = [TARGETS["holder"](width, seed=t, levels=settings["levels"]) for t in range(count)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *series)
    pad = (0, frames.shape[1] - width)
    stacked = eqx.tree_at(
        lambda s: s.frequency, stacked, np.pad(stacked.frequency, ((0, 0), (0, 0), pad))
    )
    queries = np.pad(gaussian_queries(width, **settings["queries"]), ((0, 0), pad))
    bandwidths = bandwidths[:, : len(settings["sizes"])]
    return Estimators(stacked, of, frames, bandwidths, pool, queries, settings["noise_sd"])


def nuisance_frames(relevant: int, width: int, heads: int) -> Float[np.ndarray, "H d d_k"]:
    """Frames of heads that share the first d_0 axes and own the others."""
    extra = width - relevant
    axes = np.eye(relevant + heads * extra)
    own = np.split(axes[:, relevant:], heads, axis=1)
    return np.stack([np.hstack([axes[:, :relevant], block]) for block in own])


def errors(
    key: Array,
    shared: Estimators,
    turn: Array,
    *,
    name: str,
    sizes: tuple[int, ...],
    precision: str,
) -> dict[str, Float[Array, "M size"]]:
    """MSE over queries of one replicate, for M pooled estimators and every number of keys.

    Label noise is integrated out: ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` given the keys.
    A smaller size takes the first keys of the largest.

    Args:
        key: of the keys X ~ N(0, I).
        shared: the estimators.
        turn: number of the target.
        name: of the output.
        sizes: numbers of keys.
        precision: of weights and waves; angles are always in float64, since waves are short.
    """
    series, amplitudes, frames, bandwidths, pool, queries, noise_sd = shared
    design = DESIGNS["isotropic"](queries.shape[1])
    along = jnp.einsum("hdp,qd->qph", frames, queries).astype(precision)
    widths = (-0.5 / bandwidths**2).astype(precision)
    pool = pool.astype(precision)
    target = jax.tree.map(lambda leaf: leaf[turn], series)
    x, _ = training_set(Task(design, target, 1.0), key, max(sizes))

    def values(points: Array | np.ndarray) -> Array | np.ndarray:
        # Only the broken part of a cycle counts.
        cycles = (target.frequency @ points.T + target.phase[:, None]) / (2 * jnp.pi)
        return amplitudes.astype(precision) @ cosine((cycles - jnp.round(cycles)).astype(precision))

    at_keys, at_queries = values(x), values(queries)
    seen = jnp.einsum("hdp,nd->phn", frames, x).astype(precision)

    def at(item: tuple[Array, Array]) -> Array:
        query, truth = item
        distance = jnp.sum((seen - query[:, :, None]) ** 2, axis=0)
        out = []
        for j, n in enumerate(sizes):
            near = distance[:, :n]
            kernel = jnp.exp((near - near.min(1, keepdims=True)) * widths[:, j, None])
            weights = (pool / kernel.sum(1)) @ kernel
            gap = jnp.sum(weights * at_keys[:, :n], axis=1) - truth
            out.append(gap**2 + noise_sd**2 * jnp.sum(weights**2, axis=1))
        return jnp.stack(out, axis=1)

    # One query after another: the weights of one stay in the cache.
    return {name: jax.lax.map(at, (along, at_queries.T)).mean(0)}
