"""Decomposition of an ensemble's error, estimated from data."""

from dataclasses import dataclass

import numpy as np

from sims.advise.leakage import near_pairs
from sims.advise.reading import Data, draw_groups
from sims.advise.search import ROUNDING, Search
from sims.advise.table import Row, standard_error

RESAMPLES = 30
"""Bootstrap samples of the keys' groups."""
QUERIES = 100
"""Number of rows predicted from each sample."""
NEAR = 0.001
"""Largest squared distance of near rows, relative to the mean."""
NEAR_ROWS = 30
"""Minimum number of groups of near rows to estimate the noise."""
MATERIAL = 0.02
"""Share of the outputs' variance by which noise and variance exceed twice the error of copies."""
WIDE = 2.0
"""Standard errors from an estimate to the ends of its interval."""


@dataclass(frozen=True)
class Parts:
    """Estimated parts of the error, in units of the outputs' variance; none exceeds the error.

    Attributes:
        noise: 95 % interval of the label noise; its lower end is 0 if only an upper bound is known.
        bias: interval of the squared bias: the error minus the other parts, at least 0.
        variance: variance of the ensemble over samples of the groups.
        kept: share of a head's variance that averaging keeps; NaN without variance.
        error: leave-one-out error in the table of methods.
        dependent: whether noise and variance clearly exceed the error, as copies make them do.
    """

    noise: tuple[float, float]
    bias: tuple[float, float]
    variance: float
    kept: float
    error: float
    dependent: bool


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
    pairs, distances = near_pairs(x, groups, radius)
    pairs = pairs[:, distances <= np.sort(distances)[: len(x)].max(initial=0.0)]
    first, second = data.outputs[pairs]
    ends = groups[pairs]
    if len(np.unique(ends)) < NEAR_ROWS:
        return 0.0, min(log_interval(row.error, row.standard_error)[1] for row in rows)
    halves = 0.5 * ((first - second) ** 2).mean(1)
    excess = halves - halves.mean()
    of_groups = np.bincount(ends.ravel(), np.tile(excess, 2))
    squares_less_own = (of_groups**2).sum() - (excess**2).sum()
    return log_interval(float(halves.mean()), max(squares_less_own, 0.0) ** 0.5 / len(excess))


def log_interval(value: float, error: float) -> tuple[float, float]:
    """95 % interval of a mean of squares with this standard error, symmetric in its logarithm."""
    factor = float(np.exp(WIDE * error / value)) if value > 0 else 1.0
    return value / factor, value * factor


def estimate_parts(
    search: Search, row: Row, frames: np.ndarray, noise: tuple[float, float]
) -> Parts:
    """Noise, bias and variance of heads; the variance is over bootstrap samples of complete groups.

    Args:
        search: data, and the reporting rows.
        row: setting and error.
        frames: (H, d, d_k).
        noise: interval from :func:`noise_interval`.
    """
    rows = search.reporters[:QUERIES]
    groups = search.data.groups
    rng = np.random.default_rng([search.seed, 5])
    assert row.setting is not None
    rule = row.setting.rule
    grid = {rule: np.array([row.setting.temperature])}
    samples = []
    for _ in range(RESAMPLES):
        keys = draw_groups(groups, rng, replace=True)
        samples.append(search.predictions(rows, frames, grid, keys)[rule][0])
    heads = float(np.var(samples, axis=0, ddof=1).mean())
    of_rows = np.var(np.mean(samples, axis=1), axis=0, ddof=1).mean(-1)
    variance = float(of_rows.mean()) if heads > ROUNDING else 0.0
    error = row.error
    low, high = noise
    margin = WIDE * row.standard_error
    least = error - margin - high - variance
    most = error + margin - low - variance
    excess = low + variance - 2 * error
    uncertainty = np.hypot(2 * row.standard_error, standard_error(of_rows, groups[rows]))
    return Parts(
        noise=(min(low, error), min(high, error)),
        bias=(max(least, 0.0), min(max(most, 0.0), error)),
        variance=min(variance, error),
        kept=variance / heads if heads > ROUNDING else np.nan,
        error=error,
        dependent=bool(excess > max(MATERIAL, WIDE * uncertainty)),
    )
