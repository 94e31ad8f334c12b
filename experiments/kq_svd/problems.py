"""Problems of the law ``kq_svd``: maps of tokens to keys, queries and values."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from sims.study.problem import Drawn, Fields


@dataclass(frozen=True)
class Problem(Drawn):
    """A key head of width d and m query heads on it.

    A token z ~ N(0, I) of R^{2d} has the key ``k = z_1…d · of_keys + mean`` and values ``z ·
    of_values``; a query token x ~ N(0, I) of R^d has the queries ``x · of_queries[h]``.

    Attributes:
        of_keys: (d, d).
        of_queries: (m, d, d).
        of_values: (2d, d).
        mean: of the keys, (d,).
    """

    of_keys: np.ndarray
    of_queries: np.ndarray
    of_values: np.ndarray
    mean: np.ndarray

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
    return Problem(drawn, of_keys, of_queries, of_values, mean)
