"""Problems of the law ``kq_svd``: maps of tokens to keys, queries and values, and a regression."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import expm

from sims.attention.low_rank import kq_svd, stacked
from sims.base.arrays import fill_up
from sims.problem import DESIGNS, TARGETS, Heads, Task, TrigonometricSeries
from sims.study.problem import Drawn, Fields
from sims.theory import first_order_terms, noise_for_share

WIDEST_HEAD = 16
"""Width that heads of the regression are filled up to: one compiled shape."""
MOST_HEADS = 4
"""Heads that they are repeated to."""
NOISE_RANGE = (0.01, 100)
"""Least and largest variance of label noise."""
POINTS = 16
"""Queries at which the heads are judged as an estimator."""


@dataclass(frozen=True)
class Problem(Drawn):
    """A key head of width d and m query heads on it.

    A token z ~ N(0, I) of R^{2d} has the key ``k = z_1…d · of_keys + mean`` and values ``z ·
    of_values``; a query token x ~ N(0, I) of R^d has the queries ``x · of_queries[h]``. As an
    estimator the heads average m(z) about x.

    Attributes:
        of_keys: (d, d).
        of_queries: (m, d, d).
        of_values: (2d, d).
        mean: of the keys, (d,).
        points: query tokens of the regression, (POINTS, d).
    """

    of_keys: np.ndarray
    of_queries: np.ndarray
    of_values: np.ndarray
    mean: np.ndarray
    points: np.ndarray

    @property
    def rank(self) -> int:
        """Numbers kept of a key."""
        return round(self["width"] * self["rank_share"])

    @property
    def calibration(self) -> int:
        """Tokens of the calibration sample."""
        return round(self["calibration"])

    @property
    def key_moment(self) -> np.ndarray:
        """E kkᵀ, (d, d)."""
        return self.of_keys.T @ self.of_keys + np.outer(self.mean, self.mean)

    @property
    def query_moments(self) -> np.ndarray:
        """E qqᵀ by head, (m, d, d)."""
        return self.of_queries.swapaxes(1, 2) @ self.of_queries

    @property
    def temperature(self) -> float:
        """Divisor of the scores, which gives them the drawn standard deviation."""
        square = ((self.of_keys @ self.of_queries.swapaxes(1, 2)) ** 2).sum() / self["heads"]
        return float(square**0.5 / self["score_sd"])

    @cached_property
    def target(self) -> TrigonometricSeries:
        """m on R^d."""
        return TARGETS["rbf"](self["width"], self["target"], self["lengthscale"], 32)

    @cached_property
    def noise_sd(self) -> float:
        """Label noise that gives variance its drawn share of the error of heads not compressed.

        To first order, and within :data:`NOISE_RANGE`.
        """
        terms = first_order_terms(*self.regression(False, 1.0))  # in its range or not
        return float(np.clip(noise_for_share(terms, self["share"]), *NOISE_RANGE) ** 0.5)

    def regression(self, compressed: bool, noise_sd: float) -> tuple[Task, Heads, int, np.ndarray]:
        """The heads as an ensemble, plain or compressed by KQ-SVD calibrated without end.

        Heads are repeated to :data:`MOST_HEADS` and everything is filled up with zeros.
        """
        queries = self.of_queries
        keys = np.broadcast_to(self.of_keys, queries.shape)
        if compressed:
            rows = np.vstack([self.of_keys, self.mean])  # of the second moment of the keys
            maps = kq_svd(rows, stacked(queries), self.rank)
            keys = keys @ maps.key_map
            queries = queries @ maps.query_map
        frames = []
        for matrices in (queries, keys):
            wide = fill_up(matrices, WIDEST_HEAD, WIDEST_HEAD)
            frames.append(np.tile(wide, (MOST_HEADS // len(matrices), 1, 1)))
        heads = Heads(frames[0], "softmax", self.temperature**0.5, frames[1])
        target = self.target.padded(WIDEST_HEAD - self["width"])
        task = Task(DESIGNS["isotropic"](WIDEST_HEAD), target, noise_sd)
        return task, heads, self["tokens"], fill_up(self.points, WIDEST_HEAD)


def make_problem(drawn: Fields) -> Problem:
    """The problem of a law's fields.

    The keys' axes are those of space. Each head's queries are turned against them by a random
    rotation whose largest angle is the drawn one.
    """
    d = drawn["width"]
    rng = np.random.default_rng(drawn["axes"])
    normal = rng.standard_normal((drawn["heads"], d, d))
    turns = normal - normal.swapaxes(1, 2)
    turns *= np.deg2rad(drawn["angle"]) / np.linalg.norm(turns, 2, (1, 2))[:, None, None]
    axes = expm(turns)
    order = np.arange(1.0, d + 1)
    of_keys = drawn["balance"] * np.diag(order ** -drawn["key_decay"])
    of_queries = axes * order ** -drawn["query_decay"] @ axes.swapaxes(1, 2) / drawn["balance"]
    direction = rng.standard_normal(d)
    of_values = rng.standard_normal((2 * d, d))
    mean = direction * drawn["key_mean"] * np.linalg.norm(of_keys) / np.linalg.norm(direction)
    points = drawn["reach"] * rng.standard_normal((POINTS, d))
    return Problem(drawn, of_keys, of_queries, of_values, mean, points)
