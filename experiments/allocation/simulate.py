"""Whole splits of some regimes by simulation: one head and a pair give every number of heads."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from sims.base.arrays import fill_up
from sims.montecarlo import Draw, Replicates
from sims.problem import TrigonometricSeries
from sims.problem.normals import normal

from .comparison import drawn_curve
from .grids import LATENT, splits
from .problems import Drawn, draw_task


class Splits(NamedTuple):
    """The whole splits of a regime as arrays.

    Attributes:
        sees: 1 where the first or second head of a split sees a coordinate, (S, 2, LATENT).
        precision: 1/b², (S,).
        distance: 1 where scores are distances (Gaussian), 0 where they are products (softmax).
        view_noise: standard deviation of the noise through which a head sees a coordinate.
        noise_sd: label noise.
    """

    sees: np.ndarray
    precision: np.ndarray
    distance: np.ndarray
    view_noise: np.ndarray
    noise_sd: np.ndarray


def sampler(drawn: Drawn) -> Replicates:
    """The whole splits of a regime; a replicate draws a target, its queries and all keys.

    ``single`` is the error of one head and ``pair`` the mean product of two heads' errors.
    """
    return Replicates(
        partial(replicate, keys=drawn["keys"]),
        constants=arrays_of(drawn),
        per_batch=partial(draw_tasks, drawn),
        rows=True,
        dims={"single": "split", "pair": "split"},
    )


def arrays_of(drawn: Drawn) -> Splits:
    """The whole splits of a regime at the bandwidths of its rule."""
    widths = splits(drawn["budget"])
    bandwidth = drawn_curve(drawn)[0].bandwidth[0, widths - 1]
    # The second head starts where the first ends, unless both see the same coordinates.
    apart = (drawn["decay"] == "even") & (widths < drawn["budget"])
    starts = np.stack([0 * widths, np.where(apart, widths, 0)], axis=1)[..., None]
    places = np.arange(LATENT) - starts
    sees = (places >= 0) & (places < widths[:, None, None])
    scores = drawn["kernel"] == "gaussian"
    leaves = (sees, bandwidth**-2.0, scores, drawn["view_noise"], drawn["noise_sd"])
    return Splits(*(np.asarray(leaf, np.float32) for leaf in leaves))


def draw_tasks(drawn: Drawn, draw: Draw) -> tuple[TrigonometricSeries, np.ndarray]:
    """A target and its queries for each replicate of a batch, in LATENT coordinates."""
    tasks = []
    for number in range(draw.replicates):
        target, queries = draw_task(drawn, draw.draw(draw.batch, number).rng())
        tasks.append((target.padded(LATENT - target.dimension), fill_up(queries, LATENT)))
    return jax.tree.map(lambda *leaves: np.stack(leaves).astype(np.float32), *tasks)


def replicate(
    key: Array, regime: Splits, task: tuple[TrigonometricSeries, Array], *, keys: int
) -> dict[str, Float[Array, " S"]]:
    """Errors of one head and products of two heads' errors, label noise integrated out."""
    target, queries = task
    key_of_keys, key_of_views = jax.random.split(key)
    latent = normal(key_of_keys, (keys, LATENT), jnp.float32)
    view_noise = normal(key_of_views, (2, keys, LATENT), jnp.float32)
    views = latent + regime.view_noise * view_noise
    gaps = target(latent) - target(queries)[:, None]

    def products(split: tuple[Array, Array]) -> tuple[Array, Array]:
        sees, precision = split
        inner = jnp.einsum("qj,hj,hnj->hqn", queries, sees, views)
        square = jnp.einsum("hj,hnj->hn", sees, views**2)[:, None]
        weights = jax.nn.softmax(precision * (inner - 0.5 * regime.distance * square))
        bias = jnp.einsum("hqn,qn->hq", weights, gaps)
        noise = jnp.einsum("hqn,gqn->hg", weights, weights)
        product = (bias @ bias.T + regime.noise_sd**2 * noise) / len(queries)
        return jnp.trace(product) / 2, product[0, 1]

    single, pair = lax.map(products, (regime.sees, regime.precision))
    return {"single": single, "pair": pair}
