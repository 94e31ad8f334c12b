"""The house sample: how often the theory of diverse heads is true."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem, built, described, padded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer, Effects
    from sims.montecarlo import Sampler

FEW = 1024
"""Keys, of fewer of which a problem gets more replicates: they vary more, and cost less."""


class House(Study[Problem]):
    """Six sets of heads on common keys, by simulation and by theory to first order."""

    def problem(self, fields: Fields) -> Problem | None:
        return built(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        """Of all sets; their dimension is ``problem``."""
        from sims.simulation.many import ProblemsSampler, sampler_of

        names = ("precision", "control_variate", "raw_labels", "keep_queries")
        options = {name: getattr(self.experiment.simulation, name) for name in names}
        members = [sampler_of(*case, **options)[0] for case in padded(problem)]
        return ProblemsSampler(members, [()] * len(members))

    def replicates(self, problem: Problem) -> int:
        return self.experiment.simulation.replicates_per_batch * max(1, FEW // problem.n)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .predict import by_angles, exact, predicted

        assert problem.number is not None
        terms = predicted(problem, self.experiment.settings["targets"])
        error = exact(problem) if problem.number < self.simulated else np.nan
        return terms.assign(by_angles=by_angles(problem), exact=error)

    def search_row(self, problem: Problem) -> xr.Dataset:
        from .predict import of_given_target

        return of_given_target(problem)

    def as_file(self, problem: Problem) -> dict[str, Any]:
        return described(problem)

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)

    def headline(self, results: Results) -> "Figure":
        from .figure import headline

        return headline(results)

    def numbers(self, results: Results) -> Mapping[str, Any]:
        from .figure import numbers

        return numbers(results)
