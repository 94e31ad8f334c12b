"""Errors of whole ensembles for every split of a budget, on a ladder of bandwidths."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from sims.problem import Heads, Task, TrigonometricSeries, redundant_views
from sims.simulation import draw, replicate_key, root_key


class Splits(NamedTuple):
    """Every split of the largest budget, padded to one size: D coordinates, D heads.

    Attributes:
        frames: the heads' frames beside each other, (width, d, D).
        members: 1 where a coordinate is one of the head's, (width, D heads, D coordinates).
        pool: weights of the heads in the ensemble of a budget, (width, budget, D heads); NaN where the
            width does not divide it.
        bandwidths: (width, rung).
    """

    frames: np.ndarray
    members: np.ndarray
    pool: np.ndarray
    bandwidths: np.ndarray


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """``splits``: errors by batch, family of targets, n, budget, width and bandwidth.

    The rungs are the ladder's bandwidths and, last, ``b₁ d_k^{1/4}``. All splits share keys, targets and
    queries, so their differences are paired.
    """
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    run, asked = experiment.simulation_at(fidelity), settings["simulated"]
    law, splits = arranged(settings)
    batch = jnp.arange(run.batches + -run.batches % jax.device_count())
    keys = jax.vmap(
        lambda b: jax.vmap(lambda r: replicate_key(root_key(run.seed), b, r))(
            jnp.arange(run.replicates_per_batch)
        )
    )(batch)
    values = split_errors(law, splits, keys, n=tuple(asked["n"]), settings=_Frozen(settings))
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
                np.hstack(np.asarray(frames)),
                head[:, None] == head // width,
                pool,
                np.array([*settings["ladder"], settings["bandwidth"] * width**0.25]),
            )
        )
    return law, Splits(*(np.stack(part).astype(np.float32) for part in zip(*rows, strict=True)))


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


@partial(jax.jit, static_argnames=("n", "settings"))
def split_errors(law: Any, splits: Splits, keys: Any, *, n: Any, settings: _Frozen) -> Any:
    """Mean errors (batch, width, rung, family, n, budget); keys are (batch, replicate).

    The label noise is integrated out: with pooled weights w̄ an error is ``(Σ w̄_i m(X_i) − m(x))² +
    σ² Σ w̄_i²``. Targets are waves √2 cos(ω·z + φ), averaged over φ: what is squared is complex.
    """
    mesh = Mesh(np.array(jax.devices()), ("batch",))

    def local(law: Any, splits: Splits, keys: Any) -> Any:
        def batch(row: Any) -> Any:
            one = partial(_replicate, law, splits, n=n, settings=settings)
            return jax.lax.map(one, row).mean(0)

        return jax.lax.map(batch, keys)

    shared, split = PartitionSpec(), PartitionSpec("batch")
    program = jax.shard_map(
        local, mesh=mesh, in_specs=(shared, shared, split), out_specs=split, check_vma=False
    )
    return program(law, splits, keys)


def _replicate(law: Any, splits: Splits, key: Any, *, n: Any, settings: _Frozen) -> Any:
    latent = settings.latent
    task = Task(law, TrigonometricSeries([0.0], jnp.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x, _ = draw(task, key, max(n), jnp.float32)
    for_query, for_wave = jax.random.split(jax.random.fold_in(key, 2**31 - 1))
    shape = (settings.queries, latent)
    at = settings.query_scale * jax.random.normal(for_query, shape, jnp.float32)
    # Every query has waves of its own: more targets for the same work.
    waves = jax.vmap(lambda k: spectrum(k, settings))(
        jax.random.split(for_wave, settings.queries)
    )
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
                    square = jnp.sum(gap**2, axis=1).reshape(len(pooled), -1, settings.waves)
                    own = settings.noise_sd**2 * jnp.sum(pooled**2, axis=1)
                    out.append(square.mean(-1).T + own)
                return jnp.stack(out, axis=1)

            return jax.lax.map(of_rung, split.bandwidths)

        return jax.lax.map(of_query, (asked, values, truths)).mean(0)

    return jax.lax.map(of_split, splits)


def spectrum(key: Any, settings: _Frozen) -> Any:
    """Frequencies (family × wave, r) of the targets; families share their normals.

    Student-t with 2ν degrees of freedom, an integer here: normals over ``√(χ²/2ν)``.
    """
    for_normal, for_scale = jax.random.split(key)
    relevance = jnp.exp(-0.5 * settings.alpha * jnp.arange(settings.latent)) / settings.lengthscale
    shape = (settings.waves, settings.latent)
    base = relevance * jax.random.normal(for_normal, shape, jnp.float32)
    rows = []
    for nu in settings.families:
        freedom = 1 if nu is None else round(2 * nu)
        normals = jax.random.normal(for_scale, (settings.waves, freedom), jnp.float32)
        scale = 1.0 if nu is None else jnp.sqrt(jnp.mean(normals**2, axis=1, keepdims=True))
        rows.append(base / scale)
    return jnp.concatenate(rows).astype(jnp.float32)
