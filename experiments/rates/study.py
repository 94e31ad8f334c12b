"""The error of one head and of averaged ones at their best bandwidths, by the number of keys."""

from typing import TYPE_CHECKING

from sims.study.modular import ModularStudy, from_module

from .pools import POOLS
from .problems import Problem

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class Rates(ModularStudy[Problem]):
    """Slopes of the error in the number of keys, from 256 to 10^16 by first-order theory."""

    panels = from_module("statistic")
    numbers = from_module("figure")
    problem = staticmethod(Problem)

    def units(self) -> "dict[str, SampledUnit]":
        """All simulated problems at each n; of two places of ``problem`` the first is one head."""
        from sims.simulation.many import averages_sampler
        from sims.study.units import SampledUnit

        units = {}
        for n in self.settings["sizes"]:
            problems = []
            streams = []
            for number in range(self.simulated):
                for pool in POOLS[:2]:
                    problems.append(self.draw(number).simulated(pool, n))
                    streams.append((n, number))
            sampler = averages_sampler(problems, streams, self.simulation.precision)
            units[f"n = {n}"] = SampledUnit(sampler, {"n": n})
        return units
