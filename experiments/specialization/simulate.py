"""Frames before and after learning, and their held-out error by drawn keys."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.learning import STREAMS, held_out_key, overlap, runs
from sims.simulation import nw_weights

PARTS = ("mse", "own", "cross")


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """One dataset a stream and variant; a batch is a seed."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    asked, found = settings["held_out"], {}
    for name, before, after, rotation in runs(settings):
        stream = STREAMS[name.split(",")[0]](settings["dimension"])
        parts = {
            state: [
                held_out(
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
                **{
                    f"{part}_{state}": ("batch", values)
                    for state, rows in parts.items()
                    for part, values in zip(PARTS, np.array(rows).T, strict=True)
                },
                "hdi_after": ("batch", 1 - np.asarray(jax.vmap(overlap)(learned.frames))),
                "hdi": (("batch", "step"), 1 - np.asarray(learned.overlap)),
                "weights": (("batch", "head"), np.asarray(learned.weights)),
            },
            attrs={"replicates": settings["seeds"]["count"]},
        )
    return found


@partial(jax.jit, static_argnames=("n", "targets", "queries", "replicates"))
def held_out(
    stream: Any, rotation: Any, heads: Any, weights: Any, key: Any, n: int, noise_sd: float,
    *, targets: int, queries: int, replicates: int,
) -> Any:  # fmt: skip
    """Mean of (f̄(x) − m(x))² over held-out targets, queries and keys; own and cross covariance.

    The labels' noise is integrated out: with ``N_hg = σ² Σ_i w_hi w_gi`` the error is
    ``(Σ_h α_h g_h − m)² + αᵀNα``. The heads' covariance S is the sample covariance of g over the
    ``replicates`` draws of keys at one target and query, plus the mean of N; then own is
    ``Σ_h α_h² S_hh`` and cross ``Σ_{h≠g} α_h α_g S_hg``. All three are unbiased.
    """
    for_target, for_query, for_data = key
    at = jax.random.normal(for_query, (queries, heads.dimension), jnp.float64)

    def one_target(index: Any) -> Any:
        target = stream.target(rotation, jax.random.fold_in(for_target, index))

        def one(replicate: Any) -> Any:
            x = jax.random.normal(
                jax.random.fold_in(for_data, index * replicates + replicate),
                (n, heads.dimension),
                jnp.float64,
            )
            w = jax.vmap(lambda q: nw_weights(heads, q, x))(at)
            return w @ target(x), noise_sd**2 * jnp.einsum("qhn,qgn->hg", w, w) / queries

        signal, noise = jax.lax.map(one, jnp.arange(replicates))
        error = jnp.mean((signal @ weights - target(at)) ** 2) + weights @ noise.mean(0) @ weights
        centred = signal - signal.mean(0)
        sample = jnp.einsum("rqh,rqg->hg", centred, centred) / ((replicates - 1) * queries)
        covariance = sample + noise.mean(0)
        own = weights**2 @ jnp.diagonal(covariance)
        return jnp.stack([error, own, weights @ covariance @ weights - own])

    return jax.lax.map(one_target, jnp.arange(targets)).mean(0)
