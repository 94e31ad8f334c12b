"""From the replicates of a batch to unbiased estimates: running means and products."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from sims.montecarlo import Fold
from sims.simulation.replicate import Replicate, Shared


class Moments(NamedTuple):
    """Running mean and sum of centred products (Welford), exact whatever the mean's size."""

    mean: Float[Array, "Q H"]
    products: Float[Array, "Q H H"]

    def add(self, value: Array, count: Array) -> "Moments":
        """With the value that is number ``count`` (from 1)."""
        delta = value - self.mean
        outer = delta[..., :, None] * delta[..., None, :]
        return Moments(self.mean + delta / count, self.products + outer * ((count - 1) / count))

    def estimates(self, count: int) -> tuple[Array, Array, Array]:
        """Mean b, unbiased product ``b bᵀ − s/R``, and unbiased covariance s."""
        covariance = self.products / (count - 1)
        outer = self.mean[..., :, None] * self.mean[..., None, :]
        return self.mean, outer - covariance / count, covariance


def _init(shared: Shared) -> PyTree:
    size = (len(shared.queries), shared.heads.count)
    single = jnp.zeros(size)
    pairs = jnp.zeros((*size, shared.heads.count))
    zero = Moments(single, pairs)
    return zero, pairs, single, None if shared.control is None else (zero, pairs)


def _add(carry: PyTree, value: Replicate, count: Array) -> PyTree:
    return jax.tree.map(
        lambda old, new: old.add(new, count) if isinstance(old, Moments) else old + new,
        carry,
        tuple(value),
        is_leaf=lambda part: isinstance(part, Moments),
    )


def _finish(carry: PyTree, replicates: int) -> dict[str, Array]:
    deviation, noise, empty, linear = carry
    names = ("bias", "bias_product", "signal_covariance")
    out: dict[str, Array] = dict(zip(names, deviation.estimates(replicates), strict=True))
    out |= {"noise_covariance": noise / replicates, "empty_rate": empty / replicates}
    if linear is not None:
        control, known = linear
        signal = out["signal_covariance"] - control.estimates(replicates)[2] + known / replicates
        out["bias_product"] += (out["signal_covariance"] - signal) / replicates
        out["signal_covariance"] = signal
    return out


BATCH_ESTIMATES = Fold(_init, _add, _finish)
"""Reduction of :class:`~.replicate.Replicate` values to the arrays of a batch: ``bias`` (Q, H),
``bias_product``, ``signal_covariance``, ``noise_covariance`` (Q, H, H) and ``empty_rate`` (Q, H).
"""
