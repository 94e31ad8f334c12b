"""Factors calibrated on drawn tokens and tried on new ones: scores and outputs."""

import numpy as np

from sims.attention.attention import softmax
from sims.attention.low_rank import joint_svd, k_svd, kq_svd, stacked
from sims.montecarlo import Draw, HostBatches

from .problems import Problem

METHODS = ("KQ-SVD", "K-SVD", "Eigen", "KQ-SVD, centred", "K-SVD, centred", "Eigen, centred")
FRESH = 32
"""Queries of a replicate at which outputs are compared."""


def sampler(problem: Problem) -> HostBatches:
    """Errors of each method's cache."""
    dims = {"score": ("method",), "output": ("method",)}
    return HostBatches(batch, constants=problem, dims=dims, coords={"method": list(METHODS)})


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Means over replicates, each with a calibration sample and tokens of its own.

    ``score`` is the error of a method's scores in the mean over all new tokens, ``output`` that of
    outputs at new queries, both squared; ``bound`` the error of outputs over the printed bound, the
    largest of the heads. Of centred keys ``score`` is the error up to a constant a query, which
    softmax ignores.
    """
    rng = draw.rng()
    rows = [replicate(rng, problem) for _ in range(replicates)]
    return {name: np.mean([row[name] for row in rows], axis=0) for name in rows[0]}


def replicate(rng: np.random.Generator, problem: Problem) -> dict[str, np.ndarray]:
    """One calibration sample and one set of tokens."""
    d = problem["width"]
    products = calibrated_products(rng, problem)
    change = products - np.eye(d)
    moment = problem.query_moments.sum(0)
    covariance = problem.of_keys.T @ problem.of_keys
    moments = np.repeat([problem.key_moment, covariance], len(products) // 2, axis=0)
    score = ((moments @ change) * (change @ moment)).sum((1, 2))
    tokens = rng.standard_normal((problem["tokens"], 2 * d))
    keys = tokens[:, :d] @ problem.of_keys + problem.mean
    # (method, head, d, key), the exact scores first
    stored = (keys @ np.concatenate([np.eye(d)[None], products]))[:, None].swapaxes(2, 3)
    queries = rng.standard_normal((FRESH, d)) @ problem.of_queries
    scores = queries @ stored / problem.temperature
    values = tokens @ problem.of_values
    outputs = softmax(scores) @ values
    moved = outputs[1:] - outputs[0]
    lost = np.linalg.norm(scores[1] - scores[0], 2, (1, 2))
    ratio = np.linalg.norm(moved[0], 2, (1, 2)) / (lost * np.linalg.norm(values, 2))
    return {
        "score": score,
        "output": (moved**2).sum((1, 2, 3)),
        "bound": ratio.max(),
    }


def calibrated_products(rng: np.random.Generator, problem: Problem) -> np.ndarray:
    """``ABᵀ`` of every method's cache, calibrated on one sample, (method, d, d).

    Centred keys lack the row of their mean; softmax does not see that new keys are not centred.
    """
    rank = problem.rank
    keys, queries = calibrated(rng, problem)
    products = []
    for rows in (keys, keys[:-1]):
        caches = kq_svd(rows, queries, rank), k_svd(rows, rank), joint_svd(rows, queries, rank)
        products += [cache.product for cache in caches]
    return np.stack(products)


def calibrated(rng: np.random.Generator, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Rows with the second moments of a sample: keys (d + 1, d) and queries (m·d, d).

    Normal rows enter by Bartlett's triangular factor: normal above the diagonal, and on it roots of
    χ² of n, …, n − d + 1 degrees of freedom. The mean of the keys' sample is a row of its own.
    """
    d = problem["width"]
    n = problem.calibration
    factors = np.triu(rng.standard_normal((1 + problem["heads"], d, d)), 1)
    freedom = n - np.arange(d) - np.eye(1, len(factors))[0][:, None]
    factors[:, np.arange(d), np.arange(d)] = rng.chisquare(freedom) ** 0.5
    middle = n**0.5 * problem.mean + rng.standard_normal(d) @ problem.of_keys
    keys = np.vstack([factors[0] @ problem.of_keys, middle])
    return keys, stacked(factors[1:] @ problem.of_queries)
