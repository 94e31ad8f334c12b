"""Problems of the law ``hierarchy``: a target on scales, and keys in a block.

Both methods take the problems from here.
"""

import numpy as np

from sims.study.problem import Drawn

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
