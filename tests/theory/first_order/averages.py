"""First-order terms of single problems, averaged over waves and queries by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np

from sims.problem import Task, TrigonometricSeries
from sims.theory import first_order_arrays


def parts_of(task, heads, queries):
    """Limit of the bias and its part in 1/n (Q, H); signal and noise (Q, H, H) at n = 1."""
    arrays = first_order_arrays(task, heads, 1.0, queries)
    limit = arrays.limit - task.target(queries)[:, None]
    return limit, arrays.bias - limit, arrays.signal_covariance, arrays.noise_covariance


def averages(rows_of, design, heads, queries, frequencies):
    """Means of rows ``rows_of(*parts)``, each (Q,), over waves in both phases and over queries.

    ``queries`` and ``frequencies`` are pairs of nodes and weights.
    """
    points, query_weight = queries

    def one(frequency, phase):
        target = TrigonometricSeries([2**0.5], frequency[None], phase[None])
        parts = parts_of(Task(design, target, 1.0), heads, points)
        return jnp.stack(rows_of(*parts)) @ query_weight

    waves, wave_weight = frequencies
    over = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    return wave_weight @ np.asarray(over(waves, jnp.array([0.0, -jnp.pi / 2])).mean(1))
