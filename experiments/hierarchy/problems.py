"""Problems of the law ``hierarchy``: a target on scales, keys in a block, and scales to be mixed.

Both methods take the problems from here.
"""

import numpy as np

from sims.problem import TrigonometricSeries
from sims.study.problem import Drawn

QUERIES = 16
KEPT = np.arange(1, 7)
"""Numbers of levels kept, at most; of a problem half of its target's levels."""


class Problem(Drawn):
    """One problem of the law."""

    @property
    def levels(self) -> int:
        """Levels of the target: the coarsest has two tokens."""
        return int(np.log2(self["tokens"]))

    @property
    def taps(self) -> np.ndarray:
        """Taps of every down-sampling, of norm 1: weights say what a level weighs."""
        taps = self.rng("taps").normal(size=self["tap_count"])
        return taps / np.linalg.norm(taps)

    @property
    def spectrum(self) -> np.ndarray:
        """Weights λ* of the target's levels, of sum 1."""
        level = np.arange(self.levels)
        weights = {
            "geometric": self["ratio"] ** level,
            "power law": (1.0 + level) ** -self["power"],
            "any order": self.rng("order").exponential(size=self.levels),
        }[self["target"]]
        return weights / weights.sum()

    @property
    def models(self) -> np.ndarray:
        """Weights of models of :data:`KEPT` first levels: the target's, renormalised, (kept, l)."""
        weights = self.spectrum * (np.arange(self.levels) < KEPT[:, None])
        return weights / weights.sum(1, keepdims=True)

    @property
    def singular_values(self) -> np.ndarray:
        """Singular values of every form M_l, falling from 1; a head keeps the leading ones."""
        return self["decay"] ** np.arange(self["width"])

    @property
    def bandwidths(self) -> np.ndarray:
        """Bandwidths of the scales that are mixed."""
        return self["finest"] * self["step"] ** np.arange(self["scales"])

    @property
    def shares(self) -> np.ndarray:
        """Weights of these scales, uniform on the simplex."""
        return self.rng("shares").dirichlet(np.ones(self["scales"]))

    @property
    def arms(self) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidths of single estimators, and the weights (arm, estimator) that make an arm.

        Scales mixed in scores are one estimator of squared bandwidth ``1/Σλ_l h_l⁻²``, in outputs
        an ensemble; the third arm is one bandwidth of the ensemble's mean square ``Σλ_l h_l²``.
        """
        h = self.bandwidths
        share = self.shares
        in_scores = (share @ h**-2.0) ** -0.5
        single = (share @ h**2) ** 0.5
        mix = np.zeros((3, 2 + len(h)))
        mix[[0, 2], [0, 1]] = 1
        mix[1, 2:] = share
        return np.array([in_scores, single, *h]), mix

    @property
    def queries(self) -> np.ndarray:
        """Queries of the mixtures, (Q, d_k)."""
        return self["reach"] * self.rng("queries").normal(size=(QUERIES, self["views"]))

    @property
    def target(self) -> TrigonometricSeries:
        """Wave along the first coordinate of keys."""
        frequency = self["frequency"] * np.eye(1, self["views"])
        return TrigonometricSeries([1.0], frequency, [self["phase"]])
