"""Mean squared error of single and of averaged heads at given bandwidths, batch by batch."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from sims.montecarlo import batch_keys, root_key
from sims.problem import DESIGNS, TARGETS, Task, gaussian_queries
from sims.simulation import draw


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """A dataset a head width (a head for every β), and ``ensemble``."""
    run = experiment.simulation_at(fidelity)
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    simulated, betas = settings["simulated"], settings["betas"]
    sizes, ensemble = settings["sizes"], simulated["ensemble"]
    keys = batch_keys(
        root_key(run.seed), np.arange(run.batches, dtype=np.uint32), run.replicates_per_batch
    )
    amplitudes = np.stack(
        [TARGETS["holder"](1, beta=beta, levels=settings["levels"]).amplitude for beta in betas]
    )

    def errors(width: int, frames: Any, bandwidths: Any, pool: Any, of: Any) -> np.ndarray:
        """(batch, estimator, size) for targets of the first ``width`` coordinates."""
        series = [
            TARGETS["holder"](width, seed=seed, levels=settings["levels"])
            for seed in range(min(simulated["targets"], settings["targets"]))
        ]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *series)
        pad = frames.shape[1] - width
        stacked = eqx.tree_at(
            lambda s: s.frequency, stacked, np.pad(stacked.frequency, ((0, 0), (0, 0), (0, pad)))
        )
        queries = np.pad(gaussian_queries(width, **settings["queries"]), ((0, 0), (0, pad)))
        found = batches(
            stacked, of, frames, bandwidths, pool, queries, keys,
            settings["noise_sd"], sizes=tuple(sizes), precision=run.precision,
        )  # fmt: skip
        return np.asarray(found)

    attrs = {"replicates": run.batches * run.replicates_per_batch}
    found = {}
    for width in settings["widths"]:
        # Unseen coordinates and empty columns of frames: one compiled shape for all widths.
        frame = np.diag(np.arange(max(settings["widths"])) < width).astype(float)
        bandwidths = np.array(simulated["bandwidths"][width])[:, : len(sizes)]
        mse = errors(
            width, np.stack([frame] * len(betas)), bandwidths, np.eye(len(betas)), amplitudes
        )
        found[f"width {width}"] = xr.Dataset(
            {"mse": (("batch", "beta", "size"), mse)}, {"beta": betas, "size": sizes}, attrs
        )
    # The frames of an ensemble of every size, one after another; no head is in two of them.
    counts = ensemble["heads"]
    every = nuisance_frames(ensemble["relevant"], ensemble["width"], max(counts))
    bandwidths = np.repeat(np.array(ensemble["bandwidths"])[:, : len(sizes)], counts, axis=0)
    mse = errors(
        ensemble["relevant"],
        np.concatenate([every[:count] for count in counts]),
        bandwidths,
        np.repeat(np.diag(1 / np.array(counts)), counts, axis=1),
        np.stack([amplitudes[betas.index(ensemble["beta"])]] * len(counts)),
    )
    found["ensemble"] = xr.Dataset(
        {"mse": (("batch", "heads", "size"), mse)}, {"heads": counts, "size": sizes}, attrs
    )
    return found


def nuisance_frames(relevant: int, width: int, heads: int) -> Any:
    """Frames of heads that share the first d_0 axes and own the others, (H, d, d_k)."""
    extra = width - relevant
    axes = np.eye(relevant + heads * extra)
    own = np.split(axes[:, relevant:], heads, axis=1)
    return np.stack([np.hstack([axes[:, :relevant], block]) for block in own])


@partial(jax.jit, static_argnames=("sizes", "precision"))
def batches(
    series: Any, amplitudes: Any, frames: Any, bandwidths: Any, pool: Any, queries: Any,
    keys: Any, noise_sd: Any, *, sizes: tuple[int, ...], precision: str = "float64",
) -> Any:  # fmt: skip
    """MSE over targets, keys and queries: (batch, M, size) for M pooled estimators.

    Label noise is integrated out: ``(Σ_i w_i m(X_i) − m(x))² + σ² Σ_i w_i²`` given the keys.
    A smaller size takes the first keys of the largest.

    Args:
        series: T targets, arrays stacked; replicate r of a batch has target r mod T.
        amplitudes: (M, J), of the target that an estimator is asked for.
        frames: (H, d, d_k).
        bandwidths: (H, size).
        pool: (M, H), weights of the heads.
        queries: (Q, d).
        keys: random keys (batch, R).
        noise_sd: σ.
        sizes: numbers of keys X ~ N(0, I).
        precision: of weights and waves; angles are always in float64, since waves are short.
    """
    design = DESIGNS["isotropic"](queries.shape[1])
    asked = jnp.einsum("hdp,qd->qph", frames, queries).astype(precision)
    widths = (-0.5 / jnp.asarray(bandwidths) ** 2).astype(precision)
    pool = jnp.asarray(pool, precision)

    def one(item: Any) -> Any:
        index, key = item
        target = jax.tree.map(lambda leaf: leaf[index % len(series.phase)], series)
        x, _ = draw(Task(design, target, 1.0), key, max(sizes))

        def values(points: Any) -> Any:
            # Only the broken part of a cycle counts, and the cosine of a small angle is cheap.
            cycles = (target.frequency @ points.T + target.phase[:, None]) / (2 * jnp.pi)
            angle = 2 * jnp.pi * (cycles - jnp.round(cycles))
            return jnp.asarray(amplitudes, precision) @ jnp.cos(angle.astype(precision))

        at_keys, at_queries = values(x), values(queries)
        seen = jnp.einsum("hdp,nd->phn", frames, x).astype(precision)

        def at(item: Any) -> Any:
            query, wanted = item
            distance = jnp.sum((seen - query[:, :, None]) ** 2, axis=0)
            out = []
            for j, n in enumerate(sizes):
                near = distance[:, :n]
                kernel = jnp.exp((near - near.min(1, keepdims=True)) * widths[:, j, None])
                weights = (pool / kernel.sum(1)) @ kernel
                gap = jnp.sum(weights * at_keys[:, :n], axis=1) - wanted
                out.append(gap**2 + noise_sd**2 * jnp.sum(weights**2, axis=1))
            return jnp.stack(out, axis=1)

        # One query after another: the weights of one stay in the cache.
        return jax.lax.map(at, (asked, at_queries.T)).mean(0)

    def local(keys: Any) -> Any:
        return jax.lax.map(lambda row: jax.lax.map(one, (jnp.arange(len(row)), row)).mean(0), keys)

    devices = jax.devices()
    count = max(k for k in range(1, len(devices) + 1) if not len(keys) % k)
    split = PartitionSpec("batch")
    mesh = Mesh(np.array(devices[:count]), ("batch",))
    return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)(keys)
