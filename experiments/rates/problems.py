"""Problems of the law ``rates``: a lacunary target, heads with nuisance coordinates of their own.

Both roads take the problems from here; the best bandwidths are those of first-order theory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from sims.problem import DESIGNS, TARGETS, Heads, Task, TrigonometricSeries

from .closed_forms import Moments, best, moments
from .pools import POOLS

LARGEST, WIDEST, RELEVANT = 8, 4, 2
"""Heads, width and relevant coordinates that every problem is filled up to: one compiled shape."""
DIMENSION = RELEVANT + LARGEST * (WIDEST - RELEVANT)
KEYS = 4.0 ** np.arange(4, 28)
"""Numbers of keys of theory, from 256 to 10^16; the simulated ones are the first of them."""
SATURATION = 2.0
"""The smoothness from which on a kernel of second order gains nothing."""


@dataclass(frozen=True)
class Problem:
    """One problem of the law.

    Attributes:
        drawn: the law's fields.
    """

    drawn: Mapping[str, Any]

    @property
    def width(self) -> int:
        """d_k: the relevant coordinates, which all heads share, and nuisances of a head's own."""
        return int(self.drawn["relevant"] + self.drawn["nuisance"])

    @property
    def exponent(self) -> float:
        """The exponent stated for one head: −2β/(2β + d_k), β at most 2."""
        twice = 2 * min(self.drawn["smoothness"], SATURATION)
        return float(-twice / (twice + self.width))

    @cached_property
    def target(self) -> TrigonometricSeries:
        """Lacunary in the relevant coordinates, constant in the others of :data:`RELEVANT`."""
        count = self.drawn["relevant"]
        series = TARGETS["holder"](
            count,
            seed=self.drawn["target"],
            beta=self.drawn["smoothness"],
            levels=self.drawn["levels"],
        )
        return series.padded(RELEVANT - count)

    @cached_property
    def queries(self) -> np.ndarray:
        """Normal in the relevant coordinates, 0 elsewhere, (Q, :data:`RELEVANT`)."""
        shape = self.drawn["query_count"], self.drawn["relevant"]
        drawn = self.drawn["reach"] * np.random.default_rng(self.drawn["queries"]).normal(
            size=shape
        )
        return np.pad(drawn, ((0, 0), (0, RELEVANT - shape[1])))

    @cached_property
    def bandwidths(self) -> np.ndarray:
        """The grid on which the best is sought: to a tenth of the rate's at the most keys."""
        rate = 2 * min(self.drawn["smoothness"], SATURATION) + self.drawn["relevant"]
        return np.geomspace(0.1 * KEYS[-1] ** (-1 / rate), 4.0, 96)

    @cached_property
    def moments(self) -> Moments:
        """Of one head without its nuisance coordinates, on that grid."""
        computed = moments(
            self.target,
            self.queries,
            self.bandwidths,
            float(self.drawn["relevant"]),
            self.drawn["noise_sd"],
        )
        return jax.tree.map(np.asarray, computed)

    def best(self, pool: str, n: np.ndarray) -> dict[str, np.ndarray]:
        """The best bandwidth of a pool of heads, one of :data:`POOLS`, by theory."""
        count = dict(zip(POOLS, (1, self.drawn["heads"], np.inf), strict=True))[pool]
        return best(self.moments, self.bandwidths, n, count, self.drawn["nuisance"])

    def simulated(self, pool: str, n: int) -> tuple[Task, Heads, int, np.ndarray]:
        """Task, heads at their best bandwidth, n and queries, with every head repeated up to 8."""
        relevant, extra = self.drawn["relevant"], self.drawn["nuisance"]
        count = 1 if pool == POOLS[0] else self.drawn["heads"]
        frames = np.zeros((LARGEST, DIMENSION, WIDEST))
        for head, frame in enumerate(frames):
            first = RELEVANT + (WIDEST - RELEVANT) * (head % count)
            seen = [*range(relevant), *range(first, first + extra)]
            frame[seen, np.arange(len(seen))] = 1.0
        pad = DIMENSION - RELEVANT
        task = Task(
            DESIGNS["isotropic"](DIMENSION), self.target.padded(pad), self.drawn["noise_sd"]
        )
        heads = Heads(frames, "gaussian", float(self.best(pool, np.array([n]))["bandwidth"][0]))
        return task, heads, n, np.pad(self.queries, ((0, 0), (0, pad)))
