"""Problems of the law ``hierarchy``: a target on scales, keys in a block, and scales to be mixed.

Both methods take the problems from here.
"""

import numpy as np

from sims.study.problem import Drawn

QUERIES = 16
KEPT = tuple(range(1, 7))
"""Numbers of levels kept, at most; of a problem half of its target's levels."""


class Problem(Drawn):
    """One problem of the law."""

    @property
    def levels(self) -> int:
        """Levels of the target: the coarsest has two tokens."""
        return int(np.log2(self.drawn["tokens"]))

    @property
    def taps(self) -> np.ndarray:
        """Taps of every down-sampling, of norm 1: weights say what a level weighs."""
        taps = self.rng("taps").normal(size=self.drawn["tap_count"])
        return taps / np.linalg.norm(taps)

    @property
    def spectrum(self) -> np.ndarray:
        """Weights λ* of the target's levels, of sum 1."""
        level = np.arange(self.levels)
        weights = {
            "geometric": self.drawn["ratio"] ** level,
            "power law": (1.0 + level) ** -self.drawn["power"],
            "any order": self.rng("order").exponential(size=self.levels),
        }[self.drawn["target"]]
        return weights / weights.sum()

    def model(self, count: int) -> np.ndarray:
        """Weights of the model that has the first levels alone: the target's, renormalised."""
        head = np.where(np.arange(self.levels) < count, self.spectrum, 0.0)
        return head / head.sum()

    @property
    def singular_values(self) -> np.ndarray:
        """Singular values of every form M_l, falling from 1; a head keeps the leading ones."""
        return self.drawn["decay"] ** np.arange(self.drawn["width"])

    @property
    def bandwidths(self) -> np.ndarray:
        """Bandwidths of the scales that are mixed."""
        steps = np.arange(self.drawn["scales"])
        return self.drawn["finest"] * self.drawn["step"] ** steps

    @property
    def shares(self) -> np.ndarray:
        """Weights of these scales, uniform on the simplex."""
        return self.rng("shares").dirichlet(np.ones(self.drawn["scales"]))

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
        mix[0, 0] = 1
        mix[1, 2:] = share
        mix[2, 1] = 1
        return np.array([in_scores, single, *h]), mix

    @property
    def queries(self) -> np.ndarray:
        """Queries of the mixtures, (Q, d_k)."""
        drawn = self.rng("queries").normal(size=(QUERIES, self.drawn["views"]))
        return self.drawn["reach"] * drawn
