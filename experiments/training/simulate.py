"""Layers trained together, head by head, and with identical heads: errors on new tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.montecarlo import Draw
from sims.simulation import with_quick_bits

from .layer import Layer, Task, moments, start, train
from .problems import draw_problem

LAYERS = ("start", "joint", "separate", "identical")
"""Before training; trained on the layer's error; from the same start and on the same tasks on the
mean of the heads' own errors; and on the layer's error from a start with equal heads."""
PRIVATE_SHARES = {"random": 1.0, "aligned": 0.03}
"""Start to the share of a head's maps that is its own: 0.03 are 10 degrees."""
MEASURED = ("mse", "alone", "variance", "covariance", "subspaces", "outputs", "selectivity")


def draw_task(
    draw: Draw, law: Mapping[str, Any], sizes: Sequence[tuple[int, int]], place: int
) -> Task:
    """The problem of a batch, among those of the size at that place of the sizes."""
    assert isinstance(draw.seed, int)
    fields = draw_problem(law, sizes, draw.seed, len(sizes) * draw.batch + place)
    known = {"private_share": PRIVATE_SHARES[fields["start"]], "free": fields["maps"] == "trained"}
    problem = fields | known | {"drawn": fields["labels"] == "drawn"}
    return Task._make(np.float32(problem[name]) for name in Task._fields)


def train_and_measure(
    key: Array,
    _: None,
    task: Task,
    *,
    heads: int,
    width: int,
    n: int,
    dimension: int,
    outputs: int,
    training: tuple[tuple[str, int], ...],
    held_out: tuple[tuple[str, int], ...],
) -> dict[str, Array]:
    """What is measured of three layers trained from one seed, and of their start.

    Returns:
        For each of :data:`LAYERS` the error ``mse``, the heads' own mean error ``alone``, the
        ``variance`` and of it the ``covariance`` of different heads, the mean indices of the
        ``subspaces`` of W_K and of the correlations of the heads' ``outputs``, and the
        ``selectivity``, the mean n_eff/n of the heads.
    """
    for_start, for_training, for_tasks = jax.random.split(with_quick_bits(key), 3)
    shares = jnp.stack([task.private_share, task.private_share, jnp.zeros_like(task.private_share)])
    starts = jax.vmap(lambda share: start(for_start, share, heads, width, dimension, outputs))(
        shares
    )
    ends = jax.vmap(lambda s, apart: train(s, task, apart, for_training, n=n, **dict(training)))(
        starts, jnp.array([0, 1, 0], jnp.float32)
    )

    def index(matrix: Array) -> Array:
        return 1 - (matrix.sum() - heads) / (heads * (heads - 1))

    def measured(layer: Layer) -> dict[str, Array]:
        errors, covariance, selectivity = moments(layer, task, for_tasks, n=n, **dict(held_out))
        diagonal = jnp.trace(covariance) / heads**2
        spread = jnp.sqrt(jnp.diagonal(covariance))
        frames, _ = jnp.linalg.qr(layer.key.astype(jnp.float64))
        cosines = jnp.einsum("hdi,gdj->hgij", frames, frames)
        values = (
            errors.mean(),
            jnp.trace(errors) / heads,
            covariance.mean(),
            covariance.mean() - diagonal,
            index(jnp.sum(cosines**2, (2, 3)) / width),
            index(covariance / (spread[:, None] * spread)),
            selectivity.mean(),
        )
        return dict(zip(MEASURED, values, strict=True))

    every = jax.tree.map(lambda s, e: jnp.concatenate([s[:1], e]), starts, ends)
    return jax.vmap(measured)(every)
