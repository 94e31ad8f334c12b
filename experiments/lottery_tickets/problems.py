"""Problems of the law ``lottery_tickets``: targets of pruning, and widths of their sources."""

from dataclasses import dataclass

import numpy as np

from sims.study.problem import Drawn, Fields

ITEMS = np.array([6, 10, 14, 18])
"""Items an entry of sources that are searched: widths over d."""
FEW = 1
"""Place of the items at which scales are compared."""


@dataclass(frozen=True)
class Problem(Drawn):
    """A target of four heads, of which one is pruned, or some side by side, or in series.

    Attributes:
        target: W_QK and W_VO of each head, (4, 2, d, d).
    """

    target: np.ndarray

    @property
    def factors(self) -> np.ndarray:
        """What products of two U[−1, 1] are multiplied by at two scales of W_Q and W_K.

        Weights U[−s, s] have the factor s²/√n_K: n_K^{1/4} has 1, Xavier's √(6/(d + n_K)) less.
        """
        d = self["dimension"]
        width = d * ITEMS[FEW]
        return np.array([1.0, 6 / (d + width) / width**0.5])


def make_problem(drawn: Fields) -> Problem:
    """The problem of a law's fields.

    A matrix is a product of two normal ones, scaled to the drawn norm; W_QK to that over √d.
    """
    d = drawn["dimension"]
    left, right = np.random.default_rng(drawn["target"]).standard_normal((2, 4, 2, d, d))
    target = left @ right
    target *= drawn["norm"] / np.linalg.norm(target, 2, (-2, -1), keepdims=True)
    target[:, 0] /= d**0.5
    return Problem(drawn, target)
