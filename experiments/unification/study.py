"""Two pools of heads, trees or ants, the second more diverse by a mechanism."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem, solve_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Unification(Study[Problem]):
    """Errors of pools and correlations of their agents."""

    def problem(self, fields: Fields) -> Problem | None:
        # Heads alone are rejected: another draw of a number is of heads, too.
        drawn = fields | {"kind": "heads"} if fields.attempt else fields
        problem = Problem(drawn, drawn["noise"])
        return solve_noise(problem) if drawn["kind"] == "heads" else problem

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import pools_sampler

        return pools_sampler(problem, self.experiment.simulation.precision)

    def replicates(self, problem: Problem) -> int:
        times: Mapping[str, int] = self.experiment.settings["times"]
        return self.experiment.simulation.replicates_per_batch * times[problem.drawn["kind"]]

    def theory(self, problem: Problem) -> xr.Dataset:
        from .predict import theory

        return theory(problem)

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
