"""Layers trained together, head by head, and with identical heads: errors on new tasks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.montecarlo import Draw
from sims.simulation import with_quick_bits

from .layer import Layer, Task, at_shares, moments, start, train
from .problems import draw_problem

LAYERS = (
    "joint",
    "separate",
    "identical",
    "joint, common",
    "separate, common",
    "identical, sharp",
)
"""Trained on the layer's error; from the same start and on the same tasks on the mean of the heads'
errors; and on the layer's error from a start with equal heads. Then, at other temperatures, the
first two with every head at the n_eff/n of the third, and the third at the first's mean n_eff/n."""
PRIVATE_SHARES = {"random": 1.0, "aligned": 0.03}
"""Start to the share of a head's maps that others do not have: 0.03 are 10 degrees."""
MEASURED = ("mse", "alone", "variance", "covariance", "subspaces", "outputs", "selectivity", "zero")


def draw_task(
    draw: Draw, law: Mapping[str, Any], sizes: Sequence[tuple[int, int]], place: int
) -> Task:
    """The problem of a batch, among those of the size at that place of the sizes."""
    assert isinstance(draw.seed, int)
    fields = draw_problem(law, sizes, draw.seed, len(sizes) * draw.batch + place)
    values = (
        fields["additive"],
        fields["noise_sd"],
        fields["labels"] == "drawn",
        fields["rate"],
        PRIVATE_SHARES[fields["start"]],
        fields["maps"] == "trained",
    )
    return Task._make(map(np.float32, values))


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
    """What is measured of three layers trained from one seed, at two temperatures each.

    Returns:
        For each of :data:`LAYERS` the error ``mse``, the heads' mean error ``alone``, the
        ``variance`` and of it the ``covariance`` of different heads, the mean indices of the
        ``subspaces`` of W_K and of the correlations of the heads' ``outputs``, and the
        ``selectivity``, the mean n_eff/n of the heads; and ``zero``, the error of predicting 0.
    """
    for_start, for_training, for_tasks, for_shares = jax.random.split(with_quick_bits(key), 4)

    draw_start = partial(
        start, for_start, heads=heads, width=width, dimension=dimension, outputs=outputs
    )

    def train_from(first: Layer, apart: Array) -> Layer:
        return train(first, task, apart, for_training, n=n, **dict(training))

    def diversity_index(alike: Array) -> Array:
        return 1 - (alike.sum() - heads) / (heads * (heads - 1))

    def measure(layer: Layer) -> dict[str, Array]:
        errors, covariance, selectivity, zero = moments(
            layer, task, for_tasks, n=n, **dict(held_out)
        )
        spread = jnp.sqrt(jnp.diagonal(covariance))
        frames, _ = jnp.linalg.qr(layer.key.astype(jnp.float64))
        cosines = jnp.einsum("hdi,gdj->hgij", frames, frames)
        return {
            "mse": errors.mean(),
            "alone": jnp.trace(errors) / heads,
            "variance": covariance.mean(),
            "covariance": covariance.mean() - jnp.trace(covariance) / heads**2,
            "subspaces": diversity_index(jnp.sum(cosines**2, (2, 3)) / width),
            "outputs": diversity_index(covariance / (spread[:, None] * spread)),
            "selectivity": selectivity.mean(),
            "zero": zero,
        }

    def shares_of(layer: Layer) -> Array:
        few = dict(held_out) | {"tasks": 32}
        return moments(layer, task, for_shares, n=n, **few).selectivity

    drawn_share = task.private_share
    shares = jnp.stack([drawn_share, drawn_share, jnp.zeros_like(drawn_share)])
    starts = jax.vmap(draw_start)(shares)
    ends = jax.vmap(train_from)(starts, jnp.array([0, 1, 0], jnp.float32))
    common = jax.vmap(shares_of)(ends).mean(1)[jnp.array([2, 2, 0]), None]
    others = jax.vmap(partial(at_shares, shares_of=shares_of))(ends, jnp.tile(common, heads))
    return jax.vmap(measure)(jax.tree.map(lambda *both: jnp.concatenate(both), ends, others))
