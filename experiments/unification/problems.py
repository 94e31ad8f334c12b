"""Problems of the law ``unification``: two pools of agents, the second more diverse by a mechanism.

Heads: a wider common angle; trees: bootstrap samples, or fewer features tried at a split; ants:
more initial pheromone, so that the first ones explore. Both methods take the problems from here.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sims.base.arrays import fill_up
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task, TrigonometricSeries
from sims.study.problem import Drawn
from sims.theory import first_order_terms, noise_for_share

MOST_HEADS = 16
"""Heads that a set is filled up to by repeating them: one compiled shape."""
WIDEST_HEAD = 2
"""Width that heads are filled up to."""
DIMENSION = MOST_HEADS * WIDEST_HEAD


@dataclass(frozen=True)
class Problem(Drawn):
    """One problem of the law.

    Attributes:
        noise_sd: of the labels of heads and trees.
    """

    noise_sd: float

    @property
    def dimension(self) -> int:
        """Dimension of the keys of heads, or of the features of trees."""
        return DIMENSION if self["kind"] == "heads" else self["features"]

    @property
    def mechanism(self) -> str:
        """The mechanism of diversity, with the kind of agents."""
        names = {
            "heads": f"angle, {self['kernel']} heads",
            "trees": "bagging" if self["bagging"] else "random features",
            "ants": f"exploration, trails {'evaporate' if self['evaporates'] else 'last'}",
        }
        return names[self["kind"]]

    @cached_property
    def target(self) -> TrigonometricSeries:
        """Target of heads and trees: a random field whose coordinates matter less and less."""
        scale = self["lengthscale"]
        return TARGETS["decaying"](self.dimension, self["target"], self["decay"], scale, 32)

    @cached_property
    def queries(self) -> np.ndarray:
        """Queries of heads and trees, (Q, d)."""
        rng = self.rng("queries")
        if self["kind"] == "heads":
            return self["reach"] * rng.normal(size=(16, self.dimension))
        return rng.normal(size=(64, self.dimension))

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the heads; for softmax heads a temperature, its square, is drawn."""
        drawn = self["bandwidth"]
        if self["kernel"] == "softmax":
            return drawn**0.5
        return self["width"] ** 0.5 * drawn

    @property
    def heads(self) -> list[tuple[Task, Heads, int, np.ndarray]]:
        """The problems of the two sets of heads, at one angle each."""
        task = Task(DESIGNS["isotropic"](DIMENSION), self.target, self.noise_sd)
        agents = self["agents"]
        sets = []
        for angle in (self["near"], self["apart"]):
            few = FRAMES["equiangular"](
                DIMENSION, agents, self["width"], self["frames"], angle=angle
            )
            wide = fill_up(np.asarray(few), WIDEST_HEAD)
            heads = Heads(
                np.tile(wide, (MOST_HEADS // agents, 1, 1)), self["kernel"], self.bandwidth
            )
            sets.append((task, heads, self["keys"], self.queries))
        return sets

    @property
    def forests(self) -> list[dict[str, Any]]:
        """Options of scikit-learn for the two pools of trees."""
        if self["bagging"]:
            return [{"bootstrap": False}, {"bootstrap": True}]
        few = max(1, round(self["tried"] * self.dimension))
        return [{"bootstrap": True}, {"bootstrap": True, "max_features": few}]

    @property
    def colonies(self) -> list[tuple[float, float]]:
        """Initial pheromone and evaporation of the two pools of ants."""
        few = self["initial"]
        lost = self["evaporates"] * self["evaporation"]
        return [(few, lost), (few * self["more"], lost)]


def solve_noise(problem: Problem) -> Problem | None:
    """Heads with label noise that gives variance the drawn share of the error; None without.

    The error is that of the diverse pool to first order.
    """
    terms = first_order_terms(*replace(problem, noise_sd=1.0).heads[1])  # in its range or not
    with np.errstate(invalid="ignore"):  # where a cold softmax head has no first-order terms
        square = noise_for_share(terms, problem["share"])
    return replace(problem, noise_sd=square**0.5) if 1e-6 < square < 1e6 else None
