"""Problems of the law ``angles``: three heads of one rule, at two angles to the first.

Both methods take the problems from here.
"""

from functools import cached_property

import numpy as np
from scipy import stats

from sims.problem import Heads
from sims.study.problem import Drawn
from sims.weights import FACTORIES, WeightRule

WIDEST = 2
"""Width that heads are filled up to by zero columns: one compiled shape."""
POWERS = {"sparsemax": 1.0, "1.5-entmax": 2.0}
"""ν of the rules whose radius the sample sets; the others are kernels of that name."""


class Problem(Drawn):
    """One problem of the law."""

    @property
    def rule(self) -> str | WeightRule:
        """The rule of weights: a kernel's name, or α-entmax of distances."""
        name = str(self["rule"])
        if name not in POWERS:
            return name
        return FACTORIES["entmax"](nu=POWERS[name], scores="distance")

    @cached_property
    def bandwidth(self) -> float:
        """Where the kernel has the drawn radius h; of adaptive rules for a query at the origin.

        The population radius of adaptive rules solves ``n E(h² − D²)₊^ν = (2b²ν)^ν``, D² ~ χ²(d_k).
        The Gaussian kernel, which has no radius, has the bandwidth h/3.
        """
        nu = POWERS.get(self["rule"])
        radius = self["radius"] * self["width"] ** 0.5
        if nu is None:
            return float(radius / 3 if self["rule"] == "gaussian" else radius)
        law = stats.chi2(self["width"])
        mean = law.expect(lambda square: (radius**2 - square) ** nu, ub=radius**2)
        return float(((self["keys"] * mean) ** (1 / nu) / (2 * nu)) ** 0.5)

    @property
    def cosines(self) -> np.ndarray:
        """Of the principal angles to the first head, as drawn and at half of them, (2, d_k)."""
        angles = np.array([self["first"], self["second"]])[: self["width"]]
        return np.cos(np.deg2rad([angles, angles / 2]))

    @cached_property
    def heads(self) -> Heads:
        """The first head and those at the angles of :attr:`cosines`, in R^4."""
        frames = np.zeros((3, 2 * WIDEST, WIDEST))
        aligned = np.ones(self["width"])
        for frame, cosines in zip(frames, [aligned, *self.cosines], strict=True):
            for i, c in enumerate(cosines):
                frame[i, i] = c
                frame[WIDEST + i, i] = (1 - c**2) ** 0.5
        return Heads(frames, self.rule, self.bandwidth)
