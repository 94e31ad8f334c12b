"""Problems of the law ``merging``: two heads over a sequence of keys, one by one or s to a slot.

Both methods take the problems from here.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sims.problem import FRAMES, TARGETS, SequenceDesign, TrigonometricSeries
from sims.study.problem import Drawn

DIMENSION = 4
HEADS = 2
FEATURES = 8


@dataclass(frozen=True)
class Problem(Drawn):
    """One problem of the law.

    Attributes:
        tuned: best bandwidths over all keys, over slots and over every s-th key, whose squares are
            the temperatures.
        selectivity: effective keys of the former at theirs, a share of all keys.
    """

    tuned: tuple[float, ...] = (np.nan,) * 3
    selectivity: float = np.nan

    @cached_property
    def design(self) -> SequenceDesign:
        """Keys of an autoregression with no root, one or two equal ones."""
        root = self["persistence"] if self["correlated"] else 0.0
        return SequenceDesign(np.eye(DIMENSION), (root, root if self["smooth"] else 0.0))

    @cached_property
    def target(self) -> TrigonometricSeries:
        """A random field."""
        return TARGETS["rbf"](DIMENSION, self["target"], self["lengthscale"], FEATURES)

    @cached_property
    def frames(self) -> np.ndarray:
        """Frames of the two heads, (H, d, d_k)."""
        return np.asarray(FRAMES["haar"](DIMENSION, HEADS, self["width"], self["frames"]))

    @property
    def bandwidth(self) -> float:
        """The drawn bandwidth, the middle of the grid that is tried."""
        scale = self["width"] ** 0.5 if self["kernel"] == "gaussian" else 1.0
        return scale * self["bandwidth"]

    @cached_property
    def queries(self) -> np.ndarray:
        """Points of the design, shrunk, (Q, d)."""
        normal = self.rng("queries").normal(size=(self["query_count"], DIMENSION))
        return self["reach"] * normal

    @cached_property
    def raw_gates(self) -> np.ndarray:
        """Normal numbers that gates are made of: a place's, (s,), or a direction of keys, (d,)."""
        rng = self.rng("weights")
        if self["gates"] in ("mean", "fixed"):
            return rng.normal(size=self["stride"])
        direction = rng.normal(size=DIMENSION)
        return direction / np.linalg.norm(direction)

    @property
    def gates(self) -> np.ndarray | None:
        """Gates of sum 1 that all chunks share, (s,); None where they depend on the keys."""
        if self["gates"] == "mean":
            return np.full(self["stride"], 1 / self["stride"])
        if self["gates"] == "fixed":
            raw = np.exp(self["spread"] * self.raw_gates)
            return raw / raw.sum()
        return None
