"""Shared label noise of three heads of one rule, at two angles to the first."""

from typing import TYPE_CHECKING

from sims.study.study import Fields, Study, from_module

from .problems import Problem

if TYPE_CHECKING:
    from sims.montecarlo import Sampler


class Angles(Study[Problem]):
    """Noise correlations by simulation and by the angle series."""

    theory = from_module("predict")
    effects = from_module("statistic")
    parameters = from_module("statistic")
    figure = from_module("figure")

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import noise_sampler

        return noise_sampler(problem, self.settings["queries"])
