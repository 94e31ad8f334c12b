"""Problems of the law ``merging``: two heads over a sequence of keys, one by one or s to a slot.

Both roads take the problems from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sims.problem import FRAMES, TARGETS, SequenceDesign, TrigonometricSeries

DIMENSION, HEADS, FEATURES = 4, 2, 8
GRID = 2.0 ** (np.arange(15) / 2 - 4)
"""Bandwidths that are tried, over the drawn one: temperatures from 1/256 to 64 times its own."""


@dataclass(frozen=True)
class Problem:
    """One problem of the law.

    Attributes:
        drawn: the law's fields.
    """

    drawn: Mapping[str, Any]

    @cached_property
    def design(self) -> SequenceDesign:
        """Keys of an autoregression with no root, one or two equal ones."""
        root = self.drawn["persistence"] if self.drawn["correlated"] else 0.0
        return SequenceDesign(np.eye(DIMENSION), (root, root if self.drawn["smooth"] else 0.0))

    @cached_property
    def target(self) -> TrigonometricSeries:
        """A random field."""
        words = {"seed": self.drawn["target"], "lengthscale": self.drawn["lengthscale"]}
        return TARGETS["rbf"](DIMENSION, features=FEATURES, **words)

    @cached_property
    def frames(self) -> np.ndarray:
        """Of the two heads, (H, d, d_k)."""
        drawn = self.drawn
        return np.asarray(FRAMES["haar"](DIMENSION, HEADS, drawn["width"], drawn["frames"]))

    @property
    def bandwidth(self) -> float:
        """The drawn bandwidth; the temperature is its square."""
        drawn = self.drawn
        return float(
            drawn["bandwidth"] * (drawn["width"] ** 0.5 if drawn["kernel"] == "gaussian" else 1)
        )

    @cached_property
    def queries(self) -> np.ndarray:
        """Points of the design, shrunk, (Q, d)."""
        drawn, shape = self.drawn, (self.drawn["query_count"], DIMENSION)
        return np.asarray(
            drawn["reach"] * np.random.default_rng(drawn["queries"]).normal(size=shape)
        )

    @cached_property
    def raw_gates(self) -> np.ndarray:
        """Normal numbers that gates are made of: a place's, (s,), or a direction of keys, (d,)."""
        drawn = self.drawn
        fixed = drawn["gates"] in ("mean", "fixed")
        normal = np.random.default_rng(drawn["weights"]).normal(
            size=drawn["stride"] if fixed else DIMENSION
        )
        return np.asarray(normal if fixed else normal / np.linalg.norm(normal))

    @property
    def gates(self) -> np.ndarray | None:
        """Gates of sum 1 that all chunks share, (s,); None where they depend on the keys."""
        if self.drawn["gates"] == "mean":
            return np.full(self.drawn["stride"], 1 / self.drawn["stride"])
        if self.drawn["gates"] == "fixed":
            raw = np.exp(self.drawn["spread"] * self.raw_gates)
            return np.asarray(raw / raw.sum())
        return None
