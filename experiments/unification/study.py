"""Two pools of heads, trees or ants, the second more diverse by a mechanism."""

from typing import TYPE_CHECKING

import xarray as xr

from sims.study.modular import Fields, ModularStudy

from .problems import Problem, solve_noise

if TYPE_CHECKING:
    from sims.montecarlo import Sampler


class Unification(ModularStudy[Problem]):
    """Errors of pools and correlations of their agents."""

    def problem(self, fields: Fields) -> Problem | None:
        # Heads alone are rejected: another draw of a number is of heads, too.
        drawn = fields | {"kind": "heads"} if fields.attempt else fields
        problem = Problem(drawn, drawn["noise"])
        return solve_noise(problem) if drawn["kind"] == "heads" else problem

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import pools_sampler

        return pools_sampler(problem, self.simulation.precision)

    def theory(self, problem: Problem) -> xr.Dataset:
        """What was drawn: pools are told by simulation alone."""
        known = {"mechanism": problem.mechanism, "noise_sd": problem.noise_sd}
        return xr.Dataset({**problem.drawn, **known})

    def replicates(self, problem: Problem) -> int:
        times = self.settings["times"][problem["kind"]]
        return self.simulation.replicates_per_batch * times
