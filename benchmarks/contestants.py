"""Who does the work: the engine, and a plain NumPy loop."""

from collections.abc import Callable

import numpy as np

from benchmarks.problem import Work
from sims.simulation import estimate

Contestant = Callable[[int], object]
"""Does the work once, with a seed of its own for every call."""


def engine(work: Work, precision: str, batches: int) -> Contestant:
    """The suite's engine, over all devices."""
    task, heads, queries = work.problem()

    def run(seed: int) -> object:
        return estimate(
            task, heads, work.n, queries, seed,
            batches=batches, replicates_per_batch=work.replicates, precision=precision,
        )  # fmt: skip

    return run


def numpy_loop(work: Work, dtype: str, replicates: int) -> Contestant:
    """A loop over replicates and queries, as one would write it first: same sums, same draws."""
    task, heads, queries = work.problem()
    cast = [np.asarray(x, dtype) for x in (
        heads.frames / heads.bandwidth[:, None, None], queries, task.target(queries),
        task.target.frequency, task.target.phase, task.target.amplitude,
    )]  # fmt: skip
    frames, x, at_query, frequency, phase, amplitude = cast
    sigma = np.asarray(task.noise_sd, dtype)
    q = np.einsum("hdp,qd->qph", frames, x)[..., None]

    def run(seed: int) -> object:
        rng = np.random.default_rng(seed)
        shape = (work.queries, work.heads)
        mean, raw = np.zeros(shape), np.zeros(shape)
        products, noise, raw_products = (np.zeros((*shape, work.heads)) for _ in range(3))
        for _ in range(replicates):
            keys = rng.standard_normal((work.n, work.dimension), dtype)
            m = np.cos(keys @ frequency.T + phase) @ amplitude
            labels = m + sigma * rng.standard_normal(work.n, dtype)
            k = np.stack([frame.T @ keys.T for frame in frames], axis=1)
            for i in range(work.queries):
                log_k = -0.5 * ((k - q[i]) ** 2).sum(0)
                w = np.exp(log_k - log_k.max(1, keepdims=True))
                w /= w.sum(1, keepdims=True)
                g, f = w @ m - at_query[i], w @ labels - at_query[i]
                noise[i] += sigma**2 * (w @ w.T)
                mean[i] += g
                raw[i] += f
                products[i] += np.outer(g, g)
                raw_products[i] += np.outer(f, f)
        return mean, raw, products, raw_products, noise

    return run
