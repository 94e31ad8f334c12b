"""Nadaraya–Watson heads, computed stably: a readable reference that shares parts with the engine.

Exponents are shifted by their maximum before the exponential is taken, so a query far from every
key still has an estimate. A compact kernel may leave a query with no key in reach (log K = −inf
for all keys); then **the estimate counts as 0**, all its weights are 0, and the engine reports how
often it happened (``empty_rate``). Nothing is ever NaN.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from sims.base.checks import as_floats
from sims.base.errors import InputError
from sims.problem import KERNELS, Heads, Kernel
from sims.weights import WeightRule

ProjectedQueries = Float[Array, "Q p H"]
ProjectedKeys = Float[Array, "p H n"]
Columns = Float[Array, "c n"]
"""Vectors to be summed with the weights."""
UNIT: Any = 1.0
"""Bandwidth after coordinates are divided by b; a Python number, so it costs nothing."""


def nw_weights(heads: Heads, query: ArrayLike, keys: ArrayLike) -> Float[Array, "H n"]:
    """Attention weights in float64: ``w_hi(x) = K_h(x, X_i) / Σ_j K_h(x, X_j)``, or by the rule.

    Args:
        heads: H heads in R^d.
        query: x, shape (d,).
        keys: X, shape (n, d).

    Returns:
        Weights (H, n); a kernel's rows sum to 1, or are 0 when every K_h(x, X_i) is 0.

    Raises:
        InputError: shapes disagree with the heads.
    """
    query = as_floats("query", query)
    keys = as_floats("keys", keys)
    if query.shape != (heads.dimension,):
        raise InputError("query", query.shape, f"shape ({heads.dimension},)")
    if keys.ndim != 2 or keys.shape[1] != heads.dimension or not len(keys):
        raise InputError("keys", keys.shape, f"shape (n, {heads.dimension}), n >= 1")
    return _weights(heads, query, keys)


@jax.jit
def _weights(
    heads: Heads, query: Float[Array, " d"], keys: Float[Array, "n d"]
) -> Float[Array, "H n"]:
    q = jnp.einsum("hdp,d->ph", heads.frames, query)[:, :, None]
    k = jnp.einsum("hdp,nd->phn", heads.of_keys, keys)
    if isinstance(heads.rule, WeightRule):
        rule = jax.vmap(heads.rule, in_axes=(1, 1, 0))
        return rule(q[:, :, 0], k, heads.bandwidth)
    log_k = heads.kernel.log_value(q, k, heads.bandwidth[:, None])
    total = logsumexp(log_k, axis=1, keepdims=True)
    return jnp.exp(log_k - jnp.where(jnp.isfinite(total), total, 0.0))


def scaled_projection(
    heads: Heads, frames: Float[Array, "H d p"], points: Float[Array, "n d"], dtype: DTypeLike
) -> ProjectedKeys:
    """``U_hᵀx / b_h``, coordinates first: scaled kernels see a point only through this.

    ``U_hᵀx`` for a rule that is not scaled (see Kernel); :func:`left_bandwidth` goes with it.

    Args:
        heads: H heads.
        frames: U, of queries or of keys.
        points: x.
        dtype: floating-point type of the product.
    """
    if _scaled(heads):
        frames = frames / heads.bandwidth[:, None, None]
    return jnp.einsum("hdp,nd->phn", frames.astype(dtype), points.astype(dtype))


def projected_queries(
    heads: Heads, queries: Float[Array, "Q d"], dtype: DTypeLike
) -> ProjectedQueries:
    """:func:`scaled_projection` of queries, multiplied out in float64, query first."""
    projected = scaled_projection(heads, heads.frames, queries, jnp.float64)
    return projected.astype(dtype).transpose(2, 0, 1)


def left_bandwidth(heads: Heads, dtype: DTypeLike) -> float | Float[Array, "H 1"]:
    """Remaining factor b_h after :func:`scaled_projection`: 1, or b_h (H, 1) if not scaled."""
    return UNIT if _scaled(heads) else heads.bandwidth[:, None].astype(dtype)


def _scaled(heads: Heads) -> bool:
    return isinstance(heads.rule, Kernel) and heads.rule.scaled


def finite_or_zero(peak: Array) -> Array:
    """Shift of the exponents: the largest exponent, or 0 where no key is in reach."""
    return jnp.where(jnp.isfinite(peak), peak, 0.0)


def vanishes(rule: Kernel | WeightRule) -> bool:
    """True if a head may have no key in reach; built-in kernels then have a support."""
    return not isinstance(rule, Kernel) or rule not in KERNELS.values() or rule.support is not None
