"""Errors of whole ensembles for every split of a budget, on a ladder of bandwidths."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec
from scipy.stats import gamma, norm, qmc

from sims.montecarlo import replicate_key, root_key
from sims.problem import Task, TrigonometricSeries, redundant_views
from sims.simulation import draw


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


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """``splits``: errors by batch, family of targets, n, budget, width and bandwidth.

    The rungs are the ladder's bandwidths and, last, ``b₁ d_k^{1/4}``. All splits share keys,
    targets and queries, so their differences are paired.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    run, asked = experiment.simulation_at(fidelity), settings["simulated"]
    law, splits = arranged(settings)
    drawn = draws(run.seed, run.batches + -run.batches % jax.device_count(),
                  run.replicates_per_batch, settings)  # fmt: skip
    values = split_errors(
        law, splits, *drawn, n=tuple(asked["n"]), noise_sd=settings["noise_sd"],
        families=len(settings["families"]),
    )  # fmt: skip
    dims = ("batch", "width", "rung", "family", "n", "budget")
    return {
        "splits": xr.Dataset(
            {"mse": (dims, np.asarray(values)[: run.batches])},
            coords={"family": list(settings["families"]), "n": asked["n"],
                    "budget": asked["budgets"], "width": asked["widths"]},
            attrs={"replicates": run.batches * run.replicates_per_batch},
        )
    }  # fmt: skip


def arranged(settings: Any) -> tuple[Any, Splits]:
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


def draws(seed: int, batches: int, replicates: int, settings: Any) -> tuple[Any, Any, Any]:
    """Keys (batch, replicate), queries (…, Q, r), targets' frequencies (…, Q, family × wave, r).

    Within a batch queries and frequencies come from scrambled Sobol sequences: every point has its
    law, batches are iid, and a batch covers both laws evenly. Every query has waves of its own:
    more targets for the same work.
    """
    root = root_key(seed)
    keys = [[replicate_key(root, b, r) for r in range(replicates)] for b in range(batches)]
    latent, count, waves = settings["latent"], settings["queries"]["count"], settings["waves"]
    at, frequencies = [], []
    for batch in range(batches):
        rng = np.random.default_rng([seed, batch])
        uniform = _sobol(latent, replicates * count, rng)
        at.append(settings["queries"]["scale"] * norm.ppf(uniform))
        frequencies.append(spectrum(_sobol(latent + 1, replicates * count * waves, rng), settings))
    shape = (batches, replicates, count)
    return (
        jnp.stack([jnp.stack(row) for row in keys]),
        np.reshape(at, (*shape, latent)).astype(np.float32),
        np.moveaxis(np.reshape(frequencies, (batches, -1, *shape[1:], waves, latent)), 1, 3)
        .reshape(*shape, -1, latent).astype(np.float32),
    )  # fmt: skip


def _sobol(dimension: int, size: int, rng: np.random.Generator) -> np.ndarray:
    # A point may be exactly 0, where quantiles are infinite.
    return np.clip(qmc.Sobol(dimension, rng=rng).random(size), 1e-12, 1 - 1e-12)


def spectrum(uniform: np.ndarray, settings: Any) -> np.ndarray:
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


@partial(jax.jit, static_argnames=("n", "families"))
def split_errors(
    law: Any, splits: Splits, keys: Any, queries: Any, waves: Any, *, n: Any, noise_sd: Any,
    families: int,
) -> Any:  # fmt: skip
    """Mean errors (batch, width, rung, family, n, budget) from the :func:`draws`.

    The label noise is integrated out: with pooled weights w̄ an error is ``(Σ w̄_i m(X_i) − m(x))² +
    σ² Σ w̄_i²``. Targets are waves √2 cos(ω·z + φ), averaged over φ: what is squared is complex.
    """
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    one = partial(_replicate, n=n, families=families)

    def local(law: Any, splits: Splits, noise_sd: Any, *drawn: Any) -> Any:
        def batch(rows: Any) -> Any:
            return jax.lax.map(lambda row: one(law, splits, noise_sd, *row), rows).mean(0)

        return jax.lax.map(batch, drawn)

    shared, split = PartitionSpec(), PartitionSpec("batch")
    program = jax.shard_map(
        local, mesh=mesh, in_specs=(shared,) * 3 + (split,) * 3, out_specs=split, check_vma=False
    )
    return program(law, splits, jnp.float32(noise_sd), keys, queries, waves)


def _replicate(
    law: Any, splits: Splits, noise_sd: Any, key: Any, at: Any, waves: Any, *, n: Any, families: int
) -> Any:
    latent = at.shape[1]
    task = Task(law, TrigonometricSeries([0.0], jnp.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x, _ = draw(task, key, max(n), jnp.float32)
    angles = jnp.einsum("nd,qwd->qnw", x[:, :latent], waves)
    there = jnp.einsum("qd,qwd->qw", at, waves)
    values = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=2)
    truths = jnp.concatenate([jnp.cos(there), jnp.sin(there)], axis=1)

    def of_split(split: Splits) -> Any:
        seen, asked = split.frames.T @ x.T, at @ split.frames[:latent]

        def of_query(item: Any) -> Any:
            query, value, truth = item
            distance = split.members @ (seen - query[:, None]) ** 2

            def of_rung(bandwidth: Any) -> Any:
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

        return jax.lax.map(of_query, (asked, values, truths)).mean(0)

    return jax.lax.map(of_split, splits)
