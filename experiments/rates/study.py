"""The error of one head and of averaged ones at their best bandwidths, by the number of keys."""

from typing import TYPE_CHECKING, Any

from sims.study.study import Fields, Study, from_module

from .pools import POOLS
from .problems import Problem

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class Rates(Study[Problem]):
    """Slopes of the error in the number of keys, from 256 to 10^16 by first-order theory."""

    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    panels = from_module("statistic")
    figure = from_module("figure")
    numbers = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def units(self) -> "dict[str, SampledUnit]":
        """All simulated problems at each n; of two places of ``problem`` the first is one head."""
        from sims.simulation.engine import sampler_of
        from sims.simulation.many import ProblemsSampler
        from sims.study.units import SampledUnit

        precision = self.simulation.precision
        options: dict[str, Any] = {"keep_queries": False}
        units = {}
        for n in self.settings["sizes"]:
            members = []
            streams = []
            for number in range(self.simulated):
                problem = self.draw(number)
                for pool in POOLS[:2]:
                    sampler, _ = sampler_of(
                        *problem.simulated(pool, n), precision=precision, **options
                    )
                    members.append(sampler)
                    streams.append((n, number))
            units[f"n = {n}"] = SampledUnit(ProblemsSampler(members, streams), {"n": n})
        return units
