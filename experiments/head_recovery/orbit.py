"""Nadaraya–Watson heads along a gauge orbit: ``f̄ + s(f_h − f̄)``, one ensemble for every s."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.montecarlo import Replicates
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import draw as training_set
from sims.simulation import nw_weights


def orbit(p: Mapping[str, Any]) -> Replicates:
    """Mean products of heads' estimates and errors at every s, and the ensemble's squared error."""
    d = p["d"]
    target = TARGETS["matern"](d, seed=p["seed"], nu=1.5)
    task = Task(DESIGNS["isotropic"](d), target, p["noise_sd"])
    frames = FRAMES["haar"](d, p["heads"], p["width"], seed=p["seed"])
    queries = p["scale"] * np.random.default_rng(p["seed"]).normal(size=(p["queries"], d))
    factors = np.array(p["factors"])
    return Replicates(
        partial(_orbit, n=p["n"]),
        constants=(task, Heads(frames, "gaussian", p["bandwidth"]), queries, factors),
        dims={
            "first": ("factor", "query", "head"),
            "second": ("factor", "head", "head2"),
            "products": ("factor", "head", "head2"),
            "error": ("factor",),
        },
        coords={"factor": factors},
    )


def _orbit(
    key: Array, shared: tuple[Task, Heads, Array, Array], _: None, *, n: int
) -> dict[str, Array]:
    task, heads, queries, factors = shared
    x, unit = training_set(task, key, n)
    labels = task.target(x) + task.noise_sd * unit
    estimates = jax.lax.map(lambda q: nw_weights(heads, q, x) @ labels, queries)
    mean = estimates.mean(1, keepdims=True)
    # δ_h = (s − 1)(f_h − f̄) sums to 0 over heads.
    moved = estimates + (factors[:, None, None] - 1) * (estimates - mean)
    errors = moved - task.target(queries)[:, None]
    count = len(queries)
    return {
        "first": moved,
        "second": jnp.einsum("sqh,sqg->shg", moved, moved) / count,
        "products": jnp.einsum("sqh,sqg->shg", errors, errors) / count,
        "error": jnp.mean(errors.mean(2) ** 2, axis=1),
    }
