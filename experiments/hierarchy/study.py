"""Scores on scales: their error by levels and ranks, blocks of keys, and mixtures of scales."""

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


class Hierarchy(Study[Problem]):
    """Errors of scores, of blocks and of mixtures, by simulation and by theory."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import batch

        dims = {"error": ("part", "kept"), "remainder": ("order",), "mse": ("arm",)}
        return HostBatches(batch, constants=problem, dims=dims)

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
