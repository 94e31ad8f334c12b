"""Who does the work: the engine, and what one would write with the usual tools instead.

Every contestant draws its own designs and returns the moments of a replicate that the terms are
made of: for every head g, and all pair sums ``Σ w w``. A peer that is not installed raises
:class:`Missing`.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.problem import Work
from sims.simulation import estimate

Contestant = Callable[[int], object]
"""Does the work once, with a seed of its own for every call."""


class Missing(Exception):
    """A peer that is not installed."""


def peer(name: str) -> Any:
    """The module of that name, or :class:`Missing`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(f"{name} is not installed (extra 'peers')") from error


def engine(work: Work, precision: str, batches: int, **options: Any) -> Callable[[int], Any]:
    """The suite's engine, on one device, with these options of ``estimate``."""
    task, heads, queries = work.problem()
    options = {"replicates_per_batch": work.replicates, **options}
    options |= {"batches": batches, "precision": precision, "devices": jax.devices()[:1]}
    return lambda seed: estimate(task, heads, work.n, queries, seed, **options)


def _arrays(work: Work, dtype: str) -> dict[str, np.ndarray]:
    task, heads, queries = work.problem()
    frames = heads.frames / heads.bandwidth[:, None, None]
    arrays = {
        "frames": frames,
        "q": np.einsum("hdp,qd->hqp", frames, queries),
        "at_query": task.target(queries),
        "frequency": task.target.frequency,
        "phase": task.target.phase,
        "amplitude": task.target.amplitude,
    }
    return {name: np.asarray(value, dtype) for name, value in arrays.items()}


def _draw(rng: np.random.Generator, work: Work, dtype: str, a: dict) -> tuple:
    """Projected keys (H, n, p), and m(X)."""
    x = rng.standard_normal((work.n, work.dimension), dtype)
    return x @ a["frames"], np.cos(x @ a["frequency"].T + a["phase"]) @ a["amplitude"]


def numpy_loop(work: Work, dtype: str, replicates: int) -> Contestant:
    """A loop over replicates and queries."""
    a = _arrays(work, dtype)

    def run(seed: int) -> object:
        rng = np.random.default_rng(seed)
        out = []
        for _ in range(replicates):
            keys, m = _draw(rng, work, dtype, a)
            linear, gram = [], []
            for i in range(work.queries):
                log_k = -0.5 * ((keys - a["q"][:, i, None]) ** 2).sum(-1)
                w = np.exp(log_k - log_k.max(1, keepdims=True))
                w /= w.sum(1, keepdims=True)
                linear.append(w @ m - a["at_query"][i])
                gram.append(w @ w.T)
            out.append((np.stack(linear), np.stack(gram)))
        return out

    return run


def torch_batched(work: Work, dtype: str, replicates: int) -> Contestant:
    """PyTorch, all queries and heads at once: squared distances, softmax, products."""
    torch = peer("torch")
    torch.set_num_threads(1)
    a = _arrays(work, dtype)
    q = torch.from_numpy(a["q"])

    def run(seed: int) -> object:
        rng = np.random.default_rng(seed)
        out = []
        for _ in range(replicates):
            keys, m = _draw(rng, work, dtype, a)
            log_k = -0.5 * torch.cdist(q, torch.from_numpy(keys)) ** 2
            w = torch.softmax(log_k, -1)
            linear = w @ torch.from_numpy(m)
            by_query = w.transpose(0, 1)
            out.append((linear, by_query @ by_query.transpose(1, 2)))
        return out

    return run


def keops(work: Work, dtype: str, replicates: int) -> Contestant:
    """KeOps: heads side by side in one symbolic vector, its sums and outer products reduced.

    Without a shift of exponents, which it would need for far queries: it only gains by that.
    """
    lazy = peer("pykeops.numpy").LazyTensor
    a = _arrays(work, dtype)
    q = np.ascontiguousarray(a["q"])

    def run(seed: int) -> object:
        rng = np.random.default_rng(seed)
        out = []
        for _ in range(replicates):
            keys, m = _draw(rng, work, dtype, a)
            keys = np.ascontiguousarray(keys)
            columns = np.stack([m, np.ones_like(m)], 1)
            column = lazy(columns[None])
            kernels = []
            for of_query, of_key in zip(q, keys, strict=True):
                difference = lazy(of_query[:, None]) - lazy(of_key[None])
                kernels.append((-0.5 * (difference**2).sum(-1)).exp())
            k = lazy.cat(tuple(kernels), -1)
            linear = k.tensorprod(column).sum(1)
            linear = linear.reshape(work.queries, work.heads, -1)
            total = linear[..., -1]
            gram = k.tensorprod(k).sum(1).reshape(work.queries, work.heads, work.heads)
            out.append((linear / total[..., None], gram / (total[:, :, None] * total[:, None])))
        return out

    return run


def plain_vmap(work: Work, dtype: str, replicates: int) -> Contestant:
    """``jax.vmap`` over queries and replicates of the textbook formula for one query."""
    task, heads, queries = work.problem()
    frames = (heads.frames / heads.bandwidth[:, None, None]).astype(dtype)
    target = task.target

    def one_query(x: Any, keys: Any, m: Any) -> tuple:
        q = jnp.einsum("hdp,d->hp", frames, x)
        w = jax.nn.softmax(-0.5 * jnp.sum((keys - q[:, None]) ** 2, -1), axis=-1)
        return w @ m, w @ w.T

    def one(key: Any) -> tuple:
        x = jax.random.normal(key, (work.n, work.dimension), dtype)
        m = jnp.cos(x @ target.frequency.T.astype(dtype) + target.phase.astype(dtype))
        m = m @ target.amplitude.astype(dtype)
        keys = jnp.einsum("hdp,nd->hnp", frames, x)
        return jax.vmap(partial(one_query, keys=keys, m=m))(queries.astype(dtype))

    program = jax.jit(jax.vmap(one))
    return lambda seed: program(jax.random.split(jax.random.key(seed), replicates))
