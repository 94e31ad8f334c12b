"""Terms as JAX arrays, which can be compiled, differentiated and mapped over problems."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.errors import InputError, Uncovered, one_of
from sims.base.terms import PAIRS, scalar_forms
from sims.problem import Heads, Kernel, Task
from sims.theory.arrays import Number
from sims.theory.first_order.closed_forms import first_order_arrays


def terms(
    task: Task,
    heads: Heads,
    n: Number,
    queries: Float[Array, "Q d"],
    order: Literal["first", "exact"] = "first",
    *,
    weights: ArrayLike | None = None,
    level: int = 0,
) -> dict[str, Array]:
    """Terms of the decomposition as JAX arrays, under ``jit``, ``grad`` and ``vmap``.

    Derivatives are taken in arrays of the task and of the heads, in queries, n and weights. By
    order exact they are those of the terms on fixed points of the law of the keys, whose error
    (about 1 % of the MSE at level 0) they share; points are chosen anew where arguments change,
    which moves a term by less than that.

    Args:
        task: what ``predict`` covers by order first; or by order exact, with kernels.
        heads: the heads.
        n: number of keys.
        queries: (Q, d).
        order: ``first``, to first order in 1/n; ``exact``, at any n, to one per cent.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        level: of the number of points, which is about ``2^(12 + level)`` a randomisation.

    Returns:
        The variables of :mod:`sims.base.terms` by their names, and ``n_eff`` (Q, H); by order exact
        also ``defect`` (Q, H, H).

    Raises:
        InputError: JAX computes in float32.
        Uncovered: the order does not cover the problem.
    """
    if jnp.zeros(()).dtype != jnp.float64:
        raise InputError("jax_enable_x64", False, "True: theory needs float64")
    queries = jnp.asarray(queries)
    if order == "first":
        arrays = first_order_arrays(task, heads, n, queries)
        bias, signal, noise = arrays[:3]
        facts = {"n_eff": arrays.n_eff}
    elif order == "exact":
        # Imported late, like exact theory elsewhere.
        from sims.theory.exact.percent import jax_moments

        if not isinstance(heads.rule, Kernel):
            raise Uncovered("heads.kernel", heads.rule.name, "a kernel (terms of order exact)")
        moments = jax_moments(task, heads, n, queries, level)
        bias, signal = moments.mean, moments.signal
        noise = task.noise_sd**2 * moments.noise
        squares = jnp.diagonal(moments.noise, axis1=1, axis2=2)
        facts = {"n_eff": 1 / squares, "defect": moments.defect}
    else:
        raise InputError("order", order, one_of(("first", "exact"), order))
    alpha = jnp.full(heads.count, 1 / heads.count) if weights is None else jnp.asarray(weights)
    pairs = dict(zip(PAIRS, (bias[:, :, None] * bias[:, None], signal, noise), strict=True))
    integrated = {f"integrated_{name}": values.mean(0) for name, values in pairs.items()}
    scalars = scalar_forms(integrated.values(), alpha)
    return {"bias": bias} | pairs | integrated | scalars | facts
