"""Errors of whole ensembles for every split of a budget, on a ladder of bandwidths."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from sims.problem import Heads, Task, TrigonometricSeries, redundant_views
from sims.simulation import draw, replicate_key, root_key


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """``points``: errors by batch, family of targets, n, budget, width and bandwidth.

    The rungs are the ladder's bandwidths and, last, ``b₁ d_k^{1/4}``. NaN where the width does not divide the
    budget. All splits share keys, targets and queries, so their differences are paired.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    run, asked = experiment.simulation_at(fidelity), settings["simulated"]
    budgets, largest = asked["budgets"], max(asked["budgets"])
    batch = jnp.arange(run.batches + (-run.batches) % jax.device_count())
    keys = jax.vmap(
        lambda b: jax.vmap(lambda r: replicate_key(root_key(run.seed), b, r))(
            jnp.arange(run.replicates_per_batch)
        )
    )(batch)
    columns = []
    for width in asked["widths"]:
        law, frames = redundant_views(
            settings["latent"], largest // width, width, settings["noise"]
        )
        bandwidths = jnp.array([*settings["ladder"], settings["bandwidth"] * width**0.25])
        sizes = tuple(d // width if d % width == 0 else 0 for d in budgets)
        columns.append(
            split_errors(
                law, frames, bandwidths, keys,
                sizes=sizes, n=tuple(asked["n"]), settings=_Frozen(settings),
            )[: run.batches]
        )  # fmt: skip
    dims = ("batch", "family", "n", "budget", "rung", "width")
    values = np.stack([np.asarray(c) for c in columns], axis=-1)
    return {
        "points": xr.Dataset(
            {"mse": (dims, values)},
            coords={"family": list(settings["families"]), "n": asked["n"], "budget": budgets,
                    "width": asked["widths"]},
            attrs={"replicates": run.batches * run.replicates_per_batch},
        )
    }  # fmt: skip


class _Frozen:
    """Settings as a static argument: equal ones share a compilation."""

    def __init__(self, settings: Any) -> None:
        at, relevance = settings["queries"], settings["relevance"]
        self.latent, self.waves = settings["latent"], settings["waves"]
        self.queries, self.query_scale = at["count"], at["scale"]
        self.alpha, self.lengthscale = relevance["alpha"], relevance["lengthscale"]
        self.noise_sd, self.families = settings["noise_sd"], tuple(settings["families"].values())

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and vars(self) == vars(other)


@partial(jax.jit, static_argnames=("sizes", "n", "settings"))
def split_errors(
    law: Any, frames: Any, bandwidths: Any, keys: Any, *, sizes: Any, n: Any, settings: _Frozen
) -> Any:
    """Mean errors (batch, family, n, budget, rung); keys are (batch, replicate).

    The label noise is integrated out: with pooled weights w̄ an error is ``(Σ w̄_i m(X_i) − m(x))² +
    σ² Σ w̄_i²``. Targets are waves √2 cos(ω·z + φ), averaged over φ: what is squared is complex.
    """
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    one = partial(_replicate, sizes=sizes, n=n, settings=settings)

    def local(law: Any, frames: Any, bandwidths: Any, keys: Any) -> Any:
        def batch(row: Any) -> Any:
            return jax.lax.map(lambda key: one(law, frames, bandwidths, key), row).mean(0)

        return jax.lax.map(batch, keys)

    shared, split = PartitionSpec(), PartitionSpec("batch")
    program = jax.shard_map(
        local, mesh=mesh, in_specs=(shared, shared, shared, split), out_specs=split, check_vma=False
    )
    return program(law, frames, bandwidths, keys)


def _replicate(
    law: Any, frames: Any, bandwidths: Any, key: Any, *, sizes: Any, n: Any, settings: _Frozen
) -> Any:
    latent = settings.latent
    task = Task(law, TrigonometricSeries([0.0], jnp.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x, _ = draw(task, key, max(n), jnp.float32)
    for_query, for_wave = jax.random.split(jax.random.fold_in(key, 2**31 - 1))
    shape = (settings.queries, latent)
    at = settings.query_scale * jax.random.normal(for_query, shape, jnp.float32)
    waves = spectrum(for_wave, settings)
    angles, there = x[:, :latent] @ waves.T, at @ waves.T
    values = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
    truths = jnp.concatenate([jnp.cos(there), jnp.sin(there)], axis=1)
    seen = jnp.einsum("hdp,nd->phn", frames.astype(jnp.float32), x)
    asked = jnp.einsum("hdp,qd->qph", frames[:, :latent].astype(jnp.float32), at)

    def of_query(item: Any) -> Any:
        query, truth = item
        distance = jnp.sum((seen - query[..., None]) ** 2, axis=0)

        def of_rung(bandwidth: Any) -> Any:
            out = []
            for count in n:
                near = distance[:, :count]
                weights = jnp.exp((near.min(1, keepdims=True) - near) / (2 * bandwidth**2))
                weights = weights / weights.sum(1, keepdims=True)
                for heads in sizes:
                    pooled = weights[:heads].mean(0) if heads else jnp.full(count, jnp.nan)
                    gap = (pooled @ values[:count] - truth).reshape(2, -1, settings.waves)
                    own = settings.noise_sd**2 * jnp.sum(pooled**2)
                    out.append(jnp.sum(gap**2, axis=0).mean(-1) + own)
            return jnp.stack(out, axis=-1)

        return jax.lax.map(of_rung, bandwidths.astype(jnp.float32))

    found = jax.lax.map(of_query, (asked, truths)).mean(0)  # (rung, family, n × budget)
    return jnp.moveaxis(found.reshape(*found.shape[:2], len(n), -1), 0, -1)


def spectrum(key: Any, settings: _Frozen) -> Any:
    """Frequencies (family × wave, r) of the targets; families share their normals."""
    for_normal, for_scale = jax.random.split(key)
    relevance = jnp.exp(-0.5 * settings.alpha * jnp.arange(settings.latent)) / settings.lengthscale
    base = relevance * jax.random.normal(for_normal, (settings.waves, settings.latent))
    rows = []
    for nu in settings.families:
        g = 1.0 if nu is None else jax.random.gamma(for_scale, nu, (settings.waves, 1)) / nu
        rows.append(base / jnp.sqrt(g))
    return jnp.concatenate(rows).astype(jnp.float32)
