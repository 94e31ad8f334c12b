"""Errors of attention rules whose temperature stays while the context grows."""

from typing import TYPE_CHECKING

import xarray as xr

from sims.study.modular import ModularStudy, from_module
from sims.study.study import Fields

from .problems import Problem, tuned

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class Temperature(ModularStudy[Problem]):
    """Kept, best and learned temperatures of one head's tasks, and terms of two sparse heads."""

    panels = from_module("statistic")

    def problem(self, fields: Fields) -> Problem:
        analytic = fields["family"] == "analytic"
        return Problem(fields | {"smoothness": 2.0} if analytic else fields)

    def units(self) -> "dict[str, SampledUnit]":
        """The tasks of all problems; and the pairs of heads of each power and number of keys."""
        from sims.study.units import SampledUnit

        from .simulate import pairs_sampler, tasks_sampler

        settings = self.settings
        simulation = self.simulation
        every = [self.draw(number) for number in range(self.simulated)]
        tasks = tasks_sampler(every, simulation.seed, settings["learning"])
        units = {"tasks": SampledUnit(tasks, {}, settings["replicates"])}
        for power, keys in sorted({(p["power"], p["keys"]) for p in every}):
            point = {"power": power, "keys": keys}
            alike = [p for p in every if point.items() <= p.drawn.items()]
            sampler = pairs_sampler(alike, keys, simulation.precision)
            units[f"power {power:g}, {keys} keys"] = SampledUnit(sampler, point, stream=(keys,))
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        """All problems in one point ``law``, with what was drawn; the simulated ones in ``heads``.

        ``law`` is as of :func:`~.problems.tuned`, ``heads`` as of :func:`~.predict.terms`.
        """
        from sims.base.runtime import in_threads

        from .predict import terms

        every = [self.draw(number) for number in range(self.predicted)]
        drawn = {k: ("number", [problem.drawn[k] for problem in every]) for k in every[0].drawn}
        pairs = in_threads(terms, every[: self.simulated])
        return {"law": tuned(every).assign(drawn), "heads": xr.concat(pairs, "number")}
