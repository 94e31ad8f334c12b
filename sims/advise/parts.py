"""The decomposition of an ensemble's error, estimated from data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sims.advise.reading import Data
    from sims.advise.search import Search, Setting

RESAMPLES, QUERIES, NEIGHBOURS = 30, 100, 10
"""Bootstrap samples of the keys, rows that are predicted from each, and neighbours whose
differences tell the noise."""


@dataclass(frozen=True)
class Parts:
    """Estimated parts of the error, in units of the outputs' variance.

    Attributes:
        noise: of the labels, by differences of near rows.
        bias: squared; what the other parts leave of the error, 0 at least.
        variance: mean over heads, each by itself.
        covariance: mean over pairs of heads; NaN for one head.
        kept: share of a head's variance that averaging keeps.
        error: leave-one-out, of the same rows.
    """

    noise: float
    bias: float
    variance: float
    covariance: float
    kept: float
    error: float


def noise_level(data: "Data") -> float:
    """The variance of label noise, extrapolated from differences of near rows to distance 0.

    ½(y_i − y_j)² of the k-th nearest row j, averaged over i, is linear in the mean squared distance
    to leading order; the intercept of the line through k = 1 … 10 is the noise (the Gamma test;
    Evans & Jones 2002). Clipped to [0, least mean]. Neighbours are of other groups.
    """
    from sklearn.neighbors import NearestNeighbors

    x, y, groups = data.features, data.outputs, data.groups
    most = min(len(x) - 1, NEIGHBOURS + int(np.bincount(groups).max()))
    distance, place = NearestNeighbors(n_neighbors=most + 1).fit(x).kneighbors(x)
    elsewhere = groups[place] != groups[:, None]
    count = min(NEIGHBOURS, int(elsewhere.sum(1).min()))
    order = np.argsort(~elsewhere, axis=1, kind="stable")[:, :count]
    neighbours = np.take_along_axis(place, order, 1)
    halves = 0.5 * ((y[:, None] - y[neighbours]) ** 2).mean(axis=(0, 2))
    squares = (np.take_along_axis(distance, order, 1) ** 2).mean(0)
    if len(halves) < 3 or np.ptp(squares) == 0:
        return float(halves.min())
    return float(np.clip(np.polyfit(squares, halves, 1)[1], 0, halves.min()))


def estimated_parts(search: "Search", setting: "Setting", frames: np.ndarray) -> Parts:
    """Noise, bias, variance and covariance of heads, variances over bootstrap samples of the keys.

    Args:
        search: data, and the rows that report.
        setting: rule and temperature.
        frames: (H, d, d_k).
    """
    rows, count = search.reporters[:QUERIES], len(search.data.groups)
    rng = np.random.default_rng([search.seed, 5])
    temperatures = {setting.rule: np.array([setting.temperature])}

    def predicted(keys: np.ndarray | None) -> np.ndarray:
        return search.predictions(rows, frames, temperatures, keys)[setting.rule][0]

    samples = [predicted(search.subset(rng, count, replace=True)) for _ in range(RESAMPLES)]
    deviation = np.stack(samples) - np.mean(samples, axis=0)
    matrix = np.einsum("bhqo,bgqo->hg", deviation, deviation)
    matrix /= (len(samples) - 1) * deviation[0, 0].size
    heads = len(frames)
    variance, of_mean = float(np.trace(matrix) / heads), float(matrix.mean())
    covariance = (of_mean * heads - variance) / (heads - 1) if heads > 1 else np.nan
    losses = search.losses(rows, predicted(None).mean(0))
    error, noise = float(losses.mean()), noise_level(search.data)
    bias = max(error - noise - of_mean, 0.0)
    return Parts(noise, bias, variance, covariance, of_mean / variance, error)
