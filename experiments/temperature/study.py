"""Errors of attention rules whose temperature stays while the context grows."""

from typing import TYPE_CHECKING

import xarray as xr

from sims.study.modular import ModularStudy, from_module
from sims.study.study import Fields

from .problems import Problem, tuned

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class Temperature(ModularStudy[Problem]):
    """Kept, best and learned temperatures of one head's tasks."""

    panels = from_module("statistic")

    def problem(self, fields: Fields) -> Problem:
        analytic = fields["family"] == "analytic"
        return Problem(fields | {"smoothness": 2.0} if analytic else fields)

    def units(self) -> "dict[str, SampledUnit]":
        """The tasks of all problems at once."""
        from sims.study.units import SampledUnit

        from .simulate import tasks_sampler

        every = [self.draw(number) for number in range(self.simulated)]
        tasks = tasks_sampler(every, self.simulation.seed, self.settings["learning"])
        return {"tasks": SampledUnit(tasks, {})}

    def predictions(self) -> dict[str, xr.Dataset]:
        """All problems in one point, as of :func:`~.problems.tuned`, with what was drawn."""
        every = [self.draw(number) for number in range(self.predicted)]
        drawn = {k: ("number", [problem.drawn[k] for problem in every]) for k in every[0].drawn}
        return {"law": tuned(every).assign(drawn)}
