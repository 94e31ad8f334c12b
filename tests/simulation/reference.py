"""The engine's arithmetic written out plainly in NumPy, from the same draws."""

from functools import partial

import numpy as np

from sims.montecarlo import replicate_key, root_key
from sims.simulation import draw


def log_kernel(name, q, k, b):
    if name == "gaussian":
        return -((q - k) ** 2).sum(-1) / (2 * b**2)
    if name == "softmax":
        return (q * k).sum(-1) / b**2
    if name == "box":
        return np.where(np.all(np.abs(q - k) < b[..., None], axis=-1), 0.0, -np.inf)
    far = np.linalg.norm(q - k, axis=-1) / b
    return -far if name == "laplace" else np.log(np.maximum(1 - far**2, 0))


def entmax(z, nu):
    """``(z/ν − τ)₊^ν``, of sum 1 over the last axis: ``u = max z/ν − τ`` by bisection."""
    y = (z - z.max(-1, keepdims=True)) / nu
    low, high = np.full_like(y[..., :1], y.shape[-1] ** (-1 / nu)), np.ones_like(y[..., :1])
    for _ in range(100):
        u = (low + high) / 2
        over = np.log(u) + np.log((np.maximum(1 + y / u, 0) ** nu).sum(-1, keepdims=True)) / nu > 0
        low, high = np.where(over, low, u), np.where(over, u, high)
    w = np.maximum(1 + y / high, 0) ** nu
    return w / w.sum(-1, keepdims=True)


def kernel_weights(name, q, k, b):
    log_k = log_kernel(name, q, k, b)
    peak = log_k.max(-1, keepdims=True)
    u = np.exp(log_k - np.where(np.isfinite(peak), peak, 0))
    total = u.sum(-1, keepdims=True)
    return u / np.where(total > 0, total, 1)


def reference(task, heads, n, queries, seed, batches, replicates, weigh=None):
    """Arrays by the engine's names, each with a leading batch axis.

    ``weigh(q (Q, H, 1, p), k (1, H, n, p), b (H, 1)) -> (Q, H, n)``; None is the heads' kernel.
    """
    weigh = weigh or partial(kernel_weights, heads.kernel.name)
    out = []
    arrays = (heads.frames, heads.of_keys, heads.bandwidth, queries)
    frames, of_keys, b, x = (np.asarray(a) for a in arrays)
    at_query = task.target.values(queries)[:, None]
    sigma = float(task.noise_sd)
    for batch in range(batches):
        g, noise, empty = [], [], []
        for r in range(replicates):
            keys, _ = draw(task, replicate_key(root_key(seed), batch, r), n)
            m = task.target.values(keys)
            q = np.einsum("hdp,qd->qhp", frames, x)[:, :, None]
            k = np.einsum("hdp,nd->hnp", of_keys, np.asarray(keys))[None]
            w = weigh(q, k, b[:, None])
            g.append(w @ m - at_query)
            noise.append(sigma**2 * np.einsum("qhn,qgn->qhg", w, w))
            empty.append(~w.any(-1))
        mean = np.mean(g, 0)
        centred = np.array(g) - mean
        s = np.einsum("rqh,rqg->qhg", centred, centred) / (replicates - 1)
        result = {
            "bias": mean,
            "bias_product": mean[..., None] * mean[:, None] - s / replicates,
            "signal_covariance": s,
            "noise_covariance": np.mean(noise, 0),
            "empty_rate": np.mean(empty, 0),
        }
        out.append(result)
    return {name: np.stack([result[name] for result in out]) for name in out[0]}


def assert_close(data, arrays, tolerance=1e-12):
    """Equal relative to the largest entry of each array."""
    for name, expected in arrays.items():
        actual = data[name].values
        assert actual.shape == expected.shape, name
        scale = np.abs(expected).max() or 1.0
        assert np.max(np.abs(actual - expected)) <= tolerance * scale, name
