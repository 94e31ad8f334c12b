"""Shared label noise of three heads of one rule, at two angles to the first."""

from typing import TYPE_CHECKING

from sims.study.modular import ModularStudy

from .problems import Problem

if TYPE_CHECKING:
    from sims.montecarlo import Sampler


class Angles(ModularStudy[Problem]):
    """Noise correlations by simulation and by the angle series."""

    problem = staticmethod(Problem)

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import noise_sampler

        return noise_sampler(problem, self.settings["queries"])
