"""Errors of whole ensembles for every split of a budget, on a ladder of bandwidths."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.stats import gamma, norm, qmc

from sims.montecarlo import Draw, Replicates
from sims.problem import GaussianDesign, Task, TrigonometricSeries, redundant_views
from sims.simulation import draw as training_set
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit

Settings = Mapping[str, Any]
"""The experiment's own settings, as in its file."""


class Splits(NamedTuple):
    """Every split of the largest budget, padded to one size: D coordinates, D heads.

    Attributes:
        frames: the heads' frames beside each other, (width, d, D).
        members: 1 where a coordinate is one of the head's, (width, D heads, D coordinates).
        pool: weights of the heads in the ensemble of a budget, (width, budget, D heads); NaN where
            the width does not divide it.
        bandwidths: (width, rung).
    """

    frames: np.ndarray
    members: np.ndarray
    pool: np.ndarray
    bandwidths: np.ndarray


def units(experiment: Experiment) -> dict[str, Unit]:
    """``splits``: errors by width, bandwidth, family of targets, n and budget.

    The rungs are the ladder's bandwidths and, last, ``b₁ d_k^{1/4}``. All splits share keys,
    targets and queries, so their differences are paired.
    """
    settings = experiment.settings
    grid, families = settings["simulated"], settings["families"]
    sampler = Replicates(
        partial(split_errors, n=tuple(grid["n"]), families=len(families)),
        per_batch=partial(drawn, settings=settings),
        rows=True,
        constants=(*arranged(settings), np.float32(settings["noise_sd"])),
        dims={"mse": ("width", "rung", "family", "n", "budget")},
        coords={"family": list(families), "n": grid["n"], "budget": grid["budgets"],
                "width": grid["widths"]},
    )  # fmt: skip
    return {"splits": SampledUnit(sampler)}


def arranged(settings: Settings) -> tuple[GaussianDesign, Splits]:
    """The law of the keys, which all splits share, and the splits."""
    budgets, widths = (np.array(settings["simulated"][k]) for k in ("budgets", "widths"))
    largest, rows = budgets.max(), []
    for width in widths.tolist():
        law, frames = redundant_views(
            settings["latent"], int(largest) // width, width, settings["noise"]
        )
        head = np.arange(largest)
        sizes = budgets[:, None] / width
        pool = np.where(budgets[:, None] % width, np.nan, (head < sizes) / sizes)
        rows.append(
            Splits(
                np.hstack(list(np.asarray(frames))),
                head[:, None] == head // width,
                pool,
                np.array([*settings["ladder"], settings["bandwidth"] * width**0.25]),
            )
        )
    return law, Splits(*(np.stack(part).astype(np.float32) for part in zip(*rows, strict=True)))


def drawn(draw: Draw, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Of a batch: queries (replicate, Q, r), targets' frequencies (…, Q, family × wave, r).

    Both come from scrambled Sobol sequences: every point has its law, batches are iid, and a batch
    covers both laws evenly. Every query has waves of its own: more targets for the same work.
    """
    latent, count, waves = settings["latent"], settings["queries"]["count"], settings["waves"]
    size, rng = draw.replicates * count, draw.rng()
    at = settings["queries"]["scale"] * norm.ppf(_sobol(latent, size, rng))
    frequencies = spectrum(_sobol(latent + 1, size * waves, rng), settings)
    by_query = np.reshape(frequencies, (-1, draw.replicates, count, waves, latent))
    return (
        at.reshape(draw.replicates, count, latent).astype(np.float32),
        np.moveaxis(by_query, 0, 2).reshape(draw.replicates, count, -1, latent).astype(np.float32),
    )


def _sobol(dimension: int, size: int, rng: np.random.Generator) -> np.ndarray:
    # A point may be exactly 0, where quantiles are infinite.
    return np.clip(qmc.Sobol(dimension, rng=rng).random(size), 1e-12, 1 - 1e-12)


def spectrum(uniform: np.ndarray, settings: Settings) -> np.ndarray:
    """Frequencies (family, wave, r) of the targets from uniform numbers (wave, r + 1).

    Normal, or Student-t with 2ν degrees of freedom: the same normals over ``√g``,
    ``g ~ Gamma(ν, rate ν)``.
    """
    alpha, length = (settings["relevance"][k] for k in ("alpha", "lengthscale"))
    relevance = np.exp(-0.5 * alpha * np.arange(settings["latent"])) / length
    base = relevance * norm.ppf(uniform[:, :-1])
    return np.stack(
        [
            base if nu is None else base / np.sqrt(gamma.ppf(uniform[:, -1:], nu, scale=1 / nu))
            for nu in settings["families"].values()
        ]
    )


def split_errors(
    key: Array,
    shared: tuple[GaussianDesign, Splits, Array],
    drawn: tuple[Array, Array],
    *,
    n: tuple[int, ...],
    families: int,
) -> dict[str, Array]:
    """Errors (width, rung, family, n, budget) of one replicate.

    The label noise is integrated out: with pooled weights w̄ an error is ``(Σ w̄_i m(X_i) − m(x))² +
    σ² Σ w̄_i²``. Targets are waves √2 cos(ω·z + φ), averaged over φ: what is squared is complex.

    Args:
        key: of the keys X.
        shared: the keys' law, the splits, and σ.
        drawn: queries (Q, r) and frequencies (Q, family × wave, r).
        n: numbers of keys; fewer are the first of the most.
        families: number of families of targets.
    """
    (law, splits, noise_sd), (at, waves) = shared, drawn
    latent = at.shape[1]
    task = Task(law, TrigonometricSeries([0.0], jnp.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x, _ = training_set(task, key, max(n), jnp.float32)
    angles = jnp.einsum("nd,qwd->qnw", x[:, :latent], waves)
    there = jnp.einsum("qd,qwd->qw", at, waves)
    values = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=2)
    truths = jnp.concatenate([jnp.cos(there), jnp.sin(there)], axis=1)

    def of_split(split: Splits) -> Array:
        seen, queries = split.frames.T @ x.T, at @ split.frames[:latent]

        def of_query(item: tuple[Array, Array, Array]) -> Array:
            query, value, truth = item
            distance = split.members @ (seen - query[:, None]) ** 2

            def of_rung(bandwidth: Array) -> Array:
                out = []
                for count in n:
                    near = distance[:, :count]
                    weights = jnp.exp((near.min(1, keepdims=True) - near) / (2 * bandwidth**2))
                    pooled = (split.pool / weights.sum(1)) @ weights
                    gap = (pooled @ value[:count] - truth).reshape(len(pooled), 2, -1)
                    square = jnp.sum(gap**2, axis=1).reshape(len(pooled), families, -1)
                    own = noise_sd**2 * jnp.sum(pooled**2, axis=1)
                    out.append(square.mean(-1).T + own)
                return jnp.stack(out, axis=1)

            return jax.lax.map(of_rung, split.bandwidths)

        return jax.lax.map(of_query, (queries, values, truths)).mean(0)

    return {"mse": jax.lax.map(of_split, splits)}
