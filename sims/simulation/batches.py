"""The compiled part of the engine: batches of replicates, one batch a device at a time."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float

from sims.problem import Heads, Task
from sims.simulation.replicate import Blocks, Control, Linearisation, Replicate, replicate
from sims.simulation.sums import KernelSums, streamed_sums

TRACES: Counter["Settings"] = Counter()
"""How often each compilation was traced in this process (one trace = one compilation)."""


@dataclass(frozen=True)
class Settings:
    """All that selects a compilation, next to the shapes of the arrays."""

    n: int
    replicates: int
    blocks: Blocks
    at_once: int
    """Replicates computed side by side; divides ``replicates``."""
    dtype: str
    raw_labels: bool
    kernel_sums: KernelSums = streamed_sums


class _Moments(NamedTuple):
    """Running mean and sum of centred products (Welford), exact whatever the mean's size."""

    mean: Float[Array, "Q H"]
    products: Float[Array, "Q H H"]

    @classmethod
    def zero(cls, queries: int, heads: int) -> "_Moments":
        return cls(jnp.zeros((queries, heads)), jnp.zeros((queries, heads, heads)))

    def add(self, value: Array, count: Array) -> "_Moments":
        """With the value that is number ``count`` (from 1)."""
        delta = value - self.mean
        outer = delta[..., :, None] * delta[..., None, :]
        return _Moments(self.mean + delta / count, self.products + outer * ((count - 1) / count))

    def estimates(self, count: int) -> tuple[Array, Array, Array]:
        """Mean b, unbiased product ``b bᵀ − s/R``, and unbiased covariance s."""
        covariance = self.products / (count - 1)
        outer = self.mean[..., :, None] * self.mean[..., None, :]
        return self.mean, outer - covariance / count, covariance


def _one_batch(
    task: Task,
    heads: Heads,
    queries: Array,
    linearisation: Linearisation | None,
    control: Control | None,
    keys: Array,
    settings: Settings,
) -> dict[str, Array]:
    size = (len(queries), heads.count)

    def one(key: Array) -> Replicate:
        return replicate(
            task,
            heads,
            queries,
            key,
            n=settings.n,
            dtype=jnp.dtype(settings.dtype),
            blocks=settings.blocks,
            raw_labels=settings.raw_labels,
            linearisation=linearisation,
            kernel_sums=settings.kernel_sums,
            control=control,
        )

    def add(carry: Any, item: tuple[Array, Replicate]) -> tuple[Any, None]:
        index, value = item
        count = (index + 1).astype(jnp.float64)
        moments, raw, noise, empty, gaps, linear = carry
        if settings.raw_labels:
            raw = raw.add(value.raw_deviation, count)
        if value.gaps is not None:
            expanded, bias, noise_gap = gaps
            gaps = (
                expanded.add(value.gaps.linear, count),
                bias + value.gaps.bias,
                noise_gap + value.gaps.noise,
            )
        if value.linear is not None:
            own, known = linear
            linear = own.add(value.linear.value, count), known + value.linear.covariance
        moments = moments.add(value.deviation, count)
        return (moments, raw, noise + value.noise, empty + value.empty, gaps, linear), None

    def step(carry: Any, item: tuple[Array, Array]) -> tuple[Any, None]:
        # One after another keeps the weights in a CPU's cache; accelerators want many at once.
        indices, keys = item
        if settings.at_once == 1:
            return add(carry, (indices[0], one(keys[0])))
        return lax.scan(add, carry, (indices, jax.vmap(one)(keys)))

    zero = _Moments.zero(*size)
    pairs = jnp.zeros((*size, heads.count))
    gaps = None if linearisation is None else (zero, jnp.zeros(size), pairs)
    linear = None if control is None else (zero, pairs)
    carry = (zero, zero, pairs, jnp.zeros(size), gaps, linear)
    r = settings.replicates
    items = (jnp.arange(r).reshape(-1, settings.at_once), keys.reshape(-1, settings.at_once))
    (moments, raw, noise, empty, gaps, linear), _ = lax.scan(step, carry, items)
    names = ("bias", "bias_product", "signal_covariance")
    out = dict(zip(names, moments.estimates(r), strict=True))
    out["noise_covariance"], out["empty_rate"] = noise / r, empty / r
    if settings.raw_labels:
        names = ("raw_bias", "raw_bias_product", "raw_total_covariance")
        out |= dict(zip(names, raw.estimates(r), strict=True))
    if gaps is not None:
        expanded, bias, noise_gap = gaps
        out["bias_remainder"], out["noise_remainder"] = bias / r, noise_gap / r
        out["signal_remainder"] = out["signal_covariance"] - expanded.estimates(r)[2]
    if linear is not None:
        own, known = linear
        signal = out["signal_covariance"] - own.estimates(r)[2] + known / r
        out["bias_product"] += (out["signal_covariance"] - signal) / r
        out["signal_covariance"] = signal
    return out


@partial(jax.jit, static_argnames=("settings", "mesh"))
def run_batches(
    task: Task,
    heads: Heads,
    queries: Float[Array, "Q d"],
    linearisation: Linearisation | None,
    control: Control | None,
    keys: Array,
    *,
    settings: Settings,
    mesh: Mesh,
) -> dict[str, Array]:
    """Unbiased estimates of every term from each of the batches, one batch a device.

    Args:
        task: traced; only its shapes select the compilation.
        heads: likewise (its kernel is static).
        queries: (Q, d), a multiple of ``settings.blocks.queries``.
        linearisation: of the same queries, or None; traced.
        control: likewise.
        keys: :func:`~sims.simulation.draws.batch_keys`, as many batches as the mesh has devices.
        settings: static sizes.
        mesh: one axis named ``batch``.

    Returns:
        Arrays with a leading batch axis: ``bias`` (…, Q, H), ``bias_product``,
        ``signal_covariance``, ``noise_covariance`` (…, Q, H, H), ``empty_rate`` (…, Q, H) and,
        with raw labels, ``raw_bias``, ``raw_bias_product``, ``raw_total_covariance``; with a
        linearisation, ``bias_remainder`` (…, Q, H), ``signal_remainder`` and ``noise_remainder``.
    """
    TRACES[settings] += 1

    def local(
        task: Task, heads: Heads, queries: Array, known: Any, control: Any, keys: Array
    ) -> Any:
        out = _one_batch(task, heads, queries, known, control, keys[0], settings)
        return {name: value[None] for name, value in out.items()}

    everywhere, split = PartitionSpec(), PartitionSpec("batch")
    program = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(*(everywhere,) * 5, split),
        out_specs=split,
        check_vma=False,
    )
    return program(task, heads, queries, linearisation, control, keys)
