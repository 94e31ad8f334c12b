"""Exact less first-order variances of heads, with control variates of mean zero."""

from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from sims.montecarlo import batch_keys, root_key
from sims.problem import Heads, Task
from sims.simulation import draw
from sims.theory import first_order_arrays


def simulate(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's ``<term>_remainder`` (exact less first order) and ``<term>``, by batch.

    The points of a kernel differ in n alone; smaller ones take the first keys of the largest.
    """
    run = experiment.simulation_at(fidelity)
    groups: dict[str, list[Any]] = {}
    for point in experiment.points(fidelity):
        groups.setdefault(point.spec.heads.kernel, []).append(point)
    keys = batch_keys(
        root_key(run.seed), np.arange(run.batches, dtype=np.uint32), run.replicates_per_batch
    )
    found = {}
    for points in groups.values():
        points.sort(key=lambda point: point.spec.n)
        task, heads, _, queries = points[0].spec.build()
        known = first_order_arrays(task, heads, 1.0, queries)
        signal, overlap = (
            np.diagonal(part, axis1=1, axis2=2)
            for part in (known.signal_covariance, known.noise_covariance / task.noise_sd**2)
        )
        sizes = tuple(point.spec.n for point in points)
        values = batches(
            task, heads, queries, known.limit, known.log_mass, signal, overlap, keys, sizes=sizes
        )
        for index, point in enumerate(points):
            data = {name: part[:, index] for name, part in values.items()}
            error = {
                f"{name}_mcse": part.std(ddof=1) / np.sqrt(len(part)) for name, part in data.items()
            }
            found[point.name] = xr.Dataset(
                {name: ("batch", part) for name, part in data.items()} | error,
                attrs={"replicates": run.batches * run.replicates_per_batch},
            )
    return {point.name: found[point.name] for point in experiment.points(fidelity)}


def batches(
    task: Task, heads: Heads, queries: Any, limit: Any, log_mass: Any, signal: Any, overlap: Any,
    keys: Any, *, sizes: tuple[int, ...],
) -> dict[str, np.ndarray]:  # fmt: skip
    """Terms and their remainders, each (batch, size), means over queries and heads.

    With ``k_i = K(x, X_i)/E K``, ``A_i = k_i (m(X_i) − m*)``, ``a`` the mean of A and ``1 + δ``
    that of k: ``g − m* = a/(1 + δ)`` and ``Σ w² = Σ k_i²/(n + nδ)²``, where first order has ``a``
    and ``Σ k_i²/n²``. The differences are ``−2a²δ`` and ``−2δ Σ k_i²/n²`` to the next order, whose
    spread is nearly all in products of different keys. These have mean 0, as E A = 0 and E k = 1,
    and with the means of squares, less their expectations v and r, they are control variates.

    Args:
        task: design, target, noise.
        heads: H heads.
        queries: (Q, d).
        limit: m* (Q, H).
        log_mass: log E K (Q, H).
        signal: v = E A² (Q, H).
        overlap: r = E k² (Q, H).
        keys: random keys (batch, R).
        sizes: n, ascending.
    """
    found = _batches(task, heads, queries, (limit, log_mass, signal, overlap), keys, sizes=sizes)
    # (batch, R, Q, H, size)
    g, a, noise, less, *controls = (np.asarray(part) for part in found)
    square, linear = ((part - part.mean(1, keepdims=True)) ** 2 for part in (g, a))
    unbiased = g.shape[1] / (g.shape[1] - 1)
    variance, gap, noise, less, *controls = (
        part.mean((2, 3))
        for part in (unbiased * square, unbiased * (square - linear), noise, less, *controls)
    )
    return {
        "noise_variance": noise.mean(1),
        "noise_variance_remainder": controlled(less, controls[:3]),
        "variance": (variance + noise).mean(1),
        "variance_remainder": controlled(gap + less, controls),
    }


def controlled(values: np.ndarray, controls: list[np.ndarray]) -> np.ndarray:
    """Means (batch, size) of values (batch, R, size) less their regression on the controls.

    A batch's coefficients come from the other batches, so that its mean stays unbiased.
    """
    known = np.stack(controls, axis=-1)
    centred = known - known.mean((0, 1))
    square = np.einsum("brni,brnj->bnij", centred, known)
    cross = np.einsum("brni,brn->bni", centred, values)
    others = np.linalg.solve(square.sum(0) - square, (cross.sum(0) - cross)[..., None])[..., 0]
    return values.mean(1) - np.einsum("bni,bni->bn", others, known.mean(1))


@partial(jax.jit, static_argnames="sizes")
def _batches(task: Task, heads: Heads, queries: Any, known: Any, keys: Any, *, sizes: Any) -> Any:
    n = jnp.asarray(sizes, float)

    def sums(values: Any) -> Any:
        """Over the first n, (H, size)."""
        parts = [values[:, i:j].sum(1) for i, j in pairwise((0, *sizes))]
        return jnp.cumsum(jnp.stack(parts, axis=1), axis=1)

    asked = jnp.einsum("hdp,qd->qph", heads.frames, queries)

    def one(key: Any) -> Any:
        x, _ = draw(task, key, max(sizes))
        seen, values = jnp.einsum("hdp,nd->phn", heads.frames, x), task.target(x)

        def at(item: Any) -> Any:
            query, *rest = item
            limit, log_mass, v, r = (part[:, None] for part in rest)
            log_k = heads.kernel.log_value(query[..., None], seen, heads.bandwidth[:, None])
            k = jnp.exp(log_k - log_mass)
            signal = k * (values - limit)
            a, delta = sums(signal) / n, sums(k) / n - 1
            squares, s = sums(signal**2) / n**2, sums(k**2) / n**2
            noise = task.noise_sd**2 * s / (1 + delta) ** 2
            less = noise - task.noise_sd**2 * s
            # Σ (k_i − 1)²/n² = s − (1 + 2δ)/n
            controls = (
                r / n * delta,
                s - r / n,
                r / n * (delta**2 - s + (1 + 2 * delta) / n),
                v / n * delta,
                squares - v / n,
                a**2 - squares,
                (a**2 - squares) * delta,
            )
            return a / (1 + delta), a, noise, less, *controls

        return jax.lax.map(at, (asked, *known))

    def local(keys: Any) -> Any:
        return jax.lax.map(lambda row: jax.lax.map(one, row), keys)

    devices = jax.devices()
    count = max(c for c in range(1, len(devices) + 1) if not len(keys) % c)
    split = PartitionSpec("batch")
    mesh = Mesh(np.array(devices[:count]), ("batch",))
    return jax.shard_map(local, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)(keys)
