"""Shared label noise of three heads by simulation."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sims.montecarlo import Replicates
from sims.problem import Heads
from sims.simulation import nw_weights

from .problems import Problem

QUERIES = 4
"""Queries of a replicate."""


def sampler(problem: Problem) -> Replicates:
    """The heads' shared noise at drawn queries; ``angle`` is as drawn, then half of that."""
    replicate = partial(shared_noise, n=problem["keys"], queries=QUERIES)
    constants = problem.heads, jnp.asarray(problem["reach"])
    return Replicates(replicate, constants=constants, dims={"pair": ("angle",)})


def shared_noise(
    key: Array, shared: tuple[Heads, Array], _: None, *, n: int, queries: int
) -> dict[str, Array]:
    """Σ_i w_hi w_gi: over σ² the covariance of two heads' label noise, averaged over queries.

    ``pair`` (angle,): of the first head and another; ``own``: of a head with itself.
    """
    heads, reach = shared
    for_keys, for_queries = jax.random.split(key)
    keys = jax.random.normal(for_keys, (n, heads.dimension), jnp.float64)
    points = reach * jax.random.normal(for_queries, (queries, heads.dimension), jnp.float64)

    def query_noise(query: Array) -> tuple[Array, Array]:
        weights = nw_weights(heads, query, keys)
        return weights[1:] @ weights[0], jnp.mean(jnp.sum(weights**2, axis=1))

    pair, single = jax.lax.map(query_noise, points)
    return {"pair": pair.mean(0), "own": single.mean()}
