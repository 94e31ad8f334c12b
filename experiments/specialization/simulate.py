"""Frames before and after learning, and their held-out error by drawn keys."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.learning import STREAMS, held_out_key, overlap, runs
from sims.simulation import nw_weights


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """One dataset a stream and variant; a batch is a seed."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    asked, found = settings["held_out"], {}
    for name, before, after, rotation in runs(settings):
        stream = STREAMS[name.split(",")[0]](settings["dimension"])
        errors = {
            state: [
                _error(
                    stream, rotation[s], heads, weights[s], held_out_key(settings, s),
                    settings["n"], settings["noise_sd"], **asked,
                )
                for s, heads in enumerate(each)
            ]
            for state, (each, weights) in {
                "before": before,
                "after": (after[0], after[1].weights),
            }.items()
        }  # fmt: skip
        learned = after[1]
        found[name] = xr.Dataset(
            {
                "mse_before": ("batch", np.array(errors["before"])),
                "mse_after": ("batch", np.array(errors["after"])),
                "hdi_after": ("batch", 1 - np.asarray(jax.vmap(overlap)(learned.frames))),
                "hdi": (("batch", "step"), 1 - np.asarray(learned.overlap)),
                "weights": (("batch", "head"), np.asarray(learned.weights)),
            },
            attrs={"replicates": settings["seeds"]["count"]},
        )
    return found


@partial(jax.jit, static_argnames=("n", "targets", "queries", "replicates"))
def _error(
    stream: Any, rotation: Any, heads: Any, weights: Any, key: Any, n: int, noise_sd: float,
    *, targets: int, queries: int, replicates: int,
) -> Any:  # fmt: skip
    """Mean of (f̄(x) − m(x))² over held-out targets, queries and keys.

    The labels' noise is integrated out: ``(Σ_h α_h g_h − m)² + σ² Σ_i (Σ_h α_h w_hi)²``.
    """
    for_target, for_query, for_data = key
    at = jax.random.normal(for_query, (queries, heads.dimension), jnp.float64)

    def one(index: Any) -> Any:
        target = stream.target(rotation, jax.random.fold_in(for_target, index // replicates))
        x = jax.random.normal(
            jax.random.fold_in(for_data, index), (n, heads.dimension), jnp.float64
        )
        pooled = jax.vmap(lambda q: weights @ nw_weights(heads, q, x))(at)
        variance = noise_sd**2 * jnp.sum(pooled**2, axis=1)
        return jnp.mean((pooled @ target(x) - target(at)) ** 2 + variance)

    return jax.lax.map(one, jnp.arange(targets * replicates)).mean()
