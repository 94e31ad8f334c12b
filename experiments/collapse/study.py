"""Stacks of a Transformer's layers, and heads that are recovered from their mixed output."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from sims.study.results import Results
from sims.study.study import Fields, Study

from .problems import ALONE, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.montecarlo import Sampler


class Collapse(Study[Problem]):
    """Effects of depth on tokens, and recovery of heads from a layer's output."""

    def problem(self, fields: Fields) -> Problem:
        return Problem(fields)

    def sampler(self, problem: Problem) -> "Sampler":
        from sims.montecarlo import HostBatches

        from .simulate import batch

        dims = {"path": ("layer",), "ends": ("end",), "lost": ("gates",)}
        return HostBatches(batch, constants=problem, dims=dims)

    def replicates(self, problem: Problem) -> int:
        drawn = problem.drawn
        kind = "alone" if drawn["block"] == ALONE else drawn["branches"]
        times: Mapping[str, int] = self.experiment.settings["times"]
        return self.experiment.simulation.replicates_per_batch * times[kind]

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
