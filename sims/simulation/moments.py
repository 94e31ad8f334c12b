"""From the replicates of a batch to unbiased estimates: running means and products."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

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


class Carry(NamedTuple):
    """What is known of the replicates so far."""

    moments: Moments
    """Of the deviations."""
    raw: Moments | None
    """Of the deviations with drawn labels."""
    noise: Float[Array, "Q H H"]
    """Sum of the conditional covariances."""
    empty: Float[Array, "Q H"]
    """How often no key was in reach."""
    linear: tuple[Moments, Float[Array, "Q H H"]] | None
    """Of the control variate: its moments, and the sum of its estimated covariances."""


@functools.cache  # one object for each choice: it selects a compilation
def batch_estimates(raw_labels: bool) -> Fold:
    """The reduction of :class:`~.replicate.Replicate` values to the arrays of a batch.

    They are ``bias`` (Q, H), ``bias_product``, ``signal_covariance``, ``noise_covariance``
    (Q, H, H), ``empty_rate`` (Q, H) and, with raw labels, ``raw_bias``, ``raw_bias_product`` and
    ``raw_total_covariance``.
    """

    def init(shared: Shared) -> Carry:
        size = (len(shared.queries), shared.heads.count)
        single, pairs = jnp.zeros(size), jnp.zeros((*size, shared.heads.count))
        zero = Moments(single, pairs)
        linear = None if shared.control is None else (zero, pairs)
        return Carry(zero, zero if raw_labels else None, pairs, single, linear)

    def add(carry: Carry, value: Replicate, count: Array) -> Carry:
        moments, raw, noise, empty, linear = carry
        if raw is not None and value.raw_deviation is not None:
            raw = raw.add(value.raw_deviation, count)
        if linear is not None and value.linear is not None:
            own, known = linear
            linear = own.add(value.linear[0], count), known + value.linear[1]
        moments = moments.add(value.deviation, count)
        return Carry(moments, raw, noise + value.noise, empty + value.empty, linear)

    def finish(carry: Carry, replicates: int) -> dict[str, Array]:
        names = ("bias", "bias_product", "signal_covariance")
        out: dict[str, Array] = dict(zip(names, carry.moments.estimates(replicates), strict=True))
        out |= {"noise_covariance": carry.noise / replicates}
        out |= {"empty_rate": carry.empty / replicates}
        if carry.raw is not None:
            names = ("raw_bias", "raw_bias_product", "raw_total_covariance")
            out |= dict(zip(names, carry.raw.estimates(replicates), strict=True))
        if carry.linear is not None:
            own, known = carry.linear
            signal = out["signal_covariance"] - own.estimates(replicates)[2] + known / replicates
            out["bias_product"] += (out["signal_covariance"] - signal) / replicates
            out["signal_covariance"] = signal
        return out

    return Fold(init, add, finish)
