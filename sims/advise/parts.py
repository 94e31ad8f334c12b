"""Decomposition of an ensemble's error, estimated from data."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from sims.advise.reading import Data
from sims.advise.search import ROUNDING, Search
from sims.advise.table import Row

RESAMPLES = 30
"""Bootstrap samples of the keys."""
QUERIES = 100
"""Number of rows predicted from each sample."""
NEAR = 0.001
"""Largest squared distance of near rows, relative to the mean."""
NEAR_ROWS = 30
"""Minimum number of groups of near rows to estimate the noise."""
WIDE = 2.0
"""Standard errors from an estimate to the ends of its interval."""


@dataclass(frozen=True)
class Parts:
    """Estimated parts of the error, in units of the outputs' variance.

    Attributes:
        noise: 95 % interval of the label noise; its lower end is 0 if only an upper bound is known.
        bias: interval of the squared bias: the error minus the other parts, at least 0.
        variance: mean variance of single heads.
        covariance: mean covariance of pairs of heads; NaN for one head.
        kept: share of a head's variance that averaging keeps; NaN without variance.
        error: leave-one-out error in the table of methods.
    """

    noise: tuple[float, float]
    bias: tuple[float, float]
    variance: float
    covariance: float
    kept: float
    error: float


def noise_interval(data: Data, rows: list[Row]) -> tuple[float, float]:
    """95 % interval of the variance of label noise; its lower end is 0 if few rows are near.

    Half the squared difference of outputs at near rows, of several groups, averages to the noise
    plus what the target changes between them. It uses the nearest pairs, as many as rows,
    and all pairs with equal features. The standard error allows for pairs that share groups (the
    dyadic cluster-robust variance; Aronow, Samii & Assenova 2015).
    Without near rows no estimate is unbiased, but the noise is at most the error of any method.
    """
    x = data.features
    groups = data.groups
    radius = (NEAR * 2 * x.var(0).sum()) ** 0.5
    pairs = cKDTree(x).query_pairs(radius, output_type="ndarray")
    pairs = pairs[groups[pairs[:, 0]] != groups[pairs[:, 1]]]
    squares = ((x[pairs[:, 0]] - x[pairs[:, 1]]) ** 2).sum(1)
    pairs = pairs[squares <= np.sort(squares)[: len(x)].max(initial=0.0)]
    ends = groups[pairs]
    if len(np.unique(ends)) < NEAR_ROWS:
        return 0.0, min(log_interval(row.error, row.standard_error)[1] for row in rows)
    halves = 0.5 * ((data.outputs[pairs[:, 0]] - data.outputs[pairs[:, 1]]) ** 2).mean(1)
    excess = halves - halves.mean()
    of_groups = np.bincount(ends.ravel(), np.repeat(excess, 2))
    squares_less_own = (of_groups**2).sum() - (excess**2).sum()
    return log_interval(float(halves.mean()), max(squares_less_own, 0.0) ** 0.5 / len(pairs))


def log_interval(value: float, error: float) -> tuple[float, float]:
    """95 % interval of a mean of squares with this standard error, symmetric in its logarithm."""
    factor = float(np.exp(WIDE * error / value)) if value > 0 else 1.0
    return value / factor, value * factor


def estimate_parts(
    search: Search, row: Row, frames: np.ndarray, noise: tuple[float, float]
) -> Parts:
    """Noise, bias, variance and covariance of heads, variances over bootstrap samples of the keys.

    Args:
        search: data, and the reporting rows.
        row: setting and error.
        frames: (H, d, d_k).
        noise: interval from :func:`noise_interval`.
    """
    rows = search.reporters[:QUERIES]
    count = len(search.data.groups)
    rng = np.random.default_rng([search.seed, 5])
    assert row.setting is not None
    rule = row.setting.rule
    temperature = row.setting.temperature
    samples = []
    for _ in range(RESAMPLES):
        keys = search.subset(rng, count, replace=True)
        predicted = search.predictions(rows, frames, {rule: np.array([temperature])}, keys)
        samples.append(predicted[rule][0])
    deviation = np.stack(samples) - np.mean(samples, axis=0)
    matrix = np.einsum("bhqo,bgqo->hg", deviation, deviation)
    matrix /= (len(samples) - 1) * deviation[0, 0].size
    matrix[np.abs(matrix) < ROUNDING] = 0.0
    heads = len(frames)
    variance = float(np.trace(matrix) / heads)
    of_mean = float(matrix.mean())
    covariance = (of_mean * heads - variance) / (heads - 1) if heads > 1 else np.nan
    kept = of_mean / variance if variance > 0 else np.nan
    least = row.error - WIDE * row.standard_error - noise[1] - of_mean
    most = row.error + WIDE * row.standard_error - noise[0] - of_mean
    return Parts(noise, (max(least, 0.0), max(most, 0.0)), variance, covariance, kept, row.error)
