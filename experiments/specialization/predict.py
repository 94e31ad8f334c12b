"""Theory's decomposition of the heads before and after learning."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims.learning import STREAMS, held_out_key, overlap, runs
from sims.problem import DESIGNS, Task
from sims.theory import first_order_arrays

PARTS = ("squared_bias", "own", "cross", "n_eff")


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """One dataset a stream and variant, under the names that ``simulate`` gives them."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    asked, found = settings["held_out"], {}
    for name, before, after, rotation in runs(settings):
        stream = STREAMS[name.split(",")[0]](settings["dimension"])
        # Beside the simulation's: both roads learned the same heads, or every comparison is void.
        data = {"hdi_after": ("seed", 1 - np.asarray(jax.vmap(overlap)(after[1].frames)))}
        for state, (each, weights) in {
            "before": before,
            "after": (after[0], after[1].weights),
        }.items():
            rows = [
                decomposition(
                    stream, rotation[s], heads, weights[s], held_out_key(settings, s)[:2],
                    float(settings["n"]), settings["noise_sd"], asked["targets"], asked["queries"],
                )
                for s, heads in enumerate(each)
            ]  # fmt: skip
            for part, values in zip(PARTS, np.array(rows).T, strict=True):
                data[f"{part}_{state}"] = ("seed", values)
        found[name] = xr.Dataset(data)
    return found


@partial(jax.jit, static_argnames=("targets", "queries"))
def decomposition(
    stream: Any, rotation: Any, heads: Any, weights: Any, key: Any, n: float, noise_sd: float,
    targets: int, queries: int,
) -> Any:  # fmt: skip
    """Squared bias, ``Σ α_h² S_hh``, ``Σ_{h≠g} α_h α_g S_hg`` and n_eff, means over held-out tasks.

    Weights need not sum to one: the bias of the ensemble is ``Σ_h α_h E f̂_h − m``.
    """
    for_target, for_query = key
    design = DESIGNS["isotropic"](rotation.shape[0])
    at = jax.random.normal(for_query, (queries, heads.dimension), jnp.float64)

    def one(index: Any) -> Any:
        target = stream.target(rotation, jax.random.fold_in(for_target, index))
        arrays = first_order_arrays(Task(design, target, noise_sd), heads, n, at)
        m = target(at)
        bias = (arrays.bias + m[:, None]) @ weights - m
        covariance = (arrays.signal_covariance + arrays.noise_covariance).mean(0)
        whole = weights @ covariance @ weights
        own = weights**2 @ jnp.diagonal(covariance)
        return jnp.stack([jnp.mean(bias**2), own, whole - own, jnp.mean(arrays.n_eff)])

    return jax.lax.map(one, jnp.arange(targets)).mean(0)
