"""Theory's decomposition of the heads before and after learning."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sims.learning import Course, Stream, learned, overlap
from sims.problem import DESIGNS, Heads, Task
from sims.study.experiment import Experiment
from sims.theory import first_order_arrays

from .courses import courses

PARTS = ("squared_bias", "own", "cross", "heads_error", "n_eff")


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """One dataset a stream and variant, under the names of the units, along ``seed``."""
    return {
        name: of_seeds(experiment, course) for name, course in courses(experiment.settings).items()
    }


def of_seeds(experiment: Experiment, course: Course) -> xr.Dataset:
    """The :func:`decomposition` of all of its heads, ``<part>_before`` and ``<part>_after``.

    ``hdi_after`` is what the simulation has too: both roads learned the same heads.
    """
    run, sizes = experiment.simulation, experiment.settings["held_out"]
    every = [learned(course, run.seed, batch) for batch in range(run.batches)]
    data = {"hdi_after": ("seed", [1 - float(overlap(one.after.frames)) for one in every])}
    for state in ("before", "after"):
        rows = [
            decomposition(
                one.stream,
                one.rotation,
                *one.states[state],
                one.held_out[:2],
                float(course.n),
                course.noise_sd,
                **sizes,
            )
            for one in every
        ]
        columns = zip(PARTS, np.array(rows).T, strict=True)
        data |= {f"{part}_{state}": ("seed", values) for part, values in columns}
    return xr.Dataset(data)


@partial(jax.jit, static_argnames=("targets", "queries"))
def decomposition(
    stream: Stream,
    rotation: Array,
    heads: Heads,
    weights: Array,
    key: Array,
    n: float,
    noise_sd: float,
    *,
    targets: int,
    queries: int,
) -> Float[Array, "5"]:
    """Squared bias, ``Σ α_h² S_hh``, ``Σ_{h≠g} α_h α_g S_hg``, ``Σ α_h M_hh``, n_eff.

    Means over held-out tasks, each with queries of its own, with ``M_hh`` the error of a head
    alone. Weights need not sum to one: the bias of the ensemble is ``Σ_h α_h E f̂_h − m``.
    """
    for_target, for_query = key
    design = DESIGNS["isotropic"](rotation.shape[0])

    def one(index: Array) -> Array:
        target = stream.target(rotation, jax.random.fold_in(for_target, index))
        of_target = jax.random.fold_in(for_query, index)
        at = jax.random.normal(of_target, (queries, heads.dimension), jnp.float64)
        arrays = first_order_arrays(Task(design, target, noise_sd), heads, n, at)
        m = target(at)
        bias = (arrays.bias + m[:, None]) @ weights - m
        covariance = (arrays.signal_covariance + arrays.noise_covariance).mean(0)
        whole = weights @ covariance @ weights
        own = weights**2 @ jnp.diagonal(covariance)
        alone = jnp.mean(arrays.bias**2, axis=0) + jnp.diagonal(covariance)
        parts = (jnp.mean(bias**2), own, whole - own, weights @ alone)
        return jnp.stack([*parts, jnp.mean(arrays.n_eff)])

    return jax.lax.map(one, jnp.arange(targets)).mean(0)
