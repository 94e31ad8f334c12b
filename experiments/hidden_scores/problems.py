"""Problems of the law ``hidden_scores``: a stack of layers, and a head of a second layer.

Both methods take the problems from here.
"""

import numpy as np

from sims.problem import TrigonometricSeries
from sims.study.problem import Drawn

QUERIES = 16
FACTORS = 2.0 ** (np.arange(-4, 5) / 2)
"""Bandwidths that are tried for the head, over the drawn one."""
DRAWN = 4
"""Place of the drawn one."""


class Problem(Drawn):
    """One problem of the law."""

    @property
    def views(self) -> np.ndarray:
        """Directions that the head sees in the first and in the second layer, (2, 2)."""
        turn = np.deg2rad(self["angle"])
        return np.array([[np.cos(turn), np.sin(turn)], [1.0, 0.0]])

    @property
    def target(self) -> TrigonometricSeries:
        """Regression function: a wave along each coordinate, the second layer's view last."""
        frequency = self["frequency"] * np.eye(2)[::-1]
        phases = self.rng("phases").uniform(0, 2 * np.pi, 2)
        return TrigonometricSeries([self["relevance"], 1.0], frequency, phases)

    @property
    def queries(self) -> np.ndarray:
        """Queries of the head, (Q, 2)."""
        return self["reach"] * self.rng("queries").normal(size=(QUERIES, 2))

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the head's kernel."""
        name = "bandwidth" if self["kernel"] == "gaussian" else "softmax_bandwidth"
        return self[name]
