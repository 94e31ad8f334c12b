"""Stacks with hidden scores beside plain ones, and a head of a second layer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class HiddenScores(Study[Problem]):
    """Collapse, uniformity and errors with a memory of scores and without."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from .simulate import stack_sampler

        return stack_sampler(problem)

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
