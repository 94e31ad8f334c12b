"""Random problems and a brute-force estimate in plain numpy, for the tests of the exact theory."""

import numpy as np

from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries


def random_problem(seed, widths=(1, 2), largest=1e5):
    """A task, two heads, n and two queries; a fifth have the same frame twice."""
    rng = np.random.default_rng(seed)
    width = int(rng.choice(widths))
    d = int(rng.integers(width + 1, width + 6))
    kernel = str(rng.choice(["gaussian", "gaussian", "softmax"]))
    bandwidth = (
        np.exp(rng.uniform(np.log(0.3), np.log(1.5)))
        if kernel == "gaussian"
        else rng.uniform(0.8, 1.6)
    )
    n = round(np.exp(rng.uniform(0, np.log(largest))))
    root = rng.normal(size=(d, d))
    covariance = root @ root.T / d if rng.random() < 0.4 else np.eye(d)
    frames = np.stack([np.linalg.qr(rng.normal(size=(d, width)))[0] for _ in range(2)])
    if rng.random() < 0.2:
        frames[1] = frames[0]
    terms = 6
    target = TrigonometricSeries(
        rng.normal(size=terms),
        rng.normal(size=(terms, d)) * rng.uniform(0.2, 1.2),
        rng.uniform(0, 6.28, terms),
    )
    queries = rng.normal(size=(2, d)) * rng.uniform(0, 1)
    task = Task(GaussianDesign((covariance + covariance.T) / 2), target, 0.7)
    return task, Heads(frames, kernel, bandwidth * np.array([1, rng.uniform(0.7, 1.4)])), n, queries


def brute_force(task, heads, n, x, seed, replicates, batches=20):
    """Mean over batches and MCSE of (bias, signal covariance, noise covariance), plain numpy."""
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(np.asarray(task.design.covariance) + 1e-14 * np.eye(task.dimension))
    amplitude, frequency, phase = (
        np.asarray(a) for a in (task.target.amplitude, task.target.frequency, task.target.phase)
    )
    value = lambda z: np.cos(z @ frequency.T + phase) @ amplitude  # noqa: E731
    rows = []
    for _ in range(batches):
        keys = rng.normal(size=(replicates, n, task.dimension)) @ factor.T
        labels = value(keys)
        weights = []
        for frame, b in zip(np.asarray(heads.frames), np.asarray(heads.bandwidth), strict=True):
            q, k = x @ frame, keys @ frame
            square = ((k - q) ** 2).sum(-1) / b**2
            log = {
                "gaussian": -square / 2,
                "softmax": k @ q / b**2,
                "laplace": -np.sqrt(square),
                "student": -(3 + k.shape[-1]) / 2 * np.log1p(square / 3),
            }[heads.kernel.name]
            weight = np.exp(log - log.max(1, keepdims=True))
            weights.append(weight / weight.sum(1, keepdims=True))
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
