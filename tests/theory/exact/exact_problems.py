"""Problems and a brute-force estimate in plain numpy, for the tests of the exact theory."""

import numpy as np

from sims.problem import DESIGNS, Task, TrigonometricSeries
from sims.theory import predict

D = 4
FRAMES = np.linalg.qr(np.random.default_rng(4).normal(size=(D, D)))[0]
WAVES = np.array([[1.6, 0.4, 0.2, 0.1], [0.8, -1.1, 0.3, 0.2]]) @ FRAMES.T
AMPLITUDE, PHASE = np.array([1.0, 0.6]), np.array([0.4, 1.2])
QUERY = (FRAMES @ [0.7, 0.2, -0.3, 0.1])[None]
TASK = Task(DESIGNS["isotropic"](D), TrigonometricSeries(AMPLITUDE, WAVES, PHASE), 1.0)
"""Of adaptive radii, with their query."""


def target(x):
    return np.cos(x @ WAVES.T + PHASE) @ AMPLITUDE


def two_frames(width):
    """The first head's axes, and the same turned by an angle of cosine 0.6."""
    turned = 0.6 * FRAMES[:, :width] + 0.8 * FRAMES[:, 2 : 2 + width]
    return np.stack([FRAMES[:, :width], turned])


def simulated(frames, n, weigh, replicates=16_000, batch=2000):
    """Every term of one or two heads at QUERY, each with its MCSE.

    ``weigh``: squared distances (batch, n) to weights, radii and numbers of attended keys.
    """
    rng, rows = np.random.default_rng(3), []
    for _ in range(replicates // batch):
        keys = rng.normal(size=(batch, n, D))
        m, weights, row = target(keys), [], []
        for frame in frames:
            w, radius, attended = weigh((((keys - QUERY[0]) @ frame) ** 2).sum(2))
            weights.append(w)
            row += [(w * m).sum(1), radius, attended]
        row += [row[-3], (weights[0] ** 2).sum(1), (weights[0] * weights[-1]).sum(1)]
        rows.append(np.column_stack(row))
    columns = np.concatenate(rows).T
    (f, radius, attended), (g, own, product) = columns[:3], columns[-3:]
    parts = {
        "mean": f,
        "signal": (f - f.mean()) ** 2,
        "cross signal": (f - f.mean()) * (g - g.mean()),
        "noise": own,
        "cross noise": product,
        "attended": attended,
        "spread": (radius - radius.mean()) ** 2,
    }
    return {k: (v.mean(), v.std() / len(v) ** 0.5 + 1e-12) for k, v in parts.items()}


def adaptive_values(exact):
    """The same numbers by exact theory at one query."""
    last = exact.sizes["head"] - 1
    return {
        "mean": float(exact["bias"][0]) + float(target(QUERY)[0]),
        "signal": float(exact["signal_covariance"][0, 0]),
        "cross signal": float(exact["signal_covariance"][0, last]),
        "noise": float(exact["noise_covariance"][0, 0]),
        "cross noise": float(exact["noise_covariance"][0, last]),
        "attended": float(exact["expected_attended"][0]),
        "spread": float(exact["radius_sd"][0]) ** 2,
    }


def adaptive_gaps(heads, n):
    """First-order theory against exact theory, relatively: bias beside m*, variances, radius."""
    first, exact = (
        predict(TASK, heads, n, QUERY, order=order, **options)
        for order, options in (("first", {}), ("exact", {"rtol": 1e-8}))
    )
    limit = float(first["limit"][0, 0]) - float(target(QUERY)[0])
    part = [float(data["bias"][0, 0]) - limit for data in (first, exact)]
    names = ("signal_variance", "noise_variance")
    return [part[1] / part[0] - 1, *(float(exact[k] / first[k]) - 1 for k in names)], first, exact


def gaussian_keys(design):
    """Draws of a Gaussian design by plain numpy, ``(rng, shape) -> keys``."""
    factor = np.linalg.cholesky(np.asarray(design.covariance) + 1e-14 * np.eye(design.dimension))
    return lambda rng, shape: rng.normal(size=(*shape, design.dimension)) @ factor.T


def brute_force(task, heads, n, x, seed, replicates, batches=20, draw=None):
    """Mean over batches and MCSE of (bias, signal covariance, noise covariance), plain numpy."""
    rng = np.random.default_rng(seed)
    draw = draw or gaussian_keys(task.design)
    amplitude, frequency, phase = (
        np.asarray(a) for a in (task.target.amplitude, task.target.frequency, task.target.phase)
    )
    value = lambda z: np.cos(z @ frequency.T + phase) @ amplitude  # noqa: E731
    rows = []
    for _ in range(batches):
        keys = draw(rng, (replicates, n))
        labels = value(keys)
        weights = []
        parts = map(np.asarray, (heads.frames, heads.of_keys, heads.bandwidth))
        for frame, key_frame, b in zip(*parts, strict=True):
            q, k = x @ frame, keys @ key_frame
            square = ((k - q) ** 2).sum(-1) / b**2
            log = {
                "gaussian": -square / 2,
                "softmax": k @ q / b**2,
                "laplace": -np.sqrt(square),
                "student": -(3 + k.shape[-1]) / 2 * np.log1p(square / 3),
                "epanechnikov": np.log(np.maximum(1 - square, np.exp(-700))),
                "triweight": 3 * np.log(np.maximum(1 - square, np.exp(-700))),
            }[heads.kernel.name]
            weight = np.exp(log - log.max(1, keepdims=True))
            if heads.kernel.support:  # without a key in reach all weights are 0
                weight = np.where(square < 1, weight, 0.0)
            weights.append(weight / np.maximum(weight.sum(1, keepdims=True), 1e-300))
        weights = np.stack(weights)
        outputs = (weights * labels).sum(-1)
        noise = float(task.noise_sd) ** 2 * np.einsum("hrn,grn->hg", weights, weights) / replicates
        rows.append(
            np.concatenate([outputs.mean(1) - value(x), np.cov(outputs).ravel(), noise.ravel()])
        )
    rows = np.array(rows)
    return rows.mean(0), rows.std(0, ddof=1) / np.sqrt(batches)


def flat(data, query=0):
    """The same numbers from a result of the theory."""
    one = data.isel(query=query)
    names = ("bias", "signal_covariance", "noise_covariance")
    return np.concatenate([one[name].values.ravel() for name in names])
