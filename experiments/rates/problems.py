"""Problems of the law ``rates``: a lacunary target, and heads that each see nuisance coordinates.

Both methods take the problems from here; the best bandwidths are those of first-order theory.
"""

from functools import cached_property

import jax
import numpy as np

from sims.base.arrays import fill_up
from sims.problem import DESIGNS, TARGETS, Heads, Task, TrigonometricSeries
from sims.study.problem import Drawn
from sims.theory.first_order.isotropic import Moments, best, moments

from .pools import POOLS

MOST_HEADS, WIDEST_HEAD, RELEVANT = 8, 4, 2
"""Heads, width and relevant coordinates that every problem is filled up to: one compiled shape."""
EMPTY = MOST_HEADS * (WIDEST_HEAD - RELEVANT)
"""Coordinates for nuisances."""
KEYS = 4.0 ** np.arange(4, 28)
"""Numbers of keys of theory, from 256 to 10^16; the simulated ones are the first of them."""
SATURATION = 2.0
"""The smoothness from which on a kernel of second order gains nothing."""


class Problem(Drawn):
    """One problem of the law."""

    @property
    def width(self) -> int:
        """d_k: the relevant coordinates, which all heads share, and the nuisances of one head."""
        return self["relevant"] + self["nuisance"]

    @property
    def exponent(self) -> float:
        """The exponent stated for one head: −2β/(2β + d_k), β at most 2."""
        twice = 2 * min(self["smoothness"], SATURATION)
        return -twice / (twice + self.width)

    @cached_property
    def target(self) -> TrigonometricSeries:
        """Lacunary in the relevant coordinates, constant in the others of :data:`RELEVANT`."""
        count = self["relevant"]
        series = TARGETS["holder"](count, self["target"], self["smoothness"], self["levels"])
        return series.padded(RELEVANT - count)

    @cached_property
    def queries(self) -> np.ndarray:
        """Normal in the relevant coordinates, 0 elsewhere, (Q, :data:`RELEVANT`)."""
        normal = self.rng("queries").normal(size=(self["query_count"], self["relevant"]))
        return fill_up(self["reach"] * normal, RELEVANT)

    @cached_property
    def bandwidths(self) -> np.ndarray:
        """The grid on which the best is sought: to a tenth of the rate's at the most keys."""
        rate = 2 * min(self["smoothness"], SATURATION) + self["relevant"]
        return np.geomspace(0.1 * KEYS[-1] ** (-1 / rate), 4.0, 96)

    @cached_property
    def moments(self) -> Moments:
        """Of one head without its nuisance coordinates, on that grid."""
        width = float(self["relevant"])
        computed = moments(self.target, self.queries, self.bandwidths, width, self["noise_sd"])
        return jax.tree.map(np.asarray, computed)

    def best(self, pool: str, n: np.ndarray) -> dict[str, np.ndarray]:
        """The best bandwidth of a pool of heads, one of :data:`POOLS`, by theory."""
        count = dict(zip(POOLS, (1, self["heads"], np.inf), strict=True))[pool]
        return best(self.moments, self.bandwidths, n, count, self["nuisance"])

    def simulated(self, pool: str, n: int) -> tuple[Task, Heads, int, np.ndarray]:
        """Task, heads at their best bandwidth, n and queries, with every head repeated up to 8."""
        count = 1 if pool == POOLS[0] else self["heads"]
        frames = np.zeros((MOST_HEADS, RELEVANT + EMPTY, WIDEST_HEAD))
        for head, frame in enumerate(frames):
            first = RELEVANT + (WIDEST_HEAD - RELEVANT) * (head % count)
            nuisances = range(first, first + self["nuisance"])
            seen = [*range(self["relevant"]), *nuisances]
            frame[seen, np.arange(len(seen))] = 1.0
        design = DESIGNS["isotropic"](RELEVANT + EMPTY)
        task = Task(design, self.target.padded(EMPTY), self["noise_sd"])
        bandwidth = float(self.best(pool, np.array([n]))["bandwidth"][0])
        heads = Heads(frames, "gaussian", bandwidth)
        return task, heads, n, fill_up(self.queries, RELEVANT + EMPTY)
