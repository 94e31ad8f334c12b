"""Problems of the law ``hidden_scores``: a stack of layers, and a head of a second layer.

Both methods take the problems from here.
"""

import numpy as np

from sims.study.problem import Drawn

QUERIES = 16


class Problem(Drawn):
    """One problem of the law."""

    @property
    def views(self) -> np.ndarray:
        """Directions that the head sees in the first and in the second layer, (2, 2)."""
        turn = np.deg2rad(self.drawn["angle"])
        return np.array([[np.cos(turn), np.sin(turn)], [1.0, 0.0]])

    @property
    def waves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Amplitudes (2,), frequencies (2, 2) and phases (2,) of the regression function.

        The first wave is along the second coordinate, the other along the view of the second layer.
        """
        amplitude = np.array([self.drawn["relevance"], 1.0])
        frequency = self.drawn["frequency"] * np.array([[0.0, 1.0], [1.0, 0.0]])
        return amplitude, frequency, self.rng("phases").uniform(0, 2 * np.pi, 2)

    @property
    def queries(self) -> np.ndarray:
        """Queries of the head, (Q, 2)."""
        drawn = self.rng("queries").normal(size=(QUERIES, 2))
        return self.drawn["reach"] * drawn

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the head's kernel."""
        name = "bandwidth" if self.drawn["kernel"] == "gaussian" else "softmax_bandwidth"
        return float(self.drawn[name])
