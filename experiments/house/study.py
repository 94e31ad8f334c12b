"""The house sample: how often, and by how much, diverse heads lower the error."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem, draw_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.judgement.robustness import Cell
    from sims.montecarlo import Sampler


class House(Study[Problem]):
    """Seven sets of heads on common keys, as given and turned at random."""

    def problem(self, fields: Fields) -> Problem | None:
        return draw_problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import sampler_of

        return sampler_of(problem)

    def theory(self, problem: Problem) -> xr.Dataset:
        from .description import population
        from .predict import predicted

        terms = predicted(problem, self.experiment.simulation.batches)
        return terms.assign(population(problem))

    def as_file(self, problem: Problem) -> dict[str, Any]:
        from .description import described

        return described(problem)

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def specifications(
        self, results: Results, effects: "Mapping[str, Effects]"
    ) -> "Mapping[str, Sequence[Cell]]":
        from .statistic import specifications

        return specifications(results, effects)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)

    def headline(self, results: Results) -> "Figure":
        from .figure import headline

        return headline(results)

    def numbers(self, results: Results) -> Mapping[str, Any]:
        from .tables import tables

        return tables(results)
